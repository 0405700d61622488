"""A project is deleted with its exports by one request, and each export is accounted for."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import pytest

from reconciler.model.decoding import Ending, read_log
from reconciler.model.event import Done, Event, Planned, Sent, Waiting
from reconciler.model.plan import Plan
from reconciler.model.settings import PlanOptions, Policy, Selection
from reconciler.service.pace import Stop
from tests.conftest import StartService
from tests.support.records import log_of
from tests.support.worlds import desired_of, project
from tests.unit.applying.conftest import EXPORTS, NO_OP, SEED, World, lake

POLICY = Policy(prune=True, deletable=frozenset({"project"}))
OTHER, WEB = project("other"), project()
A, B = map(lake, "ab")
IN_PLAN = ["batch_export.a", "batch_export.b", "project.web"]
PROJECT_DELETE = {"method": "DELETE", "path": "*/projects/2/"}


def removal(world: World, **selection: tuple[str, ...]) -> Plan:
    """Return the plan that deletes the project with both exports."""
    options = PlanOptions(selection=Selection(**selection))
    base = desired_of(OTHER, WEB, A, B)
    plan = world.plan(OTHER, policy=POLICY, base=base, options=options)
    assert plan.refusals == ()
    return plan


def changes(ends: Any) -> list[str]:
    return [str(end.change.address) for end in ends]


def deletes(world: World) -> list[str]:
    return [path for method, path in world.running.writes() if method == "DELETE"]


@pytest.fixture(params=["interface", "2026"])
def either(request: pytest.FixtureRequest, service_of: StartService) -> World:
    """Return a service that deletes projects at once, and one that does so later."""
    return filled(World(service_of(SEED, "--dialect", request.param)))


@pytest.fixture
def world(world: World) -> World:
    return filled(world)


def filled(world: World) -> World:
    world.create(OTHER, WEB, A, B)
    return world


@pytest.mark.parametrize(("failures", "outcome"), [(14, "done"), (59, "done"), (60, "unknown")])
def test_fidelity_f2_a_500_to_the_deletion_of_a_project_is_repeated_at_once(
    world_2025: World, failures: int, outcome: str
) -> None:
    """Servers of 2025 delete one old export by each request, and answer it with 500."""
    world = filled(world_2025)
    plan = removal(world)
    fault = {"fault": "error", "status": 500, "when": "before"}
    world.fail({**PROJECT_DELETE, "times": failures}, **fault)
    began = world.clock()
    report = world.apply(plan, retry_for=2)
    ends = report.done if outcome == "done" else report.failed
    assert changes(ends) == IN_PLAN
    assert len(deletes(world)) == min(failures, 59) + 1
    assert not [event for event in world.events if isinstance(event, Waiting)]
    assert world.clock() - began < 10


def test_an_export_alone_is_deleted_by_its_own_request(world: World) -> None:
    plan = removal(world, targets=("batch_export.a",))
    assert changes(world.apply(plan).done) == ["batch_export.a"]
    assert len(deletes(world)) == 1
    assert world.names() == ["B", "Web"]


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        ({"status": 403}, "failed"),
        ({"status": 500}, "unknown"),
        ({"status": 500, "when": "after"}, "done"),
    ],
    ids=["refused", "unknown", "unknown-but-gone"],
)
def test_fidelity_f2_exports_end_as_the_deletion_of_their_project(
    either: World, fault: dict[str, Any], outcome: str
) -> None:
    """tests/integration/test_apply.py has a deletion without a fault."""
    world = either
    plan = removal(world)
    world.clock.running = None  # The service ends a deletion when its clock is moved.
    world.fail(PROJECT_DELETE, fault="error", **fault)
    report = world.apply(plan, retry_for=2)
    error = "delete of project.web failed"
    if outcome == "done":
        assert (changes(report.done), report.complete) == (IN_PLAN, True)
        assert [done.notices for done in report.done[:2]] == [("deleted with project.web",)] * 2
        assert report.done[2].notices != ()
        # Until a server deletes the project, it and its exports do not count as live.
        assert removal(world).empty
    elif outcome == "unknown":
        assert changes(report.failed) == IN_PLAN
        assert all(failed.unknown for failed in report.failed)
        errors = [failed.error for failed in report.failed]
        assert errors[:2] == [f"{error}; outcome unknown"] * 2
    else:
        assert changes(report.failed) == ["project.web"]
        assert changes(report.skipped) == IN_PLAN[:2]
        assert {end.because for end in report.skipped} == {error}
    assert set(deletes(world)) == {"2"}


@pytest.mark.parametrize("asked", [True, False], ids=["before", "after"])
def test_a_stop_leaves_no_export_unaccounted_for(world: World, *, asked: bool) -> None:
    """Before the request for the project, and right after its answer."""
    plan = removal(world)
    stop = Stop()

    def react(event: Event) -> None:
        is_deletion = isinstance(event, Sent) and event.method == "DELETE"
        if (asked and isinstance(event, Planned)) or is_deletion:
            stop.request()

    world.react = react
    report = world.apply(plan, stop=stop)
    assert report.interrupted
    assert changes(report.skipped if asked else report.done) == IN_PLAN
    assert deletes(world) == ([] if asked else ["2"])
    ended = [event for event in world.events if hasattr(event, "change")]
    assert len({event.change.id for event in ended}) == 3


@pytest.mark.parametrize(
    ("method", "body", "error"),
    [
        ("PATCH", {"interval": "day"}, "batch_export.a was modified since the plan was made: "),
        ("POST", {"name": "New", "interval": "hour", "destination": NO_OP}, "created in it since"),
    ],
)
@pytest.mark.parametrize(
    "late", ["", "GET", "DELETE"], ids=["before", "at-the-check", "at-the-end"]
)
def test_a_project_is_not_deleted_if_what_is_in_it_changed(
    world: World, method: str, body: dict[str, Any], error: str, late: str
) -> None:
    plan = removal(world)
    path = EXPORTS + (f"{world.running.exports()['A']['id']}/" if method == "PATCH" else "")

    def change() -> None:
        world.react = lambda _: None
        world.running.call(method, path, body).raise_for_status()

    if late:
        world.fail({**PROJECT_DELETE, "method": late, "times": 1}, fault="throttle", retry_after=40)
        world.react = lambda event: change() if isinstance(event, Waiting) else None
    else:
        change()
    report = world.apply(plan)
    (failed,) = report.failed
    assert (failed.stale, str(failed.change.address)) == (True, "project.web")
    assert error in failed.error
    assert changes(report.skipped) == IN_PLAN[:2]
    assert {"A", "B", "Web"} <= set(world.names())


def test_a_project_whose_exports_cannot_be_listed_is_not_deleted(world: World) -> None:
    plan = removal(world)
    world.fail({"method": "GET", "path": f"*{EXPORTS}"}, fault="error", status=404)
    report = world.apply(plan)
    assert changes(report.failed) == ["project.web"]
    assert world.running.writes() == []


def test_a_killed_run_does_not_lose_the_exports_of_its_project(world: World) -> None:
    """The log has no line of an export: the request for the project may have deleted it."""
    plan = removal(world)
    report = world.apply(plan)
    until_killed = list(takewhile(lambda event: not isinstance(event, Done), world.events))
    assert endings(until_killed) == [Ending.UNKNOWN] * 3
    before_the_request = [event for event in until_killed if not is_write(event)]
    assert endings(before_the_request) == [Ending.NOT_SENT] * 3
    assert endings([*until_killed, *report.done]) == [Ending.DONE] * 3


def is_write(event: Event) -> bool:
    return getattr(event, "method", "GET") != "GET"


def endings(events: list[Event]) -> list[Ending]:
    runs = read_log(log_of(*events))
    assert runs is not None
    return [change.ending for change in runs[0].changes]
