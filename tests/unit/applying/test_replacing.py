"""A replacement: the new object first, and the deletion of the old one after another check."""

from __future__ import annotations

from functools import partial

import pytest

from reconciler.model.event import Sending, Sent
from reconciler.model.kind import Action
from reconciler.model.plan import Plan
from reconciler.model.settings import PlanOptions
from tests.support.worlds import desired_of, project
from tests.unit.applying.conftest import NO_OP, World, lake

BEFORE = desired_of(project(), project("app"), lake())


def plan(world: World) -> Plan:
    """Return the plan that moves the export to another project."""
    options = PlanOptions(allow_replace=True)
    moved = lake(parent="app")
    return world.plan(project(), project("app"), moved, options=options, base=BEFORE)


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
    world.create(project(), project("app"), lake())
    return world


@pytest.fixture
def moved(world: World) -> list[tuple[int, str]]:
    """Return the exports after the move."""
    ids = {item["name"]: item["id"] for item in world.running.state()["projects"]}
    return [(ids["App"], "Lake")]


def test_f4_a_move_looks_before_each_write(world: World, moved: list[tuple[int, str]]) -> None:
    change = plan(world)
    (replacement,) = change.effective
    assert world.apply(change).complete
    assert [(item["method"], item["path"]) for item in world.running.requests()] == [
        ("GET", new := f"/api/projects/{replacement.parent_id}/batch_exports/"),
        ("GET", old := old_path(change)),
        ("POST", new),
        ("GET", old),
        ("DELETE", old),
    ]
    assert exports(world) == moved


def old_path(change: Plan) -> str:
    """Return the path of the object that is replaced."""
    (replacement,) = change.effective
    return f"/api/projects/{replacement.old_parent_id}/batch_exports/{replacement.live_id}/"


def test_f4_a_replacement_that_was_cut_short_says_what_was_done(
    world: World, moved: list[tuple[int, str]]
) -> None:
    change = plan(world)
    world.fail({"method": "DELETE"}, fault="error", status=400, detail="No.")
    (failed,) = world.apply(change).failed
    assert failed.error.startswith(f"created (id {failed.live_id}), not finished: DELETE ")
    assert failed.hint == "plan again: the plan then does the rest of the replacement"
    world.running.admin("DELETE", "faults")
    left = plan(world)
    assert [(rest.action, rest.live_id) for rest in left.effective] == [
        (Action.DELETE, change.effective[0].live_id)
    ]
    assert world.apply(left).complete
    assert world.calls() == ["GET", "DELETE"]
    assert exports(world) == moved


@pytest.mark.parametrize("meanwhile", [False, True], ids=["before", "after the create"])
def test_an_old_object_that_was_modified_is_not_deleted(world: World, *, meanwhile: bool) -> None:
    change = plan(world)

    def modify() -> None:
        world.running.call("PATCH", old_path(change), {"interval": "week"}).raise_for_status()

    if meanwhile:
        world.act_before(Sent, modify, "POST")
    else:
        modify()
    (failed,) = world.apply(change).failed
    assert "modified since the plan was made: interval" in failed.error
    assert failed.stale is not meanwhile
    assert [method for method, _ in world.running.writes()] == ["POST", "PATCH"] * meanwhile
    assert len(exports(world)) == 1 + meanwhile


def test_an_old_object_that_is_deleted_meanwhile_is_no_failure(
    world: World, moved: list[tuple[int, str]]
) -> None:
    change = plan(world)
    deleted = partial(world.running.call, "DELETE", old_path(change))
    world.act_before(Sent, lambda: deleted().raise_for_status(), "POST")
    (done,) = world.apply(change).done
    assert done.notices == ("the old object is already deleted",)
    assert exports(world) == moved


def test_f4_of_two_clients_that_replace_the_same_object_none_deletes_the_object_of_the_other(
    world: World, moved: list[tuple[int, str]]
) -> None:
    change = plan(world)
    new = f"/api/projects/{change.effective[0].parent_id}/batch_exports/"

    def create() -> None:
        world.post(new, {"name": "Lake", "interval": "hour", "destination": NO_OP})
        world.running.advance(seconds=1)

    world.act_before(Sending, create, "POST")
    assert world.apply(change).complete
    assert exports(world) == moved * 2
