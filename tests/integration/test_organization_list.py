"""Without the organization's list, a plan reads the lists of some projects (issue 31, 4)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git

SECRETS = {"RECONCILER_SECRET_TOKEN": "a-secret-value"}
PROJECTS = [{"id": number, "name": f"P{number}"} for number in range(1, 7)]
SEED = {
    "organizations": [{"id": "org", "name": "O", "projects": PROJECTS}],
    "keys": [{"value": "phx_key"}],
}


def http(name: str, project: str, token: str = "${secret:env:RECONCILER_SECRET_TOKEN}") -> Any:
    config = {"url": "https://us.i.posthog.com/batch/", "token": token}
    destination = {"type": "HTTP", "config": config}
    return {"name": name, "project": project, "interval": "hour", "destination": destination}


class World:
    """Six projects, two with a declared export, and one with an unmanaged one."""

    def __init__(self, folder: Path, running: RunningEmulator) -> None:
        self.git, self.running = Git.init(folder), running
        projects = {f"p{number}": {"name": f"P{number}"} for number in range(1, 7)}
        exports = {f"e{number}": http(f"E{number}", f"p{number}") for number in (1, 2)}
        self.body: dict[str, Any] = {"projects": projects, "batch_exports": exports}
        self.write()
        self.git.commit()
        ran = self.run("apply", "--auto-approve")
        assert ran.code == 0, ran.err
        body = http("Other", "", "a-secret-value")
        del body["project"]
        running.call("POST", "/api/projects/5/batch_exports/", body).raise_for_status()

    def write(self, **settings: Any) -> None:
        text = json.dumps({"version": 1, "secrets": ["TOKEN"], **settings})
        files = {"reconciler.yaml": text, "resources.yaml": json.dumps(self.body)}
        write(self.git.folder, files)

    def run(self, command: str, *more: str) -> Ran:
        environ = {**self.running.environ(), **SECRETS}
        return reconciler(command, "-C", self.git.folder, *more, environ=environ)

    def plan(self, *more: str) -> tuple[dict[str, Any], str]:
        """Plan; return the plan, and the projects whose lists were read, as digits."""
        self.running.clear_requests()
        ran = self.run("plan", "--format", "json", *more)
        assert ran.code in (0, 5), ran.err
        paths = [request["path"].split("/") for request in self.running.requests()]
        read = sorted(path[3] for path in paths if path[2] == "projects" and len(path) == 6)
        return json.loads(ran.out), "".join(read)


def changed(plan: dict[str, Any]) -> list[str]:
    """Return the actions and addresses of changes, without ids of unmanaged objects."""
    return [f"{item['action']} {item['address'].partition(':')[0]}" for item in plan["changes"]]


@pytest.fixture
def world(tmp_path: Path, service_of: StartService) -> World:
    return World(tmp_path / "w", service_of(SEED, "--dialect", "2026", "--no-organization-list"))


def test_a_plan_says_what_it_does_not_read(world: World) -> None:
    plan, _ = world.plan()
    (note,) = (note["message"] for note in plan["notes"] if note["code"] == "not-read")
    assert note == (
        "batch_exports of 4 projects not read: none are declared there, and the server has no "
        "list for the organization"
    )


OTHER_PLACE = {
    **http("E1", "p1")["destination"]["config"],
    "url": "https://eu.i.posthog.com/batch/",
}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str], str]] = {
    "nothing": ({}, {}, [], "12"),
    "updates in place": (
        {"p5": {"timezone": "Europe/Berlin"}},
        {"e1": {"interval": "day"}},
        ["update project.p5", "update batch_export.e1"],
        "12",
    ),
    "a create": ({}, {"other": http("Other", "p1")}, ["create batch_export.other"], "12"),
    "a new place": (
        {},
        {"e1": {"destination": {"type": "HTTP", "config": OTHER_PLACE}}},
        ["update batch_export.e1"],
        "12",
    ),
    "a deleted project": (
        {"p5": {"state": "absent"}},
        {},
        ["delete batch_export.id", "delete project.p5"],
        "125",
    ),
    "a removed export and its project": (
        {"p2": {}},
        {"e2": {}},
        ["delete batch_export.e2", "delete project.p2"],
        "12",
    ),
    "a pinned export": (
        {},
        {"other": http("Other", "p5")},
        ["replace batch_export.other"],
        "123456",
    ),
}
POLICY = {"prune": True, "allow_project_deletion": True}


@pytest.mark.parametrize("case", CASES)
def test_a_plan_reads_the_projects_with_declared_removed_and_pinned_exports(
    world: World, case: str
) -> None:
    """The inventory knows the projects of removed exports."""
    projects, exports, changes, expected = CASES[case]
    world.write(policy=POLICY)
    world.git.commit()
    assert world.run("apply", "--auto-approve").code == 0
    for kind, edits in (("projects", projects), ("batch_exports", exports)):
        for key, fields in edits.items():
            world.body[kind].setdefault(key, {}).update(fields)
            if not fields:
                del world.body[kind][key]
    if case == "a pinned export":
        live_id = world.running.exports()["Other"]["id"]
        world.body["batch_exports"]["other"] |= {"id": live_id, "project": {"id": "1"}}
    world.write(policy=POLICY)
    plan, read = world.plan()
    assert (changed(plan), read) == (changes, expected)


def test_the_project_of_a_removed_export_is_read_after_it_was_renamed(world: World) -> None:
    """The inventory knows it by its id."""
    world.body["batch_exports"].pop("e2")
    world.body["projects"].pop("p2")
    path = f"/api/organizations/{world.running.organization}/projects/2/"
    world.running.call("PATCH", path, {"name": "Two"}).raise_for_status()
    world.write(policy={"prune": True})
    plan, read = world.plan()
    assert (changed(plan), read) == ([], "12")


def test_other_commands_read_all(world: World) -> None:
    for words in (["status"], ["import", "--dry-run"]):
        world.running.clear_requests()
        ran = world.run(*words)
        assert ran.code == 0, ran.err
        paths: Iterable[str] = (request["path"] for request in world.running.requests())
        assert len({path for path in paths if path.endswith("/batch_exports/")}) == 7


@pytest.mark.parametrize("written", ["../../x", "1/../2", "2?x=1", "1#", "%2e%2e", "01", " 1", "7"])
def test_an_id_of_no_project_is_an_error_and_never_part_of_a_path(
    world: World, written: str
) -> None:
    world.body["batch_exports"]["new"] = {**http("New", ""), "project": {"id": written}}
    world.write()
    world.running.clear_requests()
    ran = world.run("plan")
    assert ran.code == 5
    assert f"error: batch_export.new: no live project has the id '{written}'" in ran.out
    paths = [request["path"] for request in world.running.requests()]
    assert {path for path in paths if "/batch_exports/" in path} <= {
        "/api/organizations/org/batch_exports/",
        *(f"/api/projects/{number}/batch_exports/" for number in range(1, 7)),
    }
