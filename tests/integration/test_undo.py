"""Undo what was applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator

FILES = {
    "reconciler.yaml": "version: 1\nsecrets: [P, U]\n",
    "all.yaml": """\
projects:
  web: {name: Web}
batch_exports:
  lake:
    project: web
    name: Lake
    interval: hour
    paused: false
    end_at: null
    destination:
      type: Postgres
      config: {host: h, database: d, port: 5433, user: "${secret:env:U}",
               password: "${secret:env:P}"}
""",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write(tmp_path / "w", FILES)


@pytest.fixture
def environ(emulator: RunningEmulator) -> dict[str, str]:
    return {**emulator.environ(), "U": "user-name", "P": "pass-word"}


def apply(workspace: Path, environ: dict[str, str], *more: object) -> Ran:
    return reconciler("apply", "-C", workspace, "--auto-approve", *map(str, more), environ=environ)


def undo(workspace: Path, environ: dict[str, str], file: Path) -> Ran:
    """Plan the undo, and apply it."""
    undo_plan = workspace.parent / "back.json"
    planned = reconciler(
        "plan", "-C", workspace, "--undo", file, "--out", undo_plan, environ=environ
    )
    assert planned.code == 0, planned.err + planned.out
    ran = reconciler("apply", undo_plan, "--undo", file, "-C", workspace, environ=environ)
    assert ran.code == 0, ran.err
    return planned


def test_undo_restores_fields_and_toggles(
    workspace: Path, environ: dict[str, str], emulator: RunningEmulator, tmp_path: Path
) -> None:
    assert apply(workspace, environ).code == 0
    before = emulator.exports()["Lake"]
    file = workspace / "all.yaml"
    changed = (
        file.read_text()
        .replace("paused: false", "paused: true")
        .replace("end_at: null", "end_at: 2030-01-01")
        .replace("port: 5433", "port: 5434")
    )
    file.write_text(changed)
    log = tmp_path / "audit.jsonl"
    assert apply(workspace, environ, "--log-file", log).code == 0
    planned = undo(workspace, environ, log)
    assert "Undoes      plan " in planned.out
    after = emulator.exports()["Lake"]
    same = ("paused", "end_at", "destination", "secrets")
    assert [after[name] for name in same] == [before[name] for name in same]
    assert "pass-word" not in log.read_text()


def test_undo_keeps_and_reports_later_changes(
    workspace: Path, environ: dict[str, str], emulator: RunningEmulator, tmp_path: Path
) -> None:
    assert apply(workspace, environ).code == 0
    file = workspace / "all.yaml"
    file.write_text(file.read_text().replace("port: 5433", "port: 5434"))
    log = tmp_path / "audit.jsonl"
    apply(workspace, environ, "--log-file", log)
    export = emulator.exports()["Lake"]
    moved = {"destination": {"type": "Postgres", "config": {"port": 6000}}}
    path = f"/api/projects/{export['team_id']}/batch_exports/{export['id']}/"
    emulator.call("PATCH", path, moved).raise_for_status()
    planned = reconciler("plan", "-C", workspace, "--undo", log, environ=environ)
    assert "destination.config.port is not restored: modified since" in planned.out
    assert "No changes. " in planned.out


def test_undo_of_a_create_is_subject_to_the_guards(
    workspace: Path, environ: dict[str, str], emulator: RunningEmulator, tmp_path: Path
) -> None:
    log = tmp_path / "audit.jsonl"
    assert apply(workspace, environ, "--log-file", log).code == 0
    refused = reconciler("plan", "-C", workspace, "--undo", log, environ=environ)
    assert refused.code == 5
    assert "allow_project_deletion" in refused.out
    allowed = "version: 1\nsecrets: [P, U]\npolicy: {allow_project_deletion: true}\n"
    (workspace / "reconciler.yaml").write_text(allowed)
    undo(workspace, environ, log)
    assert emulator.exports() == {}
    assert [project["name"] for project in emulator.state()["projects"]] == ["Default project"]


def test_undo_of_a_deletion_restores_what_it_can(
    workspace: Path, environ: dict[str, str], emulator: RunningEmulator, tmp_path: Path
) -> None:
    body = {
        "name": "Files",
        "interval": "day",
        "paused": True,
        "destination": {"type": "NoOp", "config": {"arg": "x"}},
    }
    assert apply(workspace, environ).code == 0
    project = emulator.exports()["Lake"]["team_id"]
    emulator.call("POST", f"/api/projects/{project}/batch_exports/", body).raise_for_status()
    old = emulator.exports()["Files"]
    (workspace / "gone.yaml").write_text(
        "batch_exports:\n  files: {project: web, name: Files, state: absent, interval: day, "
        "destination: {type: NoOp}}\n"
    )
    saved = tmp_path / "plan.json"
    reconciler("plan", "-C", workspace, "--out", saved, environ=environ)
    assert reconciler("apply", saved, "-C", workspace, environ=environ).code == 0
    assert "Files" not in emulator.exports()
    planned = undo(workspace, environ, saved)
    assert "created again with a new id and without history" in planned.out
    new = emulator.exports()["Files"]
    same = ("interval", "paused", "destination", "model")
    assert [new[name] for name in same] == [old[name] for name in same]
    assert new["id"] != old["id"]


def test_a_file_that_is_not_a_plan_is_reported(workspace: Path, environ: dict[str, str]) -> None:
    ran = reconciler("plan", "-C", workspace, "--undo", workspace / "all.yaml", environ=environ)
    assert ran.code == 1
    assert "not a plan file" in ran.err
