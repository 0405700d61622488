"""`apply`: the plan that was reviewed, saved or named by its id, is applied; the audit log."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.decoding import decode
from reconciler.model.kind import Action
from reconciler.model.plan import Change, FieldChange, encode
from tests.conftest import LONG, StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.declared import declared, s3, seed, workspace
from tests.support.emulator import RunningEmulator
from tests.support.forging import forged
from tests.support.git import Git
from tests.support.limits import time_limit, until
from tests.support.simulated import no_op_export

# Plans by their ids.


@pytest.mark.parametrize("length", [8, 64])
def test_a_plan_is_applied_by_its_id_without_a_question_and_no_other_one(
    length: int, emulator: RunningEmulator, tmp_path: Path
) -> None:
    environ = emulator.environ()

    def plan_id() -> str:
        ran = reconciler("plan", "-C", tmp_path, "--format", "json", environ=environ)
        return str(json.loads(ran.out)["plan_id"])

    def apply(reviewed: str) -> Ran:
        return reconciler("apply", "-C", tmp_path, "--plan-id", reviewed, environ=environ)

    write(tmp_path, workspace())
    reviewed = plan_id()
    write(tmp_path, workspace(lake={}))
    now = plan_id()
    ran = apply(reviewed[:length])
    assert (ran.code, "2 to create" in ran.out) == (4, True)
    assert f"the plan is {now}, not {reviewed[:length]}; nothing was sent" in ran.err
    assert emulator.writes() == []
    ran = apply(now[:length])
    assert (ran.code, "Applied: 2 created" in ran.out) == (0, True), ran.err
    assert apply(now[:length]).code == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(
            (("--plan-id", written), "8 to 64 hexadecimal digits")
            for written in ("", "3c9a41f", "not-hex-digits", "a" * 65)
        ),
        (("plan.json", "--plan-id", "3c9a41f0"), "--plan-id and PLAN_FILE exclude each other"),
    ],
)
def test_an_id_has_8_to_64_hex_digits_and_excludes_a_saved_plan(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    ran = reconciler("apply", "-C", write(tmp_path, workspace()), *words)
    assert (ran.code, message in ran.err) == (64, True)


# Saved plans.


def test_a_partial_saved_plan_fails_if_its_selection_still_differs(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    folder, saved = tmp_path / "w", tmp_path / "plan.json"

    def run(*words: str | Path, **lake: Any) -> Ran:
        write(folder, workspace(lake=lake, sea={}))
        return reconciler(*words, "-C", folder, environ=emulator.environ())

    assert run("apply", "--auto-approve", paused=True).code == 0
    only = ("--target", "batch_export.lake", "--out", saved)
    after: dict[str, Any] = {"interval": "day", "paused": False}
    assert "1 to update, 1 to unpause" in run("plan", *only, **after).out
    match = {"method": "POST", "path": "*/unpause/"}
    emulator.admin(
        "PUT", "faults", [{"match": match, "fault": "edit", "set": {"interval": "week"}}]
    )
    applied = run("apply", saved, **after)
    assert applied.code == 3
    assert 'interval  "week" -> ' in applied.err
    assert "batch_export.sea" not in applied.err


def test_r15_one_change_in_300_resources_is_a_small_plan(
    tmp_path: Path, service_of: StartService
) -> None:
    names = [f"e{number}" for number in range(299)]
    live = {"id": 1, "name": "Web", "batch_exports": [no_op_export(name) for name in names]}
    running = service_of(seed(live))
    wanted: dict[str, dict[str, Any]] = {name: {} for name in names}
    wanted["e7"] = {"interval": "day"}
    folder = write(tmp_path / "w", workspace(**wanted))
    saved, environ = tmp_path / "plan.json", running.environ()
    ran = reconciler("plan", "-C", folder, "--format", "json", "--out", saved, environ=environ)
    plan = json.loads(ran.out)
    assert [change["id"] for change in plan["changes"]] == ["batch_export.e7:update"], ran.err
    assert plan["unchanged"] == 299
    assert len(ran.out) < 40_000
    assert len(saved.read_bytes()) < 40_000
    assert saved.stat().st_mode & 0o777 == 0o600
    assert "299 unchanged (300 resources)" in reconciler("show", saved, environ=environ).out
    applied = reconciler("apply", saved, "-C", folder, environ=environ)
    assert applied.code == 0, applied.err
    assert running.exports()["e7"]["interval"] == "day"


def test_a_file_that_is_not_a_plan_is_reported_with_its_name_and_a_hint(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    saved = write(tmp_path, {**workspace(), "plan.json": "projects: {}"}) / "plan.json"
    for command in (("apply", saved, "-C", tmp_path), ("show", saved)):
        ran = reconciler(*command, environ=emulator.environ())
        first, hint, *_ = ran.err.splitlines()
        assert (ran.code, first.startswith(f"error: {saved}: not a plan file")) == (1, True)
        assert "make the plan again" in hint


SECRETS = {"RECONCILER_SECRET_OLD": "an-old-value", "RECONCILER_SECRET_NEW": "a-new-value"}
"""Those of a plan of creates, updates, a pause, an unpause and a delete."""


def with_secret(variable: str, **fields: Any) -> dict[str, Any]:
    secret = f"${{secret:env:RECONCILER_SECRET_{variable}}}"
    return s3(secret, secret, **fields)


START = declared(a={}, b={"paused": False}, c={"paused": True}, old={}, s=with_secret("OLD"))
END = declared(
    a={"interval": "day"},
    b={"paused": True},
    c={"paused": False},
    old={"state": "absent"},
    s=with_secret("NEW", interval="day"),
    **{f"new{number}": {} for number in range(5)},
)


class Saved:
    """A workspace in git with a saved plan that leads from START to END."""

    def __init__(self, folder: Path, running: RunningEmulator) -> None:
        self.running, self.folder = running, folder / "w"
        self.file = folder / "plan.json"
        self.environ = {**running.environ(), **SECRETS}
        self.git = Git.init(self.folder)
        write(self.folder, {"reconciler.yaml": "version: 1\n", "resources.yaml": START})
        self.git.commit("start")
        self.git.trust()
        assert self.run("apply", "--auto-approve").code == 0
        write(self.folder, {"resources.yaml": END})
        planned = self.run("plan", "--out", self.file)
        assert planned.code == 0, planned.err
        assert "5 to create, 2 to update, 1 to pause, 1 to unpause, 1 to delete" in planned.out
        running.clear_requests()

    def run(self, *words: str | Path) -> Ran:
        return reconciler(*words, "-C", self.folder, environ=self.environ)

    def apply(self, *more: str | Path) -> Ran:
        return self.run("apply", self.file, *more)

    def finish(self) -> Ran:
        """Apply the file again, or a new plan: no live value shows if a changed secret was sent."""
        ran = self.apply()
        if ran.code == 4:
            assert "  batch_export.s: " in ran.err
            assert self.run("plan", "--out", self.file).code == 0
            ran = self.apply()
        return ran

    def kill(self, number: signal.Signals, hanging: str) -> int:
        """Send a signal when all creates but a hanging one are made; return the exit code."""
        words = [sys.executable, "-m", "reconciler", "apply", str(self.file), "-C"]
        process = subprocess.Popen(
            [*words, str(self.folder)],
            env={"PATH": os.environ["PATH"], **self.environ},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        others = {f"new{index}" for index in range(5)} - {hanging}
        with time_limit(process):
            until(lambda: others <= self.running.exports().keys(), process)
            process.send_signal(number)
            return process.wait()

    def check_end(self) -> None:
        """Check that live state is END, and that nothing was made twice."""
        (web,) = [it for it in self.running.state()["projects"] if it["name"] == "Web"]
        names = sorted(export["name"] for export in web["batch_exports"])
        assert names == sorted(["a", "b", "c", "s", *(f"new{number}" for number in range(5))])
        plan = self.run("plan", "--detailed-exitcode", "--no-inventory")
        assert plan.code == 0, plan.out
        assert self.running.exports()["s"]["interval"] == "day"


@pytest.fixture
def saved(tmp_path: Path, emulator: RunningEmulator) -> Saved:
    return Saved(tmp_path, emulator)


def fault(emulator: RunningEmulator, name: str, **rule: Any) -> None:
    match = {"method": "POST", "body": {"name": name}, "times": 1}
    emulator.admin("PUT", "faults", [{"match": match, **rule}])


def test_f7_a_saved_plan_is_applied_again_after_exit_3(
    saved: Saved, emulator: RunningEmulator
) -> None:
    fault(emulator, "new2", fault="error", status=400)
    assert saved.apply().code == 3
    again = saved.finish()
    assert again.code == 0, again.err
    assert "1 to create, 0 to update, 0 to delete" in again.out
    saved.check_end()


@pytest.mark.parametrize(
    ("number", "code", "when"),
    [
        (signal.SIGINT, 130, "before"),
        (signal.SIGTERM, 130, "after"),
        (signal.SIGKILL, -signal.SIGKILL, "before"),
        (signal.SIGKILL, -signal.SIGKILL, "after"),
    ],
)
def test_f7_a_saved_plan_is_applied_again_after_a_signal(
    number: signal.Signals, code: int, when: str, saved: Saved, emulator: RunningEmulator
) -> None:
    fault(emulator, "new2", fault="hang", when=when)
    assert saved.kill(number, "new2") == code
    # It may have been killed before it sent the request: then the fault is still to come.
    emulator.admin("PUT", "faults", [])
    again = saved.finish()
    assert again.code == 0, again.err
    saved.check_end()


@pytest.mark.parametrize("interval", ["hour", "week"])
def test_i7_an_export_that_somebody_created_since_gets_nothing(
    interval: str, saved: Saved, emulator: RunningEmulator
) -> None:
    """I7: with the values of the file its create is done, with others the file is stale."""
    (web,) = [it for it in emulator.state()["projects"] if it["name"] == "Web"]
    body = no_op_export("new1", interval, paused=False)
    path = f"/api/projects/{web['id']}/batch_exports/"
    theirs = emulator.call("POST", path, body).json()["id"]
    emulator.clear_requests()
    ran = saved.apply()
    assert ran.code == (0 if interval == "hour" else 4), ran.err
    assert not any(theirs in written for _, written in emulator.writes())
    assert bool(emulator.writes()) is (interval == "hour")


_OTHER = '"name": "new1",\n   "interval": '


@pytest.mark.parametrize(
    ("made", "files", "words", "code", "message"),
    [
        pytest.param(
            (),
            {"resources.yaml": END.replace(f'{_OTHER}"hour"', f'{_OTHER}"week"')},
            (),
            4,
            "error: the saved plan is stale (1 difference); nothing was sent:\n"
            '  batch_export.new1: interval is (not set) -> "week" now, '
            'the saved plan has (not set) -> "hour"\n'
            "  hint: make a new plan and have it reviewed\n",
            id="stale, explained by field",
        ),
        pytest.param(
            (),
            {"reconciler.yaml": "version: 1\npolicy: {max_deletes: 0}\n"},
            (),
            5,
            "",
            id="the policy of today",
        ),
        pytest.param(
            ("--no-inventory",),
            {},
            (),
            4,
            "hint: pass --no-inventory, as when the plan was made",
            id="made without an inventory",
        ),
        pytest.param(
            ("--rotate-secrets=batch_export.s",),
            {},
            (),
            4,
            "the plan was made with --rotate-secrets",
            id="made with a rotation",
        ),
        pytest.param(
            ("--rotate-secrets=batch_export.s",),
            {},
            ("--rotate-secrets=batch_export.a",),
            64,
            "batch_export.a: no secret to send again",
            id="another rotation",
        ),
        pytest.param(
            (),
            {"reconciler.yaml": "version: 1\nenvironments: {staging: {}, production: {}}\n"},
            ("-e", "staging"),
            4,
            "the plan was made for environment",
            id="another environment",
        ),
        pytest.param(
            (),
            {},
            ("--target", "batch_export.a"),
            64,
            "a saved plan has its own selection",
            id="a selection of its own",
        ),
    ],
)
def test_a_saved_plan_is_not_applied(
    made: tuple[str, ...],
    files: dict[str, str],
    words: tuple[str, ...],
    code: int,
    message: str,
    saved: Saved,
) -> None:
    assert not made or saved.run("plan", *made, "--out", saved.file).code == 0
    saved.running.clear_requests()
    write(saved.folder, files)
    ran = saved.apply(*words)
    assert (ran.code, message in ran.err) == (code, True), ran.err
    assert saved.running.writes() == []
    if made and not words:
        again = saved.apply(*made)
        assert again.code == 0, again.err


def _renamed(change: Change) -> Change:
    return replace(change, name="Another")


def _of_another_value(change: Change) -> Change:
    entry = FieldChange(change.fields[0].path, "another", change.fields[0].after)
    return replace(change, fields=(entry, *change.fields[1:]))


def test_apply_a8_a_failed_delete_goes_on_although_the_run_made_its_project_unclear(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    """The key of its project is given to a new project."""
    folder, file = tmp_path / "w", tmp_path / "plan.json"
    git = Git.init(folder)

    def declare(projects: dict[str, dict[str, Any]], **exports: str) -> None:
        own = {key: {"project": project} for key, project in exports.items()}
        write(folder, workspace("policy: {prune: true}\n", projects, **own))

    def run(*words: str | Path) -> Ran:
        return reconciler(*words, "-C", folder, environ=emulator.environ())

    declare({"main": {"name": "Shop"}}, lake="main", old="main")
    git.commit("start")
    git.trust()
    assert run("apply", "--auto-approve").code == 0
    (shop,) = (it for it in emulator.state()["projects"] if it["name"] == "Shop")
    declare({"shop": {"id": str(shop["id"]), "name": "Shop"}, "main": {"name": "P"}}, lake="shop")
    assert run("plan", "--out", file).code == 0
    refused = {"match": {"method": "DELETE"}, "fault": "error", "status": 400}
    emulator.admin("PUT", "faults", [refused])
    assert run("apply", file).code == 3
    emulator.admin("PUT", "faults", [])
    again = run("apply", file)
    assert again.code == 0, again.err
    assert emulator.exports().keys() == {"lake"}


@pytest.mark.parametrize("edit_change", [_renamed, _of_another_value])
@pytest.mark.parametrize("action", [Action.UPDATE, Action.PAUSE, Action.DELETE])
def test_apply_a10_a_plan_that_shows_other_names_or_former_values_is_stale(
    action: Action,
    edit_change: Callable[[Change], Change],
    saved: Saved,
    emulator: RunningEmulator,
) -> None:
    """Its digests are those of the edited content, so the file is intact."""
    plan = decode(saved.file.read_bytes())
    (*_, edited) = (change for change in plan.effective if change.action is action)
    changes = (edit_change(change) if change is edited else change for change in plan.changes)
    saved.file.write_bytes(encode(replace(plan, changes=tuple(changes))))
    assert decode(saved.file.read_bytes()).plan_id != plan.plan_id
    ran = saved.apply()
    assert ran.code == 4
    assert f"{edited.address}: " in ran.err
    assert emulator.writes() == []


@pytest.mark.parametrize("seed", range(100 if LONG else 6))
def test_a_forged_plan_applies_only_what_it_contains_and_what_is_planned_today(
    seed: int, saved: Saved, emulator: RunningEmulator
) -> None:
    chance = random.Random(seed)  # noqa: S311 - repeatable
    emulator.admin("POST", "snapshots/start")

    def writes(*words: str | Path) -> tuple[int, list[tuple[str, str, str]]]:
        """Apply from the start, and return the exit code and the writes."""
        emulator.admin("POST", "snapshots/start/restore")
        emulator.clear_requests()
        ran = saved.run("apply", *words)
        sent = [
            (request["method"], request["path"], json.dumps(request["body"], sort_keys=True))
            for request in emulator.requests()
            if request["method"] != "GET"
        ]
        return ran.code, sorted(sent)

    _, genuine = writes(saved.file)
    assert genuine
    plan = decode(saved.file.read_bytes())
    other = plan
    while other == plan:
        other = forged(plan, chance)
    saved.file.write_bytes(encode(other))
    if chance.random() < 0.5:
        write(saved.folder, {"resources.yaml": END.replace('"day"', '"week"', 1)})
    _, today = writes("--auto-approve")
    code, sent = writes(saved.file)
    assert code in (0, 4), f"seed {seed}"
    assert code == 0 or not sent, f"seed {seed}"
    assert set(sent) <= set(genuine) & set(today), f"seed {seed}"


# The audit log: secrets are masked in it.

POSTGRES = """\
projects:
  web: {name: Web}
