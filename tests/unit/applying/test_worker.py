"""Each sort of change: what is sent, checked before it and verified after it."""

from __future__ import annotations

import pytest

from reconciler.model.event import Event, Started
from reconciler.model.plan import Plan
from reconciler.model.policy import Policy
from reconciler.model.resource import Resource, State
from tests.support.worlds import desired_of, export, live_of, planned, project
from tests.unit.applying.conftest import World

NO_OP = {"type": "NoOp", "config": {}}


def lake(**spec: object) -> Resource:
    return export(destination=NO_OP, **spec)


def created(world: World, *resources: Resource) -> None:
    report = world.apply(planned(desired_of(*resources), world.live()))
    assert not report.failed
    world.events.clear()


def plan(world: World, *resources: Resource) -> Plan:
    return planned(desired_of(*resources), world.live(), Policy())


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("fault", [{"fault": "drop"}, {"fault": "error", "status": 503}])
def test_a_create_with_an_unknown_outcome_is_searched_before_it_is_repeated(
    world: World, when: str, fault: dict[str, object]
) -> None:
    world.fail({"method": "POST", "times": 1}, when=when, **fault)
    (done,) = world.apply(planned(desired_of(project()), live_of())).done
    assert world.names() == ["Web"]
    assert done.live_id is not None
    posts = [name for method, name in world.running.writes() if method == "POST"]
    assert len(posts) == (1 if when == "after" else 2)


def test_a_second_unknown_outcome_is_reported(world: World) -> None:
    world.fail({"method": "POST"}, fault="error", status=503)
    (failed,) = world.apply(planned(desired_of(project()), live_of())).failed
    assert failed.ambiguous
    assert "503: A server error occurred; outcome unknown" in failed.error
    assert len(world.running.writes()) == 2


def test_two_new_objects_of_the_name_are_reported_and_none_is_chosen(world: World) -> None:
    created(world, project())
    change = plan(world, project(), lake())
    world.fail({"method": "POST", "body": {"interval": "hour"}}, fault="drop", when="after")

    def listen(event: Event) -> None:
        """Create an object of the same name just before the run does."""
        if isinstance(event, Started):
            body = {"name": "Lake", "interval": "day", "destination": NO_OP}
            world.running.call("POST", "/api/projects/2/batch_exports/", body).raise_for_status()

    (failed,) = world.apply(change, listen).failed
    assert failed.ambiguous
    assert "there are 2 objects named 'Lake' (ids " in failed.error
    assert "pin one by `id`" in (failed.hint or "")
    assert len(world.running.writes()) == 2


def test_a_response_without_an_id_is_an_unknown_outcome(world: World) -> None:
    world.fail({"method": "POST", "times": 1}, fault="body", value={}, when="after")
    (done,) = world.apply(planned(desired_of(project()), live_of())).done
    assert done.live_id == "2"
    assert world.names() == ["Web"]


def test_a_modified_object_is_not_changed(world: World) -> None:
    created(world, project(), lake())
    change = plan(world, project(), lake(interval="day"))
    live_id = world.running.exports()["Lake"]["id"]
    path = f"/api/projects/2/batch_exports/{live_id}/"
    world.running.call("PATCH", path, {"interval": "week"}).raise_for_status()
    (failed,) = world.apply(change).failed
    assert failed.error == 'modified since the plan was made: interval: "hour" -> "week"'
    assert world.running.writes() == []


def test_pause_and_unpause_are_calls_of_their_own(world: World) -> None:
    created(world, project(), lake())
    assert world.apply(plan(world, project(), lake(paused=True))).done
    assert world.running.writes() == [("POST", "pause")]
    assert world.apply(plan(world, project(), lake(paused=False))).done
    assert world.running.writes() == [("POST", "unpause")]


def test_an_object_that_is_already_deleted_is_no_failure(world: World) -> None:
    created(world, project(), lake())
    change = plan(world, project(), lake(state=State.ABSENT))
    live_id = world.running.exports()["Lake"]["id"]
    world.running.call("DELETE", f"/api/projects/2/batch_exports/{live_id}/").raise_for_status()
    (done,) = world.apply(change).done
    assert done.notices == ("already deleted",)


def test_an_ignored_field_is_reported(world: World) -> None:
    created(world, project(), lake())
    change = plan(world, project(), lake(interval="day"))
    world.fail({"method": "PATCH"}, fault="body", merge={"interval": "hour"})
    (done,) = world.apply(change).done
    assert done.notices == ("the server ignored or altered interval: it reads back different",)
