"""Failures of keys, networks and files: one message, the exit code, and nothing applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.declared import s3, seed, workspace
from tests.support.emulator import RunningEmulator

SETTINGS = "secrets: [KEY, KEY_ID]\n"
LAKE = s3("${secret:env:KEY_ID}", "${secret:env:KEY}")
NEEDED = "needed by batch_export.lake"
SECRETS = {"KEY_ID": "key-id-1234", "KEY": "hunter2hunter2"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, workspace(SETTINGS, lake=LAKE))


def apply(folder: Path, environ: dict[str, str], *words: str | Path) -> Ran:
    given = {**SECRETS, **environ}
    set_ones = {name: value for name, value in given.items() if value}
    return reconciler("apply", "-C", folder, "--auto-approve", *words, environ=set_ones)


@pytest.mark.parametrize(
    ("environ", "messages"),
    [
        ({"RECONCILER_API_KEY": "phx_wrong"}, ("401", "check `api_key`")),
        ({"RECONCILER_BASE_URL": "http://127.0.0.1:1"}, ("can't connect to http://127.0.0.1:1",)),
        ({"RECONCILER_ORGANIZATION": "nope"}, ("check `organization`",)),
        *(
            ({"KEY": "", "KEY_ID": ""}, (f"secret ${{secret:env:{name}}} is not set", NEEDED))
            for name in ("KEY", "KEY_ID")
        ),
        ({"KEY": " "}, ("is empty",)),
        ({"RECONCILER_BASE_URL": ""}, ("RECONCILER_BASE_URL",)),
    ],
    ids=str,
)
def test_what_lets_a_run_fail_before_the_first_write(
    folder: Path, emulator: RunningEmulator, environ: dict[str, str], messages: tuple[str, ...]
) -> None:
    ran = apply(folder, {**emulator.environ(), **environ})
    assert ran.code == 1
    assert all(message in ran.err for message in messages)
    assert "phx_wrong" not in ran.err + ran.out
    assert emulator.writes() == []


READER = seed({"name": "Other"}, scopes=["batch_export:read", "project:read"])


def test_plan_v11_a_key_without_write_scope_fails_every_change_and_quiet_says_why(
    folder: Path, service_of: StartService
) -> None:
    environ = service_of(READER).environ()
    ran, quiet = apply(folder, environ), apply(folder, environ, "-q")
    assert ran.code == 3
    assert "· organization org\n" in ran.out
    assert quiet.err.startswith('✗ create of project.web "Web" failed: ')
    assert "skipped" not in quiet.err
    assert "missing required scope 'project:write'" in ran.err
    assert "skipped: create of project.web failed" in ran.err
    assert "Run the command again" not in ran.out
    assert "Correct what the service refused, then apply again." in ran.out


def test_x6_equal_refusals_of_one_cause_are_one_message_with_a_count(
    folder: Path, service_of: StartService
) -> None:
    exports = {f"x{number}": LAKE for number in range(6)}
    write(folder, workspace(SETTINGS, {"web": {"name": "Other"}}, **exports))
    ran = apply(folder, service_of(READER).environ())
    assert ran.code == 3
    assert ran.err.count("missing required scope 'batch_export:write'") == 1
    assert "✗ 5 more failed for the same reason: batch_export." in ran.err


def test_a_secret_in_live_state_is_masked_where_it_stops_an_apply(
    folder: Path, emulator: RunningEmulator
) -> None:
    """A user pasted the key into the prefix; tests/security/test_canaries.py has the plans."""
    environ, saved, log = emulator.environ(), folder / "plan.json", folder / "log.jsonl"
    applied = apply(folder, environ)
    assert applied.code == 0
    # plan_v11: what was applied where, and that it is complete.
    assert applied.out.startswith('Environment default "Demo" · http://')
    assert "Verified: the plan is empty.\n" in applied.err
    path = emulator.path_of("lake")

    def leak(prefix: str) -> dict[str, object]:
        config = {"prefix": f"{prefix}/hunter2hunter2/"}
        return {"destination": {"type": "S3", "config": config}}

    emulator.call("PATCH", path, leak("x")).raise_for_status()
    words = ("plan", "-C", folder, "--out", saved)
    assert "***" in reconciler(*words, environ={**environ, **SECRETS}).out
    emulator.call("PATCH", path, leak("y")).raise_for_status()
    stale = reconciler("apply", saved, "-C", folder, environ={**environ, **SECRETS})
    assert stale.code == 4
    # The check just before the write reports the same.
    rule = {"match": {"method": "GET", "path": f"*{path[-10:]}"}, "fault": "edit"}
    emulator.admin("PUT", "faults", [{**rule, "set": leak("z")}])
    write(folder, workspace(SETTINGS, lake={**LAKE, "state": "absent"}))
    raced = apply(folder, environ, "--log-file", log)
    assert raced.code == 3
    assert "modified since the plan was made" in raced.err
    written = log.read_text() + saved.read_text()
    assert "hunter2" not in stale.out + stale.err + raced.out + raced.err + written
