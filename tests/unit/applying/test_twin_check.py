"""Two clients create the same object: what the lists show, what is withdrawn, what is reported."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.applying.twins import LOOK_PAUSES
from reconciler.model.event import (
    Done,
    Event,
    Report,
    Sending,
    Sent,
    Twins,
    Waiting,
    Withdrawing,
    Withdrawn,
)
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.resource import Resource
from tests.support.worlds import desired_of, export, planned, project
from tests.unit.applying.conftest import World

NO_OP = {"type": "NoOp", "config": {}}
LAKE = {"name": "Lake", "interval": "hour", "destination": NO_OP}
EXPORTS = "/api/projects/2/batch_exports/"
PROJECTS = "/api/organizations/org/projects/"


def lake(**spec: Any) -> Resource:
    return export(**{"destination": NO_OP, **spec})


def plan(world: World, *resources: Resource) -> tuple[Plan, Live]:
    live = world.live()
    return planned(desired_of(*resources), live), live


def applied(world: World, *, withdraw: bool = True) -> Report:
    change, live = plan(world, project(), lake())
    return world.apply(change, live=live, withdraw=withdraw)


def other_client(
    world: World, *, before: bool, body: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Create an export as another client, just before or after the run's own create."""
    made: list[dict[str, Any]] = []

    def react(event: Event) -> None:
        moment = Sending if before else Sent
        if isinstance(event, moment) and event.method == "POST" and not made:
            # Times of creation differ.
            world.running.advance(seconds=0 if before else 1)
            made.append(world.post(EXPORTS, body or LAKE))
            world.running.advance(seconds=1 if before else 0)

    world.react = react
    return made


@pytest.fixture
def world(world: World) -> World:
    world.create(project())
    return world


def test_apply_a6_the_younger_of_two_equal_exports_is_withdrawn(world: World) -> None:
    other = other_client(world, before=True)
    report = applied(world)
    (withdrawn,) = report.withdrawn
    assert withdrawn.twin_id == other[0]["id"]
    assert (report.done, report.twins, report.complete) == ((), (), False)
    assert world.running.exports()["Lake"]["id"] == other[0]["id"]
    assert world.names() == ["Lake", "Web"]
    ends = [
        type(event) for event in world.events if isinstance(event, (Done, Withdrawing, Withdrawn))
    ]
    assert ends == [Done, Withdrawing, Withdrawn]


def test_f6_the_older_of_two_exports_stays_and_the_younger_may_go(world: World) -> None:
    other = other_client(world, before=False)
    create = world.react

    def react(event: Event) -> None:
        create(event)
        if isinstance(event, Waiting) and other:
            world.running.call("DELETE", f"{EXPORTS}{other.pop()['id']}/").raise_for_status()

    world.react = react
    report = applied(world)
    assert (len(report.done), report.twins, report.complete) == (1, (), True)
    assert world.names() == ["Lake", "Web"]


def test_f6_a_younger_one_that_stays_is_reported_after_thirty_seconds(world: World) -> None:
    other = other_client(world, before=False)
    report = applied(world)
    (twins,) = report.twins
    assert world.clock.pauses == list(LOOK_PAUSES)
    assert (len(report.done), report.complete) == (1, False)
    assert twins.twin_ids == (other[0]["id"],)
    assert twins.because == "the younger one was not withdrawn"
    assert (
        f"batch_export.lake:\n  id: {report.done[0].live_id}\n  id: {other[0]['id']}" in twins.hint
    )
    assert world.names() == ["Lake", "Lake", "Web"]
    assert [event for event in world.events if isinstance(event, Twins)] == [twins]


def test_f6_exports_that_differ_both_stay(world: World) -> None:
    other = other_client(world, before=True, body={**LAKE, "interval": "day"})
    (twins,) = applied(world).twins
    assert twins.twin_ids == (other[0]["id"],)
    assert twins.because == "they differ"
    assert world.clock.pauses == []


def test_f6_the_policy_can_refuse_to_withdraw(world: World) -> None:
    other_client(world, before=True)
    (twins,) = applied(world, withdraw=False).twins
    assert twins.because == "policy.withdraw is never"
    assert world.names() == ["Lake", "Lake", "Web"]


def test_f6_an_export_with_runs_is_not_withdrawn(world: World) -> None:
    other_client(world, before=True)
    create = world.react

    def react(event: Event) -> None:
        create(event)
        if isinstance(event, Sent) and event.method == "POST":
            world.running.advance(hours=2)

    world.react = react
    (twins,) = applied(world).twins
    assert twins.because == "it has runs"


def test_f6_a_modified_export_is_not_withdrawn(world: World) -> None:
    other = other_client(world, before=True)
    create = world.react

    def react(event: Event) -> None:
        create(event)
        if isinstance(event, Done):
            for live_id in (event.live_id, other[0]["id"]):
                world.running.call("POST", f"{EXPORTS}{live_id}/pause/").raise_for_status()

    world.react = react
    (twins,) = applied(world).twins
    assert twins.because == "it was modified after its creation"


