"""Saved plans, end to end: partial plans and ignored fields."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator

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


def test_a_partial_saved_plan_is_verified_with_its_own_selection(
    workspace: Path, emulator: RunningEmulator
) -> None:
    environ = emulator.environ()
    saved = workspace.parent / "plan.json"
    only = ("--target", "batch_export.lake")
    planned = reconciler("plan", "-C", workspace, *only, "--out", saved, environ=environ)
    assert planned.code == 0, planned.err
    applied = reconciler("apply", saved, "-C", workspace, environ=environ)
    assert applied.code == 0, applied.err
    assert set(emulator.exports()) == {"Lake"}


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
    assert applied.code == 1
    assert 'interval: "week"' in applied.err
    assert "batch_export.sea" not in applied.err


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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("projects: {}", "not a plan file: invalid JSON"),
        ("[]", "not a plan file"),
        ('{"format_version": 9}', "unsupported format 9"),
        ('{"format_version": 1, "changes": []}', "its digest does not match"),
    ],
)
def test_a_file_that_is_not_a_plan_is_reported_with_its_name_and_a_hint(
    text: str, problem: str, workspace: Path, emulator: RunningEmulator
) -> None:
    saved = workspace.parent / "plan.json"
    saved.write_text(text)
    for command in (
        ("apply", saved, "-C", workspace),
        ("plan", "--undo", saved, "-C", workspace),
        ("show", saved),
    ):
        ran = reconciler(*command, environ=emulator.environ())
        assert ran.code == 1
        first, hint, *_ = ran.err.splitlines()
        assert first.startswith(f"error: {saved}: ")
        assert problem in first
        assert "make the plan again" in hint
    assert emulator.writes() == []
