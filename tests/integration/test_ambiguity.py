"""M6: what is ambiguous concerns one resource. The rest is planned, applied and operated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator

WEB = {"web": {"name": "Web"}}


def export(name: str, **fields: Any) -> dict[str, Any]:
    destination = {"type": "NoOp", "config": {}}
    return {"name": name, "project": "web", "interval": "hour", "destination": destination} | fields


@pytest.fixture
def twins(emulator: RunningEmulator) -> list[str]:
    """Return the ids of two live exports of one name."""
    path = f"/api/organizations/{emulator.organization}/projects/"
    project = emulator.call("POST", path, {"name": "Web"}).json()["id"]
    body = {"name": "Lake", "interval": "hour", "destination": {"type": "NoOp", "config": {}}}
    path = f"/api/projects/{project}/batch_exports/"
    return [str(emulator.call("POST", path, body).json()["id"]) for _ in range(2)]


@pytest.fixture
def run(tmp_path: Path, emulator: RunningEmulator) -> Any:
    def run(*arguments: str, projects: Any = None, **exports: Any) -> Ran:
        declared = {"lake": export("Lake"), "new": export("New"), **exports}
        files = {"projects": projects or WEB, "batch_exports": declared}
        write(tmp_path, {"reconciler.yaml": "version: 1\n", "all.yaml": json.dumps(files)})
        return reconciler(*arguments, "-C", tmp_path, environ=emulator.environ())

    return run


def test_m6_the_rest_is_planned_and_applied_without_it(run: Any, twins: list[str]) -> None:
    plan = json.loads(run("plan", "--format", "json").out)
    assert [change["address"] for change in plan["changes"] if change["action"] == "create"] == [
        "batch_export.new"
    ]
    (refusal,) = plan["refusals"]
    assert (refusal["rule"], refusal["addresses"]) == ("ambiguous", ["batch_export.lake"])
    assert [item["address"] for item in refusal["objects"]] == [
        f"batch_export.id:{item}" for item in twins
    ]
    assert all(f"id {item}, created 20" in refusal["message"] for item in twins)
    assert f"{{lake: {{id: {twins[0]}}}}}" in refusal["allow"]
    refused = run("apply", "--auto-approve")
    assert (refused.code, "nothing was sent" in refused.err) == (5, True)
    ran = run("apply", "--auto-approve", "--exclude", "lake")
    assert ran.code == 0
    assert "+ created batch_export.new" in ran.err + ran.out
    pinned = run("plan", lake=export("Lake", id=twins[1]))
    assert (pinned.code, "No changes." in pinned.out) == (0, True)


def test_m6_operations_list_it_and_take_live_ids(run: Any, twins: list[str]) -> None:
    """The fix of reliability.md, "keep the one with runs", needs `runs` and `pause` by id."""
    for words in ("runs {}", "logs {}", "gaps {}", "status {}", "pause {} --auto-approve"):
        ran = run(*words.format(twins[0]).split())
        assert (ran.code in (0, 2), "batch_export.lake: 2 live" in ran.err) == (True, True), words
    ran = run("runs", "lake")
    assert (ran.code, all(item in ran.err for item in twins)) == (1, True)
    listed = json.loads(run("status", "--all", "--format", "json").out)["exports"]
    assert {item["address"] for item in listed} == {f"batch_export.id:{item}" for item in twins}
    assert run("projects", "list").code == 0
    ran = run("drift")
    assert "batch_export.lake: 2 live" in ran.out + ran.err


def test_m6_an_ambiguous_project_refuses_what_is_in_it_and_nothing_else(
    run: Any, twins: list[str], emulator: RunningEmulator
) -> None:
    path = f"/api/organizations/{emulator.organization}/projects/"
    emulator.call("POST", path, {"name": "Web"}).raise_for_status()
    projects = {**WEB, "app": {"name": "App"}}
    other = {"projects": projects, "other": export("Other", project="app")}
    plan = json.loads(run("plan", "--format", "json", **other).out)
    created = [change["address"] for change in plan["changes"] if change["action"] == "create"]
    assert created == ["project.app", "batch_export.other"]
    assert [refusal["addresses"] for refusal in plan["refusals"]] == [
        ["project.web"],
        ["batch_export.lake", "batch_export.new"],
    ]
    rest = "--exclude=web,lake,new"
    assert run("apply", "--auto-approve", rest, **other).code == 0
    assert emulator.exports().keys() == {"Lake", "Other"}


def test_m6_a_project_that_contains_a_candidate_is_not_deleted(
    run: Any, twins: list[str], emulator: RunningEmulator
) -> None:
    """Deleting the former project would delete the export that may be the one to keep."""
    (web,) = {export["team_id"] for export in emulator.exports().values()}
    path = f"/api/organizations/{emulator.organization}/projects/"
    body = {"name": "Lake", "interval": "hour", "destination": {"type": "NoOp", "config": {}}}
    new = emulator.call("POST", path, {"name": "Next"}).json()["id"]
    emulator.call("POST", f"/api/projects/{new}/batch_exports/", body).raise_for_status()
    projects = {
        "old": {"name": "Web", "id": web, "state": "absent"},
        "web": {"name": "Next", "id": new},
    }
    lake = export("Lake", project={"id": str(web)})
    plan = run("plan", "--exclude", "lake", "--format", "json", projects=projects, lake=lake)
    rules = {refusal["rule"] for refusal in json.loads(plan.out)["refusals"]}
    assert (plan.code, "ambiguous" in rules) == (5, True)


def test_two_resources_with_one_former_name_are_refused(
    run: Any, emulator: RunningEmulator
) -> None:
    """Which of both was renamed would be a guess."""
    path = f"/api/organizations/{emulator.organization}/projects/"
    project = emulator.call("POST", path, {"name": "Web"}).json()["id"]
    body = {"name": "Old", "interval": "hour", "destination": {"type": "NoOp", "config": {}}}
    emulator.call("POST", f"/api/projects/{project}/batch_exports/", body)
    renamed = {"lifecycle": {"renamed_from": ["Old"]}}
    exports = {"lake": export("Lake", **renamed), "new": export("New", **renamed)}
    plan = json.loads(run("plan", "--format", "json", **exports).out)
    assert not plan["changes"]
    (refusal,) = plan["refusals"]
    assert refusal["addresses"] == ["batch_export.lake", "batch_export.new"]
    assert (refusal["at"]["file"], "by `id`" in refusal["allow"]) == ("all.yaml", True)
