"""A replacement: the new object first, and the deletion of the old one after another check."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.event import Event, Sending, Sent
from reconciler.model.kind import Action
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.resource import Desired, Resource
from reconciler.model.settings import PlanOptions
from tests.support.worlds import desired_of, export, planned, project
from tests.unit.applying.conftest import World

NO_OP = {"type": "NoOp", "config": {}}
BEFORE = desired_of(project(), project("app"), export(destination=NO_OP))


def wanted(**spec: Any) -> Desired:
    return desired_of(project(), project("app"), moved(**spec))


def moved(**spec: Any) -> Resource:
    return export(parent="app", **{"destination": NO_OP, **spec})


def plan(world: World, desired: Desired | None = None) -> tuple[Plan, Live]:
    live = world.live()
    options = PlanOptions(allow_replace=True)
    return planned(desired or wanted(), live, options=options, base=BEFORE), live


def exports(world: World) -> list[tuple[int, str]]:
    """Return the project and the name of every export."""
    return sorted(
        (project["id"], item["name"])
        for project in world.running.state()["projects"]
        for item in project["batch_exports"]
    )


@pytest.fixture
def world(world: World) -> World:
    world.create(project(), project("app"))
    world.create(project(), project("app"), export(destination=NO_OP))
    return world


@pytest.fixture
def ids(world: World) -> dict[str, int]:
    """Return the ids of the projects by name."""
    return {item["name"]: item["id"] for item in world.running.state()["projects"]}


def test_f4_a_move_looks_before_each_write(world: World, ids: dict[str, int]) -> None:
    change, live = plan(world)
    old_id = world.running.exports()["Lake"]["id"]
    assert world.apply(change, live=live).complete
    writes = [request for request in world.running.requests() if request["method"] != "GET"]
    assert [request["method"] for request in writes] == ["POST", "DELETE"]
    assert writes[0]["body"]["name"] == "Lake"
    gets = [item["path"] for item in world.running.requests() if item["method"] == "GET"]
    new = f"/api/projects/{ids['App']}/batch_exports/"
    old = f"/api/projects/{ids['Web']}/batch_exports/{old_id}/"
    assert gets == [new, old, old]
    assert exports(world) == [(ids["App"], "Lake")]


@pytest.mark.parametrize("number", range(1, 3))
@pytest.mark.parametrize("when", ["before", "after"])
def test_f4_a_replacement_that_fails_anywhere_is_finished_by_the_next_run(
    world: World, ids: dict[str, int], number: int, when: str
) -> None:
    method = ("POST", "DELETE")[number - 1]
    change, live = plan(world)
    world.fail({"method": method}, fault="error", status=500, when=when)
    first = world.apply(change, live=live, retry_for=2)
    world.running.admin("DELETE", "faults")
    change, live = plan(world)
    assert world.apply(change, live=live).complete
    assert exports(world) == [(ids["App"], "Lake")]
    assert not plan(world)[0].effective
    if when == "before":
        assert len(first.failed) == 1


def test_f4_a_replacement_that_was_cut_short_says_what_was_done(
    world: World, ids: dict[str, int]
) -> None:
    change, live = plan(world)
    old_id = world.running.exports()["Lake"]["id"]
    world.fail({"method": "DELETE"}, fault="error", status=400, detail="No.")
    (failed,) = world.apply(change, live=live).failed
    assert failed.error.startswith(f"created (id {failed.live_id}), not finished: DELETE ")
    world.running.admin("DELETE", "faults")
    change, live = plan(world)
    (rest,) = change.effective
    assert (rest.action, rest.live_id) == (Action.DELETE, old_id)
    assert world.apply(change, live=live).complete
    assert [request["method"] for request in world.running.requests()] == ["GET", "DELETE"]
    assert exports(world) == [(ids["App"], "Lake")]


def test_an_old_object_that_was_modified_is_not_replaced(world: World) -> None:
    change, live = plan(world)
    (replacement,) = change.effective
    path = f"/api/projects/{replacement.old_parent_id}/batch_exports/{replacement.live_id}/"
    world.running.call("PATCH", path, {"interval": "week"}).raise_for_status()
    (failed,) = world.apply(change, live=live).failed
    assert failed.stale
    assert world.running.writes() == []


def test_an_old_object_that_is_modified_meanwhile_is_not_deleted(world: World) -> None:
    change, live = plan(world)
    (replacement,) = change.effective
    path = f"/api/projects/{replacement.old_parent_id}/batch_exports/{replacement.live_id}/"

    def react(event: Event) -> None:
        if isinstance(event, Sent) and event.method == "POST":
            world.running.call("PATCH", path, {"interval": "week"}).raise_for_status()

    world.react = react
    (failed,) = world.apply(change, live=live).failed
    assert "modified since the plan was made: interval" in failed.error
    assert [method for method, _ in world.running.writes()] == ["POST", "PATCH"]
    assert len(exports(world)) == 2


def test_an_old_object_that_is_deleted_meanwhile_is_no_failure(
    world: World, ids: dict[str, int]
) -> None:
    change, live = plan(world)
    (replacement,) = change.effective
    path = f"/api/projects/{replacement.old_parent_id}/batch_exports/{replacement.live_id}/"

    def react(event: Event) -> None:
        if isinstance(event, Sent) and event.method == "POST":
            world.running.call("DELETE", path).raise_for_status()

    world.react = react
    (done,) = world.apply(change, live=live).done
    assert done.notices == ("the old object is already deleted",)
    assert exports(world) == [(ids["App"], "Lake")]


def test_f4_of_two_clients_that_replace_the_same_object_none_deletes_the_object_of_the_other(
    world: World, ids: dict[str, int]
) -> None:
    change, live = plan(world)
    (replacement,) = change.effective
    body = {"name": "Lake", "interval": "hour"}
    new = f"/api/projects/{replacement.parent_id}/batch_exports/"

    def react(event: Event) -> None:
        if isinstance(event, Sending) and event.method == "POST":
            world.post(new, {**body, "destination": NO_OP})
            world.running.advance(seconds=1)

    world.react = react
    report = world.apply(change, live=live)
    assert report.complete
    assert exports(world) == [(ids["App"], "Lake")] * 2
