"""Undo what was applied."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import DIALECTS, RunningEmulator
from tests.support.fields import NEWER, PROJECT, RETIRED, at

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
    """Plan the undo, and apply it as the output says."""
    undo_plan = workspace.parent / "back.json"
    planned = reconciler(
        "plan", "-C", workspace, "--undo", file, "--out", undo_plan, environ=environ
    )
    assert planned.code == 0, planned.err + planned.out
    (command,) = (text for text in planned.err.splitlines() if "apply it with: " in text)
    program, *words = shlex.split(command.partition("apply it with: ")[2])
    assert program == "reconciler"
    ran = reconciler(*words, environ=environ)
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


def test_plan_d11_the_command_that_is_printed_applies_the_saved_plan(
    workspace: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    """With every option that is not taken from the file."""
    saved = tmp_path / "a plan.json"
    options = ("--no-base", "--rotate-secrets=lake", "--rotate-secrets", "--allow-replace")
    assert apply(workspace, environ).code == 0
    planned = reconciler("plan", "-C", workspace, *options, "--out", saved, environ=environ)
    (line,) = (text for text in planned.err.splitlines() if "apply it with: " in text)
    command = line.partition("apply it with: ")[2]
    assert command == (
        f"reconciler apply '{saved}' --workspace={workspace} --no-base --rotate-secrets=lake "
        "'--rotate-secrets=*' --allow-replace"
    )
    ran = reconciler(*shlex.split(command)[1:], environ=environ)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("dialect", DIALECTS)
def test_plan_d9_a_deleted_project_is_restored_with_what_the_service_takes(
    service_of: StartService, tmp_path: Path, dialect: str
) -> None:
    """Without the dashboard that real servers make; on 2026 without `access_control`, too."""
    running = service_of(None, "--dialect", dialect)
    environ = running.environ()
    plain = {"interval": "hour", "destination": {"type": "NoOp"}}
    settings_of = {**at(PROJECT, 0), **at(NEWER if dialect == "2026" else RETIRED, 0)}
    del settings_of["primary_dashboard"]
    settings_of["app_urls"] = sorted(settings_of["app_urls"])  # Their order has no meaning.
    resources: dict[str, Any] = {
        "projects": {"shop": {**settings_of, "name": "Shop", "week_start_day": None}},
        "batch_exports": {"lake": {"project": "shop", "name": "Lake", **plain}},
    }
    settings = "version: 1\npolicy: {allow_project_deletion: true}\n"
    folder = write(tmp_path / "w", {"reconciler.yaml": settings, "a.yaml": json.dumps(resources)})
    created = apply(folder, environ)
    assert created.code == 0, created.err
    former = project_of(running)
    for resource in (*resources["projects"].values(), *resources["batch_exports"].values()):
        resource["state"] = "absent"
    write(folder, {"a.yaml": json.dumps(resources)})
    log = tmp_path / "log.jsonl"
    assert apply(folder, environ, "--log-file", log).code == 0
    planned = undo(folder, environ, log)
    shown = " ".join(planned.out.split())
    is_newest = dialect == "2026"
    assert ("access_control is not restored" in shown) is is_newest
    assert ("it was a dashboard of the deleted project" in shown) is (dialect != "interface")
    assert "it was a feature flag of the deleted project" in shown
    restored = project_of(running)
    made = {"id", "project_id", "uuid", "created_at", "updated_at", "batch_exports", "dashboards"}
    made |= {"api_token", "secret_api_token", "live_events_token"}
    made |= {"primary_dashboard", "session_recording_linked_flag"}
    assert {**restored, **dict.fromkeys(made)} == {**former, **dict.fromkeys(made)}
    assert running.exports()["Lake"]["destination"]["config"] == {}


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_model_f7_a_deleted_project_is_restored_in_an_organization_without_exports(
    service_of: StartService, tmp_path: Path, dialect: str, *, is_known: bool
) -> None:
    """No export shows the version of the server: the API key does, if it may be read."""
    running = service_of(None, "--dialect", dialect)
    environ, log = running.environ(), tmp_path / "log.jsonl"
    if not is_known:
        match = {"path": "/api/personal_api_keys/@current/"}
        running.admin("PUT", "faults", [{"match": match, "fault": "error", "status": 403}])
    shop: dict[str, Any] = {"name": "Shop", "timezone": "Asia/Tokyo"}
    settings = "version: 1\npolicy: {allow_project_deletion: true}\n"
    folder = write(tmp_path / "w", {"reconciler.yaml": settings})
    for more in ({}, {"state": "absent"}):
        write(folder, {"a.yaml": json.dumps({"projects": {"shop": {**shop, **more}}})})
        assert apply(folder, environ, "--log-file", log).code == 0
    planned = undo(folder, environ, log)
    shown = " ".join(planned.out.split())
    assert ("access_control is not restored" in shown) is (is_known and dialect == "2026")
    assert project_of(running)["timezone"] == "Asia/Tokyo"


def project_of(running: RunningEmulator) -> dict[str, Any]:
    projects = (item for item in running.state()["projects"] if item["name"] == "Shop")
    (project,) = (item for item in projects if not item.get("is_pending_deletion"))
    return project


@pytest.mark.parametrize("name", ["Theirs", "Shop"])
def test_plan_d8_another_project_with_the_id_of_ours_is_not_deleted(
    emulator: RunningEmulator, tmp_path: Path, name: str
) -> None:
    """The service is restored from a backup, and gives the id of the created project again."""
    resources = {"projects": {"shop": {"name": "Shop"}}}
    settings = "version: 1\npolicy: {allow_project_deletion: true}\n"
    folder = write(tmp_path / "w", {"reconciler.yaml": settings, "a.yaml": json.dumps(resources)})
    environ, log = emulator.environ(), tmp_path / "log.jsonl"
    emulator.admin("POST", "snapshots/backup")
    assert apply(folder, environ, "--log-file", log).code == 0
    ours = project_of(emulator)["id"]
    emulator.admin("POST", "snapshots/backup/restore")
    path = f"/api/organizations/{emulator.organization}/projects/"
    assert emulator.call("POST", path, {"name": name}).json()["id"] == ours
    planned = reconciler("plan", "-C", folder, "--undo", log, environ=environ)
    assert planned.code == 0, planned.err
    shown = " ".join(planned.out.split())
    differs = f"is named '{name}'" if name != "Shop" else "has another uuid"
    assert f"project.shop: id {ours} {differs} now: nothing is deleted" in shown
    assert "No changes" in shown
