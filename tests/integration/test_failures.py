"""Failures of keys, networks and files: one message, the exit code, and nothing applied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator

WORKSPACE = {
    "reconciler.yaml": "version: 1\nsecrets: [KEY, KEY_ID]\n",
    "exports.yaml": """\
projects:
  web: {name: Web}
batch_exports:
  lake:
    project: web
    name: Lake
    interval: hour
    destination:
      type: S3
      config:
        bucket_name: acme
        region: eu-central-1
        prefix: a/
        aws_access_key_id: ${secret:env:KEY_ID}
        aws_secret_access_key: ${secret:env:KEY}
""",
}


NEEDED = "needed by batch_export.lake"
SECRETS = {"KEY_ID": "key-id-1234", "KEY": "hunter2hunter2"}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write(tmp_path, WORKSPACE)


def apply(workspace: Path, environ: dict[str, str]) -> Ran:
    return reconciler("apply", "-C", workspace, "--auto-approve", environ=environ)


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
    workspace: Path, emulator: RunningEmulator, environ: dict[str, str], messages: tuple[str, ...]
) -> None:
    given = {**emulator.environ(), **SECRETS, **environ}
    ran = apply(workspace, {name: value for name, value in given.items() if value})
    assert ran.code == 1
    assert all(message in ran.err for message in messages)
    assert "phx_wrong" not in ran.err + ran.out
    assert emulator.writes() == []


READER = {
    "organizations": [{"id": "org", "name": "O", "projects": [{"name": "Other"}]}],
    "keys": [{"value": "phx_read", "scopes": ["batch_export:read", "project:read"]}],
}


def test_plan_v11_a_key_without_write_scope_fails_every_change_and_quiet_says_why(
    workspace: Path, service_of: StartService
) -> None:
    environ = {**service_of(READER).environ(), **SECRETS}
    ran = apply(workspace, environ)
    quiet = reconciler("-q", "apply", "-C", workspace, "--auto-approve", environ=environ)
    assert ran.code == 3
    assert "· organization org\n" in ran.out
    assert quiet.err.startswith('✗ create of project.web "Web" failed: ')
    assert "skipped" not in quiet.err
    assert "missing required scope 'project:write'" in ran.err
    assert "skipped: create of project.web failed" in ran.err
    assert "Run the command again" not in ran.out
    assert "Correct what the service refused, then apply again." in ran.out


def test_x6_equal_refusals_of_one_cause_are_one_message_with_a_count(
    workspace: Path, service_of: StartService
) -> None:
    project, _, export = WORKSPACE["exports.yaml"].partition("batch_exports:\n")
    project = project.replace("Web", "Other")
    exports = (export.replace("lake", f"x{i}").replace("Lake", f"X{i}") for i in range(6))
    write(workspace, {"exports.yaml": f"{project}batch_exports:\n{''.join(exports)}"})
    ran = apply(workspace, {**service_of(READER).environ(), **SECRETS})
    assert ran.code == 3
    assert ran.err.count("missing required scope 'batch_export:write'") == 1
    assert "✗ 5 more failed for the same reason: batch_export." in ran.err


def test_a_secret_in_live_state_is_masked_in_a_plan(
    workspace: Path, emulator: RunningEmulator
) -> None:
    """A user pasted the key into the prefix: the plan must not show it to a reviewer."""
    environ = {**emulator.environ(), **SECRETS}
    applied = apply(workspace, environ)
    assert applied.code == 0
    # plan_v11: what was applied where, and that it is complete.
    assert applied.out.startswith('Environment default "Demo" · http://')
    assert "Verified: the plan is empty.\n" in applied.err
    export = emulator.exports()["Lake"]
    path = f"/api/projects/{export['team_id']}/batch_exports/{export['id']}/"
    saved = workspace / "plan.json"

    def leak(prefix: str) -> dict[str, Any]:
        config = {"prefix": f"{prefix}/hunter2hunter2/"}
        return {"destination": {"type": "S3", "config": config}}

    def plan(*options: str | Path) -> None:
        ran = reconciler("plan", "-C", workspace, *options, environ=environ)
        assert ran.code == 0
        assert "***" in ran.out
        assert "hunter2" not in ran.out + ran.err

    emulator.call("PATCH", path, leak("x")).raise_for_status()
    for output_format in ("text", "json", "markdown"):
        plan("--format", output_format)
    plan("--out", saved)
    assert "hunter2" not in saved.read_text()
    assert reconciler("apply", saved, "-C", workspace, environ=environ).code == 0
    assert emulator.exports()["Lake"]["destination"]["config"]["prefix"] == "a/"
    emulator.call("PATCH", path, leak("x")).raise_for_status()
    plan("--out", saved)
    emulator.call("PATCH", path, leak("y")).raise_for_status()
    stale = reconciler("apply", saved, "-C", workspace, environ=environ)
    assert stale.code == 4
    assert "hunter2" not in stale.out + stale.err
    # The check just before the write reports the same.
    rule = {
        "match": {"method": "GET", "path": f"*{export['id']}/"},
        "fault": "edit",
        "set": leak("z"),
    }
    emulator.admin("PUT", "faults", [rule])
    (file,) = (file for file in workspace.glob("*.yaml") if "name: Lake" in file.read_text())
    file.write_text(file.read_text().replace("name: Lake", "name: Lake\n    state: absent"))
    raced = apply(workspace, environ)
    assert raced.code == 3
    assert "modified since the plan was made" in raced.err
    assert "hunter2" not in raced.out + raced.err