def test_f6_an_object_of_the_name_that_is_gone_is_no_twin(world: World) -> None:
    other = other_client(world, before=True)
    create = world.react

    def react(event: Event) -> None:
        create(event)
        if isinstance(event, Sending) and other and event.path == f"{EXPORTS}{other[0]['id']}/":
            world.running.call("DELETE", event.path).raise_for_status()

    world.react = react
    assert applied(world).complete


def test_f6_an_older_object_that_the_plan_knows_is_no_twin(world: World) -> None:
    world.post(EXPORTS, LAKE)
    change, live = plan(world, project(), export("pond", destination=NO_OP, name=" Lake "))
    assert change.empty
    change, _ = plan(world, project(), export("pond", destination=NO_OP))
    assert world.apply(change, live=live).complete


@pytest.mark.parametrize("seconds", [2, 9])
def test_f6_a_list_behind_the_create_is_read_again(world: World, seconds: int) -> None:
    change, live = plan(world, project(), lake())
    world.fail({"method": "GET", "path": "*/batch_exports/"}, fault="lag", seconds=seconds)
    assert world.apply(change, live=live).complete
    assert sum(world.clock.pauses) == (3 if seconds == 2 else 10)


def test_f6_a_list_that_does_not_show_the_create_is_reported(world: World) -> None:
    change, live = plan(world, project(), lake())
    world.fail({"method": "GET", "path": "*/batch_exports/"}, fault="lag", seconds=60)
    report = world.apply(change, live=live)
    (twins,) = report.twins
    assert (len(report.done), twins.twin_ids, report.complete) == (1, (), False)
    assert twins.because == (
        "it is unknown whether there is a second one: the list did not show it within 10 s"
    )


def test_f6_a_check_that_cannot_be_made_is_reported(world: World) -> None:
    change, live = plan(world, project(), lake())
    world.fail({"method": "GET", "path": "*/batch_exports/", "from": 2}, fault="error", status=403)
    (twins,) = world.apply(change, live=live).twins
    assert twins.because.startswith("it is unknown whether there is a second one: GET ")


def test_f6_two_projects_of_a_name_are_reported_and_nothing_is_created_in_them(
    world: World,
) -> None:
    wanted = (project(), project("app"), export("pond", parent="app", destination=NO_OP))
    change, live = plan(world, *wanted)
    made: list[dict[str, Any]] = []

    def react(event: Event) -> None:
        if isinstance(event, Sent) and event.method == "POST" and not made:
            made.append(world.post(PROJECTS, {"name": "App"}))

    world.react = react
    report = world.apply(change, live=live)
    (twins,) = report.twins
    assert twins.twin_ids == (str(made[0]["id"]),)
    assert twins.because == "a project is never deleted to resolve this"
    assert [skipped.because for skipped in report.skipped] == [
        "create of project.app may have made a duplicate"
    ]
    assert world.names() == ["App", "App", "Web"]
    assert world.clock.pauses == []


def test_f6_twins_that_appear_later_are_seen_at_the_end_of_the_run(world: World) -> None:
    wanted = (project(), project("app"), export("pond", parent="app", destination=NO_OP))
    change, live = plan(world, *wanted)

    def react(event: Event) -> None:
        if isinstance(event, Sending) and event.path == "/api/projects/3/batch_exports/":
            world.post(PROJECTS, {"name": "App"})

    world.react = react
    report = world.apply(change, live=live)
    assert len(report.done) == 2
    assert [str(twins.change.address) for twins in report.twins] == ["project.app"]


def test_an_adopted_export_is_never_withdrawn(world: World) -> None:
    change, live = plan(world, project(), lake())
    world.fail_each(
        ({"method": "POST", "times": 1}, {"fault": "error", "status": 504, "when": "after"})
    )
    made: list[dict[str, Any]] = []

    def react(event: Event) -> None:
        if isinstance(event, Done):
            made.append(world.post(EXPORTS, LAKE))

    world.react = react
    report = world.apply(change, live=live)
    assert [done.adopted for done in report.done] == [True]
    assert len(report.twins) == 1
    assert world.names() == ["Lake", "Lake", "Web"]


@pytest.mark.parametrize(
    ("fault", "names"),
    [
        ({"fault": "error", "status": 400, "detail": "No."}, ["Lake", "Lake", "Web"]),
        ({"fault": "error", "status": 404, "when": "after"}, ["Lake", "Web"]),
    ],
)
def test_a_withdrawal_that_fails_is_reported(
    world: World, fault: dict[str, Any], names: list[str]
) -> None:
    other_client(world, before=True)
    world.fail({"method": "DELETE"}, **fault)
    report = applied(world)
    assert len(report.twins) + len(report.withdrawn) == 1
    assert len(report.twins) == (fault["status"] == 400)
    assert world.names() == names
