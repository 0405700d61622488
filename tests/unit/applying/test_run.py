"""Order, concurrency, failures and stops of a run."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from reconciler.applying import actions, execute
from reconciler.applying.run import levels_of
from reconciler.model.event import (
    Done,
    Event,
    Interrupting,
    Report,
    Sending,
    Waiting,
)
from reconciler.model.kind import Action
from reconciler.model.plan import Change, Plan
from reconciler.model.values import Address
from reconciler.service.pace import Stop
from tests.support.transport import mocked
from tests.support.virtual_loop import LoopClock, run_virtually
from tests.support.worlds import desired_of, export, live_of, planned, project, with_secrets
from tests.unit.applying.conftest import SECRETS, World, lake

PARALLELISM = 8


def creates(*names: str) -> Plan:
    return planned(desired_of(*(project(name) for name in names)), live_of())


def tree() -> Plan:
    """Return the plan of two projects with two exports each."""
    parents = ("web", "app")
    exports = (lake(f"{parent}-{n}", parent=parent) for parent in parents for n in (1, 2))
    return planned(desired_of(*map(project, parents), *exports), live_of())


def ends(report: Report) -> int:
    """Return how many changes a report accounts for."""
    return sum(map(len, (report.done, report.failed, report.skipped)))


def test_secrets_are_masked_in_errors(world: World) -> None:
    world.environ = SECRETS
    world.fail({"method": "POST", "path": "*/batch_exports/"}, fault="error", status=400, echo=True)
    (failed,) = world.run(project(), export(destination=with_secrets())).failed
    assert "***" in failed.error
    assert not [secret for secret in SECRETS.values() if secret in failed.error]


@pytest.mark.parametrize("status", [401, 403])
def test_f11_a_refused_key_ends_the_run_early(world: World, status: int) -> None:
    world.fail({"method": "POST"}, fault="error", status=status, detail="Invalid key.")
    plan = creates(*(f"p{number:03}" for number in range(200)))
    report = world.apply(plan)
    assert ends(report) == 200
    assert len(world.running.requests()) < 25
    reason = f"10 requests in a row failed ({status})"
    assert {skipped.because for skipped in report.skipped} == {reason}


def test_an_error_of_this_program_is_reported_and_stops_new_work(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let a pure function fail, as no input should make it do."""
    plan = tree()

    def broken(*_: object) -> bool:
        raise KeyError("hunter2")

    monkeypatch.setattr(actions, "lacks_fields", broken)
    report = world.apply(plan)
    assert ends(report) == 6
    assert [failed.unexpected for failed in report.failed] == [True, True]
    for failed in report.failed:
        assert "unexpected KeyError at test_run.py:" in failed.error
        assert "hunter2" not in failed.error
        assert failed.live_id is not None
    assert {"unexpected KeyError" in skipped.because for skipped in report.skipped} == {True}
    assert world.posts() == 2