batch_exports:
  lake:
    project: web
    name: Lake
    interval: hour
    destination:
      type: Postgres
      config: {host: h, database: d, port: 5432, schema: public, table_name: a,
               user: "${secret:env:U}", password: "${secret:env:P}"}
"""
LOGGED = [
    "plain-secret",
    'with"quote',
    "back\\slash",
    'both\\"of"them\\',
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----",
    "ünïcode✓",
]


def strings(value: Any) -> list[str]:
    """Yield every text in a JSON value, names included."""
    if isinstance(value, dict):
        return [text for item in value.items() for part in item for text in strings(part)]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


def leaks(log: Path, secret: str) -> list[str]:
    """Return the texts of a log that contain a secret, decoded or as in the file."""
    raw = log.read_text(encoding="utf-8")
    texts = [text for line in raw.splitlines() for text in strings(json.loads(line))]
    return [text for text in [*texts, raw] if secret in text]


def put_live(emulator: RunningEmulator, config: dict[str, Any]) -> None:
    lake = emulator.exports()["Lake"]
    path = f"/api/projects/{lake['team_id']}/batch_exports/{lake['id']}/"
    body = {"destination": {"type": "Postgres", "config": config}}
    emulator.call("PATCH", path, body).raise_for_status()


class Logged:
    """A workspace that is applied with a secret, and the log of its next run."""

    def __init__(self, folder: Path, emulator: RunningEmulator, secret: str) -> None:
        self.folder, self.secret, self.log = folder / "w", secret, folder / "audit.jsonl"
        files = {"reconciler.yaml": "version: 1\nsecrets: [P, U]\n", "all.yaml": POSTGRES}
        write(self.folder, files)
        self.environ = {**emulator.environ(), "U": "user-name", "P": secret}
        assert self.run().code == 0

    def run(self, *words: str | Path, **environ: str) -> Ran:
        own = {**self.environ, **environ}
        return reconciler("apply", "-C", self.folder, "--auto-approve", *words, environ=own)

    def edit(self, old: str, new: str) -> None:
        path = self.folder / "all.yaml"
        path.write_text(path.read_text().replace(old, new))

    def logged(self, *words: str, code: int = 0, **environ: str) -> str:
        """Apply with a log, and return its text, in which the secret is not."""
        ran = self.run("--log-file", self.log, *words, **environ)
        assert ran.code == code, ran.err
        assert leaks(self.log, self.secret) == []
        return self.log.read_text()


@pytest.mark.parametrize("secret", LOGGED)
def test_a_secret_in_a_live_field_is_masked(
    secret: str, tmp_path: Path, emulator: RunningEmulator
) -> None:
    applied = Logged(tmp_path, emulator, secret)
    put_live(emulator, {"table_name": f"x {secret} y", "port": 6000})
    assert "table_name" in applied.logged()


def test_a_secret_in_the_error_of_a_change_is_masked(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    applied = Logged(tmp_path, emulator, 'with"quote\\and more')
    applied.edit("name: Lake", "name: Lake\n    state: absent")
    rule = {
        "match": {"method": "GET", "path": f"*{emulator.exports()['Lake']['id']}/"},
        "fault": "edit",
        "set": {"destination": {"config": {"table_name": f"x {applied.secret}"}}},
    }
    emulator.admin("PUT", "faults", [rule])
    assert "table_name" in applied.logged(code=3)


def test_a_secret_from_a_command_is_masked_in_the_logged_plan(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    """It is known only once it was run, which is before the plan is logged."""
    secret = 'from"a command'
    text = "version: 1\nsecrets: [P, U]\npolicy: {allow_exec_secrets: true}\n"
    applied = Logged(tmp_path, emulator, secret)
    write(applied.folder, {"secret.txt": secret, "reconciler.yaml": text})
    put_live(emulator, {"table_name": f"x {secret} y"})
    applied.edit("${secret:env:P}", "${secret:exec:cat secret.txt}")
    applied.logged("--rotate-secrets", P="", RECONCILER_ALLOW_EXEC="1")


def test_the_log_of_a_killed_run_can_be_read(tmp_path: Path, emulator: RunningEmulator) -> None:
    """Its last line may be cut off."""
    applied = Logged(tmp_path, emulator, "pass-word")
    applied.edit("5432", "5433")
    applied.log.write_text(applied.logged() + '{"time": "2026-01-01T00:00')
    audited = reconciler("show", applied.log)
    assert audited.code == 0, audited.err
    assert "~ done  update batch_export.lake" in audited.out
