"""Saved plans, end to end: applied again, outdated, forged, made with other options."""

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
from tests.support.emulator import RunningEmulator
from tests.support.forging import forged
from tests.support.git import Git
from tests.support.limits import time_limit, until

FILES = {
    "reconciler.yaml": "version: 1\n",
    "all.yaml": """\
projects:
  web: {name: Web}
batch_exports:
  lake:
    project: web
    name: Lake
    interval: hour
    destination: {type: NoOp, config: {}}
    lifecycle: {ignore_changes: [end_at]}
    end_at: null
  sea:
    project: web
    name: Sea
    interval: hour
    destination: {type: NoOp, config: {}}
""",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write(tmp_path / "w", FILES)


def edit(workspace: Path, old: str, new: str) -> None:
    path = workspace / "all.yaml"
    path.write_text(path.read_text().replace(old, new))


def test_a_partial_saved_plan_fails_if_its_selection_still_differs(
    workspace: Path, emulator: RunningEmulator
) -> None:
    environ = emulator.environ()
    edit(workspace, "end_at: null", "end_at: null\n    paused: true")
    assert reconciler("apply", "-C", workspace, "--auto-approve", environ=environ).code == 0
    edit(workspace, "paused: true", "paused: false")
    edit(workspace, "interval: hour", "interval: day")
    saved = workspace.parent / "plan.json"
    only = ("--target", "batch_export.lake")
    planned = reconciler("plan", "-C", workspace, *only, "--out", saved, environ=environ)
    assert "1 to update, 1 to unpause" in planned.out
    rule = {
        "match": {"method": "POST", "path": "*/unpause/"},
        "fault": "edit",
        "set": {"interval": "week"},
    }
    emulator.admin("PUT", "faults", [rule])
    applied = reconciler("apply", saved, "-C", workspace, environ=environ)
    assert applied.code == 3
    assert 'interval  "week" -> ' in applied.err
    assert "batch_export.sea" not in applied.err


def test_r15_one_change_in_300_resources_is_a_small_plan(
    tmp_path: Path, service_of: StartService
) -> None:
    no_op = {"type": "NoOp", "config": {}}
    exports = {
        f"e{number}": {"name": f"E{number}", "interval": "hour", "destination": no_op}
        for number in range(299)
    }
    live = {"id": 1, "name": "Web", "batch_exports": list(exports.values())}
    organizations = [{"id": "org", "name": "Acme", "projects": [live]}]
    running = service_of({"organizations": organizations, "keys": [{"value": "phx_key"}]})
    wanted = {key: {**export, "project": "web"} for key, export in exports.items()}
    wanted["e7"]["interval"] = "day"
    files = {"projects": {"web": {"name": "Web"}}, "batch_exports": wanted}
    folder = write(tmp_path / "w", {"reconciler.yaml": "version: 1\n", "a.yaml": json.dumps(files)})
    saved, environ = tmp_path / "plan.json", running.environ()
    ran = reconciler("plan", "-C", folder, "--format", "json", "--out", saved, environ=environ)
    plan = json.loads(ran.out)
    assert [change["id"] for change in plan["changes"]] == ["batch_export.e7:update"], ran.err
    assert plan["unchanged"] == 299
    assert len(ran.out) < 40_000
    assert len(saved.read_bytes()) < 40_000
    assert "299 unchanged (300 resources)" in reconciler("show", saved, environ=environ).out
    applied = reconciler("apply", saved, "-C", folder, environ=environ)
    assert applied.code == 0, applied.err
    assert running.exports()["E7"]["interval"] == "day"


def test_an_ignored_field_does_not_make_a_saved_plan_stale(
    workspace: Path, emulator: RunningEmulator
) -> None:
    environ = emulator.environ()
    assert reconciler("apply", "-C", workspace, "--auto-approve", environ=environ).code == 0
    edit(workspace, "interval: hour", "interval: day")
    saved = workspace.parent / "plan.json"
    assert reconciler("plan", "-C", workspace, "--out", saved, environ=environ).code == 0
    lake = emulator.exports()["Lake"]
    path = f"/api/projects/{lake['team_id']}/batch_exports/{lake['id']}/"
    emulator.call("PATCH", path, {"end_at": "2035-01-01T00:00:00Z"}).raise_for_status()
    applied = reconciler("apply", saved, "-C", workspace, environ=environ)
    assert applied.code == 0, applied.err
    lake = emulator.exports()["Lake"]
    assert (lake["interval"], lake["end_at"][:4]) == ("day", "2035")


def test_a_file_that_is_not_a_plan_is_reported_with_its_name_and_a_hint(
    workspace: Path, emulator: RunningEmulator
) -> None:
    saved = workspace.parent / "plan.json"
    saved.write_text("projects: {}")
    for command in (("apply", saved, "-C", workspace), ("show", saved)):
        ran = reconciler(*command, environ=emulator.environ())
        first, hint, *_ = ran.err.splitlines()
        assert (ran.code, first.startswith(f"error: {saved}: not a plan file")) == (1, True)
        assert "make the plan again" in hint
    assert emulator.writes() == []


# A plan of creates, updates, a pause, an unpause and a delete, which can be applied again.

SECRETS = {"RECONCILER_SECRET_OLD": "an-old-value", "RECONCILER_SECRET_NEW": "a-new-value"}


def exports(**parts: dict[str, Any]) -> str:
    own = {
        key: {
            "project": "web",
            "name": key,
            "interval": "hour",
            "destination": {"type": "NoOp", "config": {}},
            **fields,
        }
        for key, fields in parts.items()
    }
    return json.dumps({"projects": {"web": {"name": "Web"}}, "batch_exports": own}, indent=1)


def with_secret(variable: str) -> dict[str, Any]:
    config = {"bucket_name": "b", "region": "r", "prefix": "p", "aws_access_key_id": "k"}
    secret = f"${{secret:env:RECONCILER_SECRET_{variable}}}"
    config = {**config, "aws_access_key_id": secret, "aws_secret_access_key": secret}
    return {"destination": {"type": "S3", "config": config}}


START = exports(a={}, b={"paused": False}, c={"paused": True}, old={}, s=with_secret("OLD"))
END = exports(
    a={"interval": "day"},
    b={"paused": True},
    c={"paused": False},
    old={"state": "absent"},
    s={**with_secret("NEW"), "interval": "day"},
    **{f"new{number}": {} for number in range(5)},
)


class Saved:
    """A workspace in git with a saved plan that leads from START to END."""

    def __init__(self, folder: Path, running: RunningEmulator) -> None:
        self.running, self.folder = running, folder / "w"
        self.file = folder / "plan.json"
        self.environ = {**running.environ(), **SECRETS}
        self.git = Git.init(self.folder)
        write(self.folder, {"reconciler.yaml": "version: 1\n", "all.yaml": START})
        self.git.commit("start")
        self.git.trust()
        assert self.run("apply", "--auto-approve").code == 0
        write(self.folder, {"all.yaml": END})
        planned = self.run("plan", "--out", self.file)
        assert planned.code == 0, planned.err
        assert "5 to create, 2 to update, 1 to pause, 1 to unpause, 1 to delete" in planned.out
        running.clear_requests()

    def run(self, *words: str | Path, environ: dict[str, str] | None = None) -> Ran:
        command, *more = words
        return reconciler(command, *more, "-C", self.folder, environ=environ or self.environ)

    def apply(self, *more: str | Path, environ: dict[str, str] | None = None) -> Ran:
        return self.run("apply", self.file, *more, environ=environ)

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
    no_op = {"type": "NoOp", "config": {}}
    body = {"name": "new1", "interval": interval, "destination": no_op, "paused": False}
    path = f"/api/projects/{web['id']}/batch_exports/"
    theirs = emulator.call("POST", path, body).json()["id"]
    emulator.clear_requests()
    ran = saved.apply()
    assert ran.code == (0 if interval == "hour" else 4), ran.err
    assert not any(theirs in written for _, written in emulator.writes())
    assert bool(emulator.writes()) is (interval == "hour")


def test_a_stale_plan_is_explained_by_field_and_sends_nothing(
    saved: Saved, emulator: RunningEmulator
) -> None:
    text = END.replace(
        '"name": "new1",\n   "interval": "hour"', '"name": "new1",\n   "interval": "week"'
    )
    write(saved.folder, {"all.yaml": text})
    ran = saved.apply()
    assert ran.code == 4
    assert ran.err.splitlines() == [
        "error: the saved plan is stale (1 difference); nothing was sent:",
        (
            '  batch_export.new1: interval is (not set) -> "week" now, '
            'the saved plan has (not set) -> "hour"'
        ),
        "  hint: make a new plan and have it reviewed",
    ]
    assert emulator.writes() == []


def test_the_policy_of_today_counts(saved: Saved, emulator: RunningEmulator) -> None:
    write(saved.folder, {"reconciler.yaml": "version: 1\npolicy: {max_deletes: 0}\n"})
    ran = saved.apply()
    assert ran.code == 5
    assert emulator.writes() == []


def test_a_plan_without_an_inventory_is_stale_with_one(saved: Saved) -> None:
    assert saved.run("plan", "--no-inventory", "--out", saved.file).code == 0
    saved.running.clear_requests()
    ran = saved.apply()
    assert ran.code == 4
    assert "batch_export.s: warning secret-reference-changed is not in the saved plan" in ran.err
    assert saved.running.writes() == []
    assert saved.apply("--no-inventory").code == 0


def test_a_plan_that_rotates_secrets_needs_the_option_again(
    saved: Saved, emulator: RunningEmulator
) -> None:
    rotate = "--rotate-secrets=batch_export.s"
    assert saved.run("plan", rotate, "--out", saved.file).code == 0
    emulator.clear_requests()
    ran = saved.apply()
    assert ran.code == 4
    assert "the plan was made with --rotate-secrets" in ran.err
    other = saved.apply("--rotate-secrets=batch_export.a")
    assert other.code == 64
    assert "batch_export.a: no secret to send again" in other.err
    assert emulator.writes() == []
    ran = saved.apply(rotate)
    assert ran.code == 0, ran.err


def test_a_plan_for_another_environment_is_refused(saved: Saved, emulator: RunningEmulator) -> None:
    write(
        saved.folder,
        {"reconciler.yaml": "version: 1\nenvironments: {staging: {}, production: {}}\n"},
    )
    ran = saved.apply("-e", "staging")
    assert ran.code == 4
    assert "the plan was made for environment" in ran.err
    assert emulator.writes() == []


def test_a_selection_is_taken_from_the_file(saved: Saved) -> None:
    ran = saved.apply("--target", "batch_export.a")
    assert ran.code == 64
    assert "a saved plan has its own selection" in ran.err


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
        parts = {"interval": "hour", "destination": {"type": "NoOp", "config": {}}}
        own = {key: {"project": it, "name": key, **parts} for key, it in exports.items()}
        text = json.dumps({"projects": projects, "batch_exports": own})
        write(folder, {"reconciler.yaml": "version: 1\npolicy: {prune: true}\n", "a.yaml": text})

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
        write(saved.folder, {"all.yaml": END.replace('"day"', '"week"', 1)})
    _, today = writes("--auto-approve")
    code, sent = writes(saved.file)
    assert code in (0, 4), f"seed {seed}"
    assert code == 0 or not sent, f"seed {seed}"
    assert set(sent) <= set(genuine) & set(today), f"seed {seed}"