class Service:
    """Answers creates after a second of virtual time, and the first one after ten."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.at_once = self.most = 0

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            page = {"count": len(self.objects), "next": None, "results": self.objects}
            return httpx.Response(200, json=page)
        body = json.loads(request.content)
        self.asked.append(body["name"])
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(10 if len(self.asked) == 1 else 1)
        self.at_once -= 1
        self.objects.append({**body, "id": len(self.objects) + 1})
        return httpx.Response(201, json=self.objects[-1])


def with_service(names: int, *stops: float) -> tuple[Service, Report, list[Event], float]:
    """Create projects, with stops at some times. Return what was reported, and the time."""

    async def run() -> tuple[Service, Report, list[Event], float]:
        service, stop, clock, events = Service(), Stop(), LoopClock(), list[Event]()
        plan = creates(*(f"p{number:02}" for number in range(names)))
        for at in stops:
            asyncio.get_running_loop().call_at(at, stop.request)
        async with mocked(service, clock=clock, stop=stop, listen=events.append) as transport:
            report = await execute(plan, transport, listen=events.append, live=live_of())
            return service, report, events, round(clock(), 3)

    return run_virtually(run())


def test_so_many_changes_run_at_once_and_the_next_starts_when_one_ends() -> None:
    count = PARALLELISM * 2 + 1
    service, report, _, ended = with_service(count)
    assert (service.most, len(report.done), ended) == (PARALLELISM, count, 10.0)
    assert service.asked == [f"P{number:02}" for number in range(count)]


def test_a_stop_lets_requests_in_flight_finish_and_starts_nothing() -> None:
    """It is reported at once, not when the next change ends."""
    _, report, events, ended = with_service(PARALLELISM * 8, 5.5)
    assert report.interrupted
    # 7 each second from the others, and those in flight.
    assert (len(report.done), len(report.failed), ended) == (7 * 6 + 1, 0, 10.0)
    assert {skipped.because for skipped in report.skipped} == {"the run was interrupted"}
    assert len(report.skipped) == PARALLELISM * 8 - 7 * 6 - 1
    assert events.count(Interrupting()) == 1
    before = events[: events.index(Interrupting())]
    assert sum(isinstance(event, Done) for event in before) == 7 * 5


def test_f5_a_second_stop_ends_requests_in_flight_and_reports_what_is_unknown() -> None:
    service, report, events, ended = with_service(2, 0.5, 0.6)
    assert [failed.unknown for failed in report.failed] == [True, True]
    assert all("it was not searched for" in failed.error for failed in report.failed)
    assert (service.objects, ended) == ([], 0.6)
    assert Interrupting(forced=True) in events


@pytest.mark.parametrize(
    ("fault", "unknown"),
    [
        ({"fault": "error", "status": 504}, 2),
        ({"fault": "throttle", "retry_after": 600}, 0),
        ({"fault": "error", "status": 429, "code": "throttled"}, 0),
    ],
    ids=["search", "rate limit", "retry"],
)
def test_f5_a_stop_ends_every_wait(world: World, fault: dict[str, Any], unknown: int) -> None:
    stop = Stop()
    world.fail({"method": "POST"}, **fault)
    world.act_before(Waiting, stop.request)
    report = world.apply(tree(), stop=stop)
    assert (report.interrupted, ends(report)) == (True, 6)
    # The second is not sent if the wait after the first outlasts what it relies on.
    assert world.posts() in (1, 2)
    assert [failed.unknown for failed in report.failed] == [True] * unknown


def test_f5_a_stop_while_names_are_read_skips_everything(world: World) -> None:
    stop, plan = Stop(), tree()
    world.known = world.live()
    world.fail({"method": "GET"}, fault="hang")

    def stop_twice() -> None:
        stop.request()
        stop.request()

    world.act_before(Sending, stop_twice, "GET")
    report = world.apply(plan, stop=stop)
    assert {skipped.because for skipped in report.skipped} == {"the run was interrupted"}
    assert (len(report.skipped), world.posts()) == (6, 0)


def test_a_stop_in_the_middle_of_a_change_says_what_was_done(world_2026: World) -> None:
    world, stop = world_2026, Stop()
    filters = [{"key": "email", "value": "@a", "operator": "not_icontains", "type": "person"}]
    world.act_before(Sending, stop.request, "POST")
    (failed,) = world.run(project(test_account_filters=filters), stop=stop).failed
    assert failed.error == "created (id 2), not finished: the run was interrupted"
    assert (failed.live_id, failed.unknown) == ("2", False)


# Levels


def levels(*changes: tuple[Action, str, tuple[str, ...]]) -> list[list[str]]:
    """Return the levels of changes: their action, key, and what they depend on."""
    made = (
        Change(Address("project", key), action, key, depends_on=needed)
        for action, key, needed in changes
    )
    return [[item.name for item in level] for level in levels_of([*made])]


def test_a_level_depends_only_on_the_levels_before() -> None:
    a, b, x = (f"project.{key}:create" for key in "abx")
    needed = {"a": (), "b": (a,), "c": (x,), "d": (a, b)}
    assert levels(*((Action.CREATE, key, of) for key, of in needed.items())) == [
        ["a", "c"],
        ["b"],
        ["d"],
    ]


def test_deletions_come_last_unless_another_change_needs_them() -> None:
    assert levels(
        (Action.DELETE, "taken", ()),
        (Action.CREATE, "a", ("project.taken:delete",)),
        (Action.CREATE, "b", ("project.a:create",)),
        (Action.DELETE, "inside", ()),
        (Action.DELETE, "old", ("project.inside:delete",)),
        (Action.UPDATE, "c", ()),
    ) == [["taken", "c"], ["a"], ["b"], ["inside"], ["old"]]
