"""Exports below the path of the organization, and plans without its list of exports (issue 31)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.declared import NOOP, declared, seed
from tests.support.emulator import RunningEmulator
from tests.support.repo import Repo
from tests.support.simulated import no_op_export

# Exports without `project:`: the path of the organization serves them where it can.

EXPORT = {"name": "Lake", "interval": "hour", "destination": NOOP}


def workspace(folder: Path, projects: Any = None, **fields: Any) -> Path:
    files = {"batch_exports": {"lake": {**EXPORT, **fields}}}
    files |= {"projects": projects} if projects else {}
    return write(folder, {"reconciler.yaml": "version: 1\n", "a.yaml": json.dumps(files)})


def apply(emulator: RunningEmulator, folder: Path, **environ: str) -> Ran:
    words = ("apply", "-C", folder, "--auto-approve")
    return reconciler(*words, environ={**emulator.environ(), **environ})


def written(emulator: RunningEmulator) -> list[str]:
    """Return the place and the last part of the path of every write."""
    sent = [request["path"] for request in emulator.requests() if request["method"] != "GET"]
    return [f"{path.split('/')[2]} {path.split('/')[-2]}" for path in sent]


def test_an_export_lives_below_the_organization(emulator: RunningEmulator, tmp_path: Path) -> None:
    stages: list[dict[str, Any]] = [{}, {"interval": "day"}, {"paused": True}, {"paused": False}]
    for fields in stages:
        assert apply(emulator, workspace(tmp_path, **fields)).code == 0
        assert "No changes" in apply(emulator, tmp_path).out
    range_ = ("--from", "2026-01-01", "--to", "2026-01-03", "--auto-approve")
    words = ("backfill", "lake", *range_, "-C", workspace(tmp_path, interval="hour"))
    assert reconciler(*words, environ=emulator.environ()).code == 0
    live_id = emulator.exports()["Lake"]["id"]
    assert apply(emulator, workspace(tmp_path, state="absent")).code == 0
    assert emulator.exports() == {}
    last = ["batch_exports", live_id, "pause", live_id, "unpause", "backfill", live_id]
    assert written(emulator) == [f"organizations {part}" for part in last]


@pytest.mark.parametrize("is_complete", [True, False])
def test_an_export_that_another_client_creates_at_once_is_reported(
    emulator: RunningEmulator, tmp_path: Path, *, is_complete: bool
) -> None:
    """Both ids and the lines to paste, also after a run of which a part failed."""
    match = {"method": "POST", "path": "*/organizations/*/batch_exports/", "times": 1}
    rules = [
        {"match": {**match, "body": {"name": "Pond"}}, "fault": "error", "status": 400},
        {"match": {**match, "body": {"name": "Lake"}}, "fault": "twin", "when": "before"},
    ]
    emulator.admin("PUT", "faults", rules)
    pond = {} if is_complete else {"pond": {**EXPORT, "name": "Pond"}}
    write(tmp_path, {"b.yaml": json.dumps({"batch_exports": pond})})
    ran = apply(emulator, workspace(tmp_path))
    assert ran.code == 3, ran.err
    ids = [item["id"] for item in emulator.state()["projects"][0]["batch_exports"]]
    assert len(ids) == 2
    shown = " ".join(ran.err.split())
    assert all(f"id {live_id}, created" in shown for live_id in ids)
    assert f"hint: pin the intended one: batch_exports: {{lake: {{id: {ids[-1]}}}}}" in shown


# Without the organization's list, a plan reads the lists of some projects.

PROJECTS = {f"p{number}": {"name": f"P{number}"} for number in range(1, 7)}
EXPORTS: dict[str, dict[str, Any]] = {f"e{number}": {"project": f"p{number}"} for number in (1, 2)}
SETTINGS = "version: 1\npolicy: {prune: true, allow_project_deletion: true}\n"


@pytest.fixture
def world(tmp_path: Path, service_of: StartService) -> Repo:
    """Return six projects, two with a declared export, and one with an unmanaged one."""
    live = [{"id": int(key[1:]), **project} for key, project in PROJECTS.items()]
    running = service_of(seed(*live), "--dialect", "2026", "--no-organization-list")
    files = {"reconciler.yaml": SETTINGS, "resources.yaml": declared(PROJECTS, **EXPORTS)}
    repo = Repo.of(tmp_path, running, **files)
    repo.apply()
    path = "/api/projects/5/batch_exports/"
    running.call("POST", path, no_op_export("Other")).raise_for_status()
    return repo


def read_by(world: Repo, *words: str) -> tuple[Ran, str]:
    """Run a command; return the projects whose lists were read, as digits."""
    world.running.clear_requests()
    ran = world.run(*words)
    assert ran.code in (0, 5), ran.err
    paths = [request["path"].split("/") for request in world.running.requests()]
    read = {path[3] for path in paths if path[2] == "projects" and len(path) == 6}
    return ran, "".join(sorted(read))


def planned(world: Repo) -> tuple[list[str], str]:
    """Return the changes, without ids of unmanaged objects, and what was read."""
    ran, read = read_by(world, "plan", "--format", "json")
    changes = json.loads(ran.out)["changes"]
    return [f"{item['action']} {item['address'].partition(':')[0]}" for item in changes], read


def test_a_plan_says_what_it_does_not_read(world: Repo) -> None:
    assert world.notes()["not-read"] == (
        "batch_exports of 4 projects not read: none are declared there, and the server has no "
        "list for the organization"
    )


_P5 = {"p5": {"name": "P5", "state": "absent"}}
_ALL_BUT_2 = {key: project for key, project in PROJECTS.items() if key != "p2"}
_DELETES_5 = ["delete batch_export.id", "delete project.p5"]
_DELETES_2 = ["delete batch_export.e2", "delete project.p2"]
_OTHER = {"other": {"name": "Other", "project": {"id": "1"}}}
_REPLACES = ["replace batch_export.other"]
CASES = {
    "nothing": (PROJECTS, EXPORTS, [], "12"),
    "a deleted project": ({**PROJECTS, **_P5}, EXPORTS, _DELETES_5, "125"),
    "a removed export": (PROJECTS, {"e1": EXPORTS["e1"]}, _DELETES_2[:1], "12"),
    "a removed export and its project": (_ALL_BUT_2, {"e1": EXPORTS["e1"]}, _DELETES_2, "12"),
    "a pinned export": (PROJECTS, {**EXPORTS, **_OTHER}, _REPLACES, "123456"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_plan_reads_the_projects_with_declared_removed_and_pinned_exports(
    world: Repo, case: str
) -> None:
    """The inventory knows the projects of removed exports."""
    projects, exports, changes, read = CASES[case]
    live_id = world.running.exports()["Other"]["id"]
    own = {
        key: {**body, **({"id": live_id} if key in _OTHER else {})} for key, body in exports.items()
    }
    write(world.folder, {"resources.yaml": declared(projects, **own)})
    assert planned(world) == (changes, read)


@pytest.mark.parametrize("command", ["status", "import --dry-run"])
def test_other_commands_read_all(world: Repo, command: str) -> None:
    ran, read = read_by(world, *command.split())
    assert (ran.code, read) == (0, "123456")


@pytest.mark.parametrize("written", ["../../x", "1/../2", "2?x=1", "1#", "%2e%2e", "01", " 1", "7"])
def test_an_id_of_no_project_is_an_error_and_never_part_of_a_path(
    world: Repo, written: str
) -> None:
    exports = {**EXPORTS, "new": {"project": {"id": written}}}
    write(world.folder, {"resources.yaml": declared(PROJECTS, **exports)})
    ran, _ = read_by(world, "plan")
    assert f"error: batch_export.new: no live project has the id '{written}'" in ran.out
    paths = [request["path"] for request in world.running.requests()]
    assert {path for path in paths if "/batch_exports/" in path} <= {
        "/api/organizations/org/batch_exports/",
        *(f"/api/projects/{number}/batch_exports/" for number in range(1, 7)),
    }
