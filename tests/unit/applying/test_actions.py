"""Updates, pauses and deletions: checked, sent, compared."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.applying.check import lacks_fields
from reconciler.model.event import Done, Event, Waiting
from reconciler.model.kind import Action
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.resource import Lifecycle, Resource, State
from reconciler.model.settings import Policy
from tests.support.worlds import BY_NAME, desired_of, export, planned, project, with_secrets
from tests.unit.applying.conftest import World

NO_OP = {"type": "NoOp", "config": {}}


def lake(**spec: Any) -> Resource:
    return export(**{"destination": NO_OP, **spec})


def plan(world: World, *resources: Resource) -> tuple[Plan, Live]:
    live = world.live()
    return planned(desired_of(*resources), live, Policy(deletable=frozenset({"project"}))), live


def lake_path(world: World) -> str:
    return f"/api/projects/2/batch_exports/{world.running.exports()['Lake']['id']}/"


def calls(world: World) -> list[str]:
    return [request["method"] for request in world.running.requests()]


@pytest.fixture
def world(world: World) -> World:
    world.create(project(), lake())
    return world


@pytest.mark.parametrize(
    ("spec", "sent"),
    [
        ({"interval": "day"}, ["GET", "PATCH"]),
        ({"paused": True}, ["GET", "POST"]),
        ({"state": State.ABSENT}, ["GET", "DELETE"]),
    ],
)
def test_an_update_a_pause_and_a_deletion_take_two_calls(
    world: World, spec: dict[str, Any], sent: list[str]
) -> None:
    change, live = plan(world, project(), lake(**spec))
    assert world.apply(change, live=live).complete
    assert calls(world) == sent


def test_f6_a_modified_object_is_not_changed(world: World) -> None:
    change, live = plan(world, project(), lake(interval="day"), export("pond", destination=NO_OP))
    world.running.call("PATCH", lake_path(world), {"interval": "week"}).raise_for_status()
    report = world.apply(change, live=live)
    (failed,) = report.failed
    assert (failed.stale, failed.unknown) == (True, False)
    assert failed.error == 'modified since the plan was made: interval: "hour" -> "week"'
    assert [method for method, _ in world.running.writes()] == ["POST"]
    assert [str(done.change.address) for done in report.done] == ["batch_export.pond"]


@pytest.mark.parametrize("spec", [{"interval": "day"}, {"paused": True}])
def test_f6_a_deleted_object_is_not_changed(world: World, spec: dict[str, Any]) -> None:
    change, live = plan(world, project(), lake(**spec))
    world.running.call("DELETE", lake_path(world)).raise_for_status()
    (failed,) = world.apply(change, live=live).failed
    assert failed.stale
    assert failed.error.startswith("deleted since the plan was made (id ")
    assert world.running.writes() == []


def test_performance_a_look_of_the_plan_is_the_check_of_an_update(world: World) -> None:
    for spec, method in (
        ({"paused": True}, "POST"),
        ({"paused": True, "interval": "day"}, "PATCH"),
    ):
        change, live = plan(world, project(), lake(**spec))
        assert world.apply(change, live=live, age=29.0).complete
        assert calls(world) == [method]


def test_performance_a_look_that_becomes_old_while_a_write_waits_is_repeated(world: World) -> None:
    change, live = plan(world, project(), lake(interval="day"))
    world.fail({"method": "PATCH", "times": 1}, fault="throttle", retry_after=20)
    assert world.apply(change, live=live, age=15.0).complete
    assert calls(world) == ["PATCH", "GET", "PATCH"]


def test_performance_a_deletion_is_checked_however_recent_the_plan_is(world: World) -> None:
    change, live = plan(world, project(), lake(state=State.ABSENT))
    assert world.apply(change, live=live, age=0.0).complete
    assert calls(world) == ["GET", "DELETE"]


KEYS = ("b", "c", "d", "e")


@pytest.mark.parametrize(
    ("spec", "looks"),
    # The list and the one that it does not show; a look at each.
    [({"interval": "day"}, 2), ({"state": State.ABSENT}, 4)],
)
def test_performance_one_list_checks_many_updates(
    world: World, spec: dict[str, Any], looks: int
) -> None:
    world.create(project(), *(export(key, name=key, destination=NO_OP) for key in KEYS))
    wanted = (export(key, name=key, destination=NO_OP, **spec) for key in KEYS)
    change, live = plan(world, project(), *wanted)
    path = f"/api/projects/2/batch_exports/{world.running.exports()['c']['id']}/"
    world.running.call("PATCH", path, {"interval": "week"}).raise_for_status()
    path = f"/api/projects/2/batch_exports/{world.running.exports()['d']['id']}/"
    world.running.call("DELETE", path).raise_for_status()
    report = world.apply(change, live=live)
    stale = [failed.change.address.key for failed in report.failed if failed.stale]
    is_update = "interval" in spec
    assert stale == (["c", "d"] if is_update else ["c"])
    method = "PATCH" if is_update else "DELETE"
    assert sorted(calls(world)) == sorted([*["GET"] * looks, method, method])


def test_performance_a_list_shows_fields_that_have_their_default(world: World) -> None:
    world.create(*(project(key, name=key) for key in KEYS))
    wanted = (project(key, name=key, timezone="Europe/Berlin") for key in KEYS)
    change, live = plan(world, *wanted)
    assert world.apply(change, live=live).complete
    assert sorted(calls(world)) == ["GET", *["PATCH"] * len(KEYS)]


def test_performance_a_list_that_cannot_check_is_read_once(world: World) -> None:
    world.create(*(project(key, name=key) for key in KEYS))
    wanted = (project(key, name=key, autocapture_opt_out=True) for key in KEYS)
    change, live = plan(world, *wanted)

    def react(event: Event) -> None:
        if isinstance(event, Done):
            world.clock.now += 31

    world.react = react
    assert world.apply(change, live=live, parallelism=1).complete
    assert calls(world) == ["GET", *["GET", "PATCH"] * len(KEYS)]


def test_performance_a_list_without_the_settings_of_a_plan_is_no_check(world: World) -> None:
    world.create(*(project(key, name=key) for key in KEYS))
    wanted = (project(key, name=key, autocapture_opt_out=True) for key in KEYS)
    change, live = plan(world, *wanted)
    opted = {"autocapture_exceptions_opt_in": True, "autocapture_opt_out": True}
    path = f"/api/organizations/org/projects/{change.effective[0].live_id}/"
    world.running.call("PATCH", path, opted).raise_for_status()
    report = world.apply(change, live=live)
    assert [failed.stale for failed in report.failed] == [True]
    assert len(report.done) == len(KEYS) - 1


THROTTLED = {"fault": "throttle", "retry_after": 31}


@pytest.mark.parametrize(
    ("method", "spec"),
    [
        ("PATCH", {"interval": "day"}),
        ("POST", {"paused": True}),
        ("DELETE", {"state": State.ABSENT}),
    ],
)
def test_f6_the_check_is_repeated_before_a_write_that_had_to_wait(
    world: World, method: str, spec: dict[str, Any]
) -> None:
    change, live = plan(world, project(), lake(**spec))
    world.fail({"method": method, "times": 2}, **THROTTLED)
    assert world.apply(change, live=live).complete
    assert calls(world) == ["GET", method, "GET", method, "GET", method]


def test_f6_an_object_that_is_modified_while_a_write_waits_is_not_changed(world: World) -> None:
    change, live = plan(world, project(), lake(interval="day"))
    world.fail({"method": "PATCH", "times": 1, "body": {"interval": "day"}}, **THROTTLED)
    path = lake_path(world)

    def react(event: Event) -> None:
        if isinstance(event, Waiting):
            world.running.call("PATCH", path, {"interval": "week"}).raise_for_status()

    world.react = react
    (failed,) = world.apply(change, live=live).failed
    assert failed.stale
    assert world.running.exports()["Lake"]["interval"] == "week"


def test_a_write_that_always_has_to_wait_is_sent_at_last(world: World) -> None:
    change, live = plan(world, project(), lake(interval="day"))
    world.fail({"method": "PATCH", "times": 7}, **THROTTLED)
    assert world.apply(change, live=live).complete
    assert calls(world).count("GET") == 5


def test_pause_and_unpause_are_calls_of_their_own(world: World) -> None:
    for paused, action in ((True, "pause"), (False, "unpause")):
        change, live = plan(world, project(), lake(paused=paused))
        assert world.apply(change, live=live).complete
        assert world.running.writes() == [("POST", action)]


def test_an_object_that_is_already_deleted_is_no_failure(world: World) -> None:
    change, live = plan(world, project(), lake(state=State.ABSENT))
    world.running.call("DELETE", lake_path(world)).raise_for_status()
    (done,) = world.apply(change, live=live).done
    assert done.notices == ("already deleted",)
    assert world.running.writes() == []


@pytest.mark.parametrize("fault", [{"fault": "drop"}, {"fault": "error", "status": 504}])
def test_f12_a_deletion_by_this_run_is_not_reported_as_already_deleted(
    world: World, fault: dict[str, Any]
) -> None:
    change, live = plan(world, project(), lake(state=State.ABSENT))
    world.fail({"method": "DELETE", "times": 1}, when="after", **fault)
    (done,) = world.apply(change, live=live).done
    assert done.notices == ()
    assert calls(world) == ["GET", "DELETE", "DELETE"]


def test_f11_a_project_that_this_run_deleted_is_being_deleted_already(world_2026: World) -> None:
    world = world_2026
    world.create(project())
    change, live = plan(world, project_gone())
    world.fail({"method": "DELETE", "times": 1}, fault="error", status=504, when="after")
    # The service ends a deletion when its clock is moved.
    world.clock.running = None
    (done,) = world.apply(change, live=live).done
    assert done.notices == ()
    # The list of its exports, and the project.
    assert calls(world) == ["GET", "GET", "DELETE", "DELETE", "GET"]


def test_a_project_that_another_client_deleted_is_already_deleted(world_2026: World) -> None:
    world = world_2026
    world.create(project())
    change, live = plan(world, project_gone())
    world.running.call("DELETE", "/api/projects/2/").raise_for_status()
    (done,) = world.apply(change, live=live).done
    assert done.notices == ("already deleted",)
    assert calls(world) == ["GET", "GET"]


def test_a_project_in_which_another_client_created_an_export_is_not_deleted(world: World) -> None:
    change, live = plan(world, project_gone())
    assert {item.action for item in change.effective} == {Action.DELETE}
    body = {"name": "Pond", "interval": "hour", "destination": NO_OP}
    world.post("/api/projects/2/batch_exports/", body)
    (failed,) = world.apply(change, live=live).failed
    assert (failed.stale, failed.error) == (True, "created in it since the plan was made: Pond")
    assert world.running.writes() == []


def project_gone() -> Resource:
    gone = project()
    return Resource(gone.address, gone.spec, lifecycle=Lifecycle(), state=State.ABSENT)


def test_an_ignored_field_is_reported(world: World) -> None:
    change, live = plan(world, project(), lake(interval="day"))
    world.fail({"method": "PATCH"}, fault="body", merge={"interval": "hour"})
    (done,) = world.apply(change, live=live).done
    assert done.notices == ("the server ignored or altered interval: it reads back different",)


@pytest.mark.parametrize(
    "body",
    [{"text": ""}, {"value": {}}, {"value": None}, {"value": []}, {"value": {"interval": "hour"}}],
    ids=str,
)
def test_f12_an_odd_answer_to_a_patch_is_read_once_and_gives_no_false_notice(
    world: World, body: dict[str, Any]
) -> None:
    change, live = plan(world, project(), lake(interval="day"))
    world.fail({"method": "PATCH"}, fault="body", **body)
    (done,) = world.apply(change, live=live).done
    assert done.notices == ()
    assert calls(world) == ["GET", "PATCH", "GET"]


def test_f12_a_patch_that_cannot_be_compared_is_made_nevertheless(world: World) -> None:
    change, live = plan(world, project(), lake(interval="day"))
    world.fail_each(
        ({"method": "PATCH"}, {"fault": "body", "value": {}}),
        ({"method": "GET", "nth": 2}, {"fault": "error", "status": 404}),
    )
    (done,) = world.apply(change, live=live).done
    assert done.notices[0].startswith("not compared with what was sent: GET ")


UNCLEAR = {"fault": "error", "status": 504}


@pytest.mark.parametrize(
    ("method", "spec"),
    [
        ("PATCH", {"interval": "day"}),
        ("POST", {"paused": True}),
        ("DELETE", {"state": State.ABSENT}),
    ],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_f8_a_write_without_a_clear_answer_is_settled_by_reading(
    world: World, method: str, spec: dict[str, Any], when: str
) -> None:
    change, live = plan(world, project(), lake(**spec))
    world.fail({"method": method}, when=when, **UNCLEAR)
    report = world.apply(change, live=live, retry_for=2)
    if when == "after":
        (done,) = report.done
        settled = "a request without a clear answer; the object reads back as requested"
        # A repeated DELETE is answered with 404.
        assert done.notices == (settled,)
    else:
        (failed,) = report.failed
        assert failed.unknown
    assert calls(world)[-1] == "GET"


def test_f8_a_write_with_secrets_is_never_settled_by_reading(world: World) -> None:
    world.environ = {"ID": "key-id-1234", "KEY": "hunter2hunter2"}
    wanted = export("pond", destination=with_secrets())
    world.create(project(), lake(), wanted)
    again = export("pond", destination=with_secrets(), interval="day", secret_version="2")
    live = world.live()
    change = planned(
        desired_of(project(), lake(), again), live, base=desired_of(project(), lake(), wanted)
    )
    world.fail({"method": "PATCH"}, when="after", **UNCLEAR)
    (failed,) = world.apply(change, live=live, retry_for=2).failed
    assert failed.unknown
    assert set(calls(world)[1:]) == {"PATCH"}


def test_an_answer_with_the_query_elsewhere_is_the_whole_object() -> None:
    answer = {"id": "e1", "schema": {"hogql_query": "SELECT event FROM events"}}
    assert not lacks_fields(BY_NAME["batch_export"], answer, [("sql_query",)])
    assert lacks_fields(BY_NAME["batch_export"], answer, [("interval",)])
