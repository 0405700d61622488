"""Updates, pauses and deletions: checked, sent, compared."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.applying.check import lacks_fields
from reconciler.model.event import Waiting
from reconciler.model.kind import Action
from reconciler.model.plan import Plan
from reconciler.model.resource import Resource, State
from reconciler.model.settings import Policy
from tests.support.worlds import BY_NAME, desired_of, export, project, with_secrets
from tests.unit.applying.conftest import EXPORTS, NO_OP, SECRETS, World, lake

POLICY = Policy(deletable=frozenset({"project"}))
DAILY, PAUSED, ABSENT = {"interval": "day"}, {"paused": True}, {"state": State.ABSENT}
METHODS = [("PATCH", DAILY), ("POST", PAUSED), ("DELETE", ABSENT)]
KEYS = ("b", "c", "d", "e")


def throttled(times: int, seconds: int = 31) -> dict[str, Any]:
    return {"times": times, "fault": "throttle", "retry_after": seconds}


def plan(world: World, **spec: Any) -> Plan:
    return world.plan(project(), lake(**spec))


@pytest.fixture
def world(world: World) -> World:
    world.create(project(), lake())
    return world


@pytest.mark.parametrize(
    ("spec", "age", "fault", "calls"),
    [
        *((spec, 31, None, ["GET", method]) for method, spec in METHODS),
        # A look of the plan is the check of an update, but not of a deletion.
        (PAUSED, 29, None, ["POST"]),
        (DAILY, 29, None, ["PATCH"]),
        (ABSENT, 0, None, ["GET", "DELETE"]),
        # It becomes old while the write waits.
        (DAILY, 15, throttled(1, 20), ["PATCH", "GET", "PATCH"]),
        *((spec, 31, throttled(2), ["GET", method] * 3) for method, spec in METHODS),
        # A write that always has to wait is sent at last.
        (DAILY, 31, throttled(7), [*["GET", "PATCH"] * 5, *["PATCH"] * 3]),
    ],
    ids=str,
)
def test_performance_f6_an_object_is_looked_at_before_a_write(
    world: World, spec: dict[str, Any], age: int, fault: dict[str, Any] | None, calls: list[str]
) -> None:
    change = plan(world, **spec)
    if fault is not None:
        fault = dict(fault)
        world.fail({"method": calls[-1], "times": fault.pop("times")}, **fault)
    assert world.apply(change, age=age).complete
    assert world.calls() == calls


def test_f6_a_modified_object_is_not_changed(world: World) -> None:
    change = world.plan(project(), lake(interval="day"), lake("pond"))
    world.patch("Lake", {"interval": "week"})
    report = world.apply(change)
    (failed,) = report.failed
    assert (failed.stale, failed.unknown) == (True, False)
    assert failed.error == 'modified since the plan was made: interval: "hour" -> "week"'
    assert [method for method, _ in world.running.writes()] == ["POST"]
    assert [str(done.change.address) for done in report.done] == ["batch_export.pond"]


def test_f6_an_object_that_is_modified_while_a_write_waits_is_not_changed(world: World) -> None:
    change = plan(world, **DAILY)
    world.fail({"method": "PATCH", "times": 1, "body": DAILY}, fault="throttle", retry_after=31)
    world.act_before(Waiting, lambda: world.patch("Lake", {"interval": "week"}))
    (failed,) = world.apply(change).failed
    assert failed.stale
    assert world.running.exports()["Lake"]["interval"] == "week"


@pytest.mark.parametrize("spec", [DAILY, PAUSED, ABSENT], ids=["update", "pause", "delete"])
def test_f6_a_deleted_object_is_not_changed(world: World, spec: dict[str, Any]) -> None:
    change = plan(world, **spec)
    world.delete("Lake")
    report = world.apply(change)
    assert world.running.writes() == []
    if spec is ABSENT:
        assert [done.notices for done in report.done] == [("already deleted",)]
    else:
        (failed,) = report.failed
        assert failed.stale
        assert failed.error.startswith("deleted since the plan was made (id ")


@pytest.mark.parametrize(
    ("spec", "looks"),
    # The list and the one that it does not show; a look at each.
    [(DAILY, 2), (ABSENT, 4)],
)
def test_performance_one_list_checks_many_updates(
    world: World, spec: dict[str, Any], looks: int
) -> None:
    world.create(project(), *(lake(key, name=key) for key in KEYS))
    change = world.plan(project(), *(lake(key, name=key, **spec) for key in KEYS))
    world.patch("c", {"interval": "week"})
    world.delete("d")
    report = world.apply(change)
    stale = [failed.change.address.key for failed in report.failed if failed.stale]
    method, expected = ("PATCH", ["c", "d"]) if spec is DAILY else ("DELETE", ["c"])
    assert stale == expected
    assert sorted(world.calls()) == sorted([*["GET"] * looks, method, method])


def test_performance_a_list_without_the_settings_of_a_plan_is_no_check(world: World) -> None:
    world.create(*(project(key, name=key) for key in KEYS))
    change = world.plan(*(project(key, name=key, autocapture_opt_out=True) for key in KEYS))
    opted = {"autocapture_exceptions_opt_in": True, "autocapture_opt_out": True}
    path = f"/api/organizations/org/projects/{change.effective[0].live_id}/"
    world.running.call("PATCH", path, opted).raise_for_status()
    report = world.apply(change)
    assert [failed.stale for failed in report.failed] == [True]
    assert len(report.done) == len(KEYS) - 1


# Deletions


@pytest.mark.parametrize("fault", [{"fault": "drop"}, {"fault": "error", "status": 504}])
def test_f12_a_deletion_by_this_run_is_not_reported_as_already_deleted(
    world: World, fault: dict[str, Any]
) -> None:
    change = plan(world, **ABSENT)
    world.fail({"method": "DELETE", "times": 1}, when="after", **fault)
    (done,) = world.apply(change).done
    assert done.notices == ()
    assert world.calls() == ["GET", "DELETE", "DELETE"]


def project_gone() -> Resource:
    gone = project()
    return Resource(gone.address, gone.spec, state=State.ABSENT)


@pytest.mark.parametrize("ours", [True, False])
def test_f11_a_project_that_is_being_deleted_already(world_2026: World, *, ours: bool) -> None:
    world = world_2026
    world.create(project())
    change = world.plan(project_gone(), policy=POLICY)
    # The service ends a deletion when its clock is moved.
    world.clock.running = None
    if ours:
        world.fail({"method": "DELETE", "times": 1}, fault="error", status=504, when="after")
    else:
        world.running.call("DELETE", "/api/projects/2/").raise_for_status()
    (done,) = world.apply(change).done
    assert done.notices == (() if ours else ("already deleted",))
    # The list of its exports, and the project.
    assert world.calls() == ["GET", "GET", *(["DELETE", "DELETE", "GET"] if ours else [])]


def test_a_project_in_which_another_client_created_an_export_is_not_deleted(world: World) -> None:
    change = world.plan(project_gone(), policy=POLICY)
    assert {item.action for item in change.effective} == {Action.DELETE}
    world.post(EXPORTS, {"name": "Pond", "interval": "hour", "destination": NO_OP})
    (failed,) = world.apply(change).failed
    assert (failed.stale, failed.error) == (True, "created in it since the plan was made: Pond")
    assert world.running.writes() == []


# Answers


@pytest.mark.parametrize(
    ("body", "rest", "notice"),
    [
        (
            {"merge": {"interval": "hour"}},
            [],
            "the server ignored or altered interval: it reads back different",
        ),
        ({"text": ""}, ["GET"], None),
        ({"value": {}}, ["GET"], None),
        ({"value": None}, ["GET"], None),
        ({"value": []}, ["GET"], None),
        ({"value": {"interval": "hour"}}, ["GET"], None),
    ],
    ids=str,
)
def test_f12_an_answer_to_a_patch_is_compared_and_read_once_if_it_is_odd(
    world: World, body: dict[str, Any], rest: list[str], notice: str | None
) -> None:
    change = plan(world, **DAILY)
    world.fail({"method": "PATCH"}, fault="body", **body)
    (done,) = world.apply(change).done
    assert done.notices == (() if notice is None else (notice,))
    assert world.calls() == ["GET", "PATCH", *rest]


def test_f12_a_patch_that_cannot_be_compared_is_made_nevertheless(world: World) -> None:
    change = plan(world, **DAILY)
    world.fail_each(
        ({"method": "PATCH"}, {"fault": "body", "value": {}}),
        ({"method": "GET", "nth": 2}, {"fault": "error", "status": 404}),
    )
    (done,) = world.apply(change).done
    assert done.notices[0].startswith("not compared with what was sent: GET ")


SETTLED = "a request without a clear answer; the object reads back as requested"


@pytest.mark.parametrize(("method", "spec"), METHODS)
@pytest.mark.parametrize("then", [504, 400, 401, 403])
@pytest.mark.parametrize("when", ["before", "after"])
def test_f8_a_write_without_a_clear_answer_is_settled_by_reading(
    world: World, method: str, spec: dict[str, Any], then: int, when: str
) -> None:
    """Also one whose first attempt may have taken effect, and whose repetition is refused."""
    change = plan(world, **spec)
    lost = {"fault": "error", "status": 504, "when": when}
    refused = {"method": method}, {"fault": "error", "status": then}
    world.fail_each(({"method": method, "times": 1}, lost), refused)
    report = world.apply(change, retry_for=2)
    assert world.calls()[-1] == "GET"
    if when == "after":
        (done,) = report.done
        # A DELETE that is refused as invalid was already done, by this run.
        assert done.notices == (() if (method, then) == ("DELETE", 400) else (SETTLED,))
        return
    (failed,) = report.failed
    assert failed.unknown
    assert ("an attempt before may have taken effect" in failed.error) is (then != 504)


def test_f8_a_write_with_secrets_is_never_settled_by_reading(world: World) -> None:
    world.environ = SECRETS
    wanted = export("pond", destination=with_secrets())
    world.create(project(), lake(), wanted)
    again = export("pond", destination=with_secrets(), interval="day", secret_version="2")
    change = world.plan(project(), lake(), again, base=desired_of(project(), lake(), wanted))
    world.fail({"method": "PATCH"}, fault="error", status=504, when="after")
    (failed,) = world.apply(change, retry_for=2).failed
    assert failed.unknown
    assert set(world.calls()[1:]) == {"PATCH"}


def test_an_answer_with_the_query_elsewhere_is_the_whole_object() -> None:
    answer = {"id": "e1", "schema": {"hogql_query": "SELECT event FROM events"}}
    assert not lacks_fields(BY_NAME["batch_export"], answer, [("sql_query",)])
    assert lacks_fields(BY_NAME["batch_export"], answer, [("interval",)])
