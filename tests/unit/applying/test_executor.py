"""Order, concurrency, failures and stops of a run."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from reconciler.applying import execute
from reconciler.applying.executor import CONCURRENCY
from reconciler.errors import SecretUnavailable
from reconciler.model.event import Done, Event, Failed, Interrupting, Planned, Report, Started
from reconciler.model.plan import Plan
from tests.support.transport import mocked, resolver
from tests.support.worlds import KINDS, desired_of, export, live_of, planned, project, with_secrets
from tests.unit.applying.conftest import World

NO_OP = {"type": "NoOp", "config": {}}


def creates(*names: str) -> Plan:
    return planned(desired_of(*(project(name) for name in names)), live_of())


def tree() -> Plan:
    """Return the plan of two projects with two exports each."""
    return planned(
        desired_of(
            *(project(name) for name in ("web", "app")),
            *(
                export(f"{parent}-{number}", parent=parent, destination=NO_OP)
                for parent in ("web", "app")
                for number in (1, 2)
            ),
        ),
        live_of(),
    )


def test_objects_are_created_after_their_parents(world: World) -> None:
    report = world.apply(tree())
    assert len(report.done) == 6
    assert world.names() == ["App", "App-1", "App-2", "Web", "Web-1", "Web-2"]
    assert isinstance(world.events[0], Planned)
    order = [
        (type(event).__name__, str(event.change.address))
        for event in world.events
        if isinstance(event, (Started, Done))
    ]
    for parent in ("web", "app"):
        parent_done = order.index(("Done", f"project.{parent}"))
        for number in (1, 2):
            assert parent_done < order.index(("Started", f"batch_export.{parent}-{number}"))


def test_a_failure_skips_only_what_depends_on_it(world: World) -> None:
    world.fail({"method": "POST", "body": {"name": "Web"}}, fault="error", status=400, detail="No.")
    report = world.apply(tree())
    assert [(str(failed.change.address), failed.error[-4:]) for failed in report.failed] == [
        ("project.web", " No.")
    ]
    assert {(str(skipped.change.address), skipped.because) for skipped in report.skipped} == {
        ("batch_export.web-1", "create of project.web failed"),
        ("batch_export.web-2", "create of project.web failed"),
    }
    assert world.names() == ["App", "App-1", "App-2"]


def test_a_missing_secret_is_reported_before_the_first_request(world: World) -> None:
    plan = planned(desired_of(project(), export(destination=with_secrets())), live_of())
    with pytest.raises(SecretUnavailable) as raised:
        world.apply(plan)
    for name in ("ID", "KEY"):
        assert f"secret ${{secret:env:{name}}} is not set" in raised.value.message
    assert raised.value.message.count("needed by batch_export.lake") == 2
    assert (world.events, world.running.requests()) == ([], [])


def test_secrets_are_masked_in_errors(world: World) -> None:
    world.environ = {"ID": "key-id-1234", "KEY": "hunter2hunter2"}
    world.fail({"path": "*/batch_exports/"}, fault="error", status=400, echo=True)
    plan = planned(desired_of(project(), export(destination=with_secrets())), live_of())
    (failed,) = world.apply(plan).failed
    assert "***" in failed.error
    assert "hunter2" not in failed.error
    assert "key-id" not in failed.error


class Service:
    """Responds to creates one at a time, when the test says so; the embedded service can't."""

    def __init__(self) -> None:
        self.waiting: list[tuple[str, asyncio.Event]] = []
        self.objects: list[dict[str, Any]] = []
        self.most = 0

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            live_id = int(request.url.path.rstrip("/").rpartition("/")[2])
            return httpx.Response(200, json=self.objects[live_id])
        body = json.loads(request.content)
        answered = asyncio.Event()
        self.waiting.append((body["name"], answered))
        self.most = max(self.most, len(self.waiting))
        await answered.wait()
        self.objects.append({**body, "id": len(self.objects)})
        return httpx.Response(201, json=self.objects[-1])

    async def answer(self) -> None:
        """Answer the oldest request when the client can send no more."""
        for _ in range(100):
            await asyncio.sleep(0)
        _, answered = self.waiting.pop(0)
        answered.set()


def test_so_many_changes_run_at_once_and_the_next_starts_when_one_ends() -> None:
    names = [f"p{number:02}" for number in range(CONCURRENCY * 2 + 1)]

    async def run() -> tuple[Service, Report]:
        service = Service()
        async with mocked(service, connections=99) as transport:
            running = asyncio.create_task(
                execute(
                    creates(*names),
                    transport,
                    kinds=KINDS,
                    secrets=resolver(),
                    listen=lambda _: None,
                    stop=asyncio.Event(),
                )
            )
            for _ in names:
                await service.answer()
            return service, await running

    service, report = asyncio.run(run())
    assert service.most == CONCURRENCY
    assert len(report.done) == len(names)
    assert [item["name"] for item in service.objects] == [name.title() for name in names]


def test_a_stop_lets_requests_in_flight_finish_and_starts_nothing() -> None:
    names = [f"p{number:02}" for number in range(CONCURRENCY + 3)]
    events: list[Event] = []

    async def run() -> Report:
        service, stop = Service(), asyncio.Event()
        async with mocked(service, connections=99) as transport:
            running = asyncio.create_task(
                execute(
                    creates(*names),
                    transport,
                    kinds=KINDS,
                    secrets=resolver(),
                    listen=events.append,
                    stop=stop,
                )
            )
            await service.answer()
            stop.set()
            while service.waiting:
                await service.answer()
            return await running

    report = asyncio.run(run())
    assert report.interrupted
    assert (len(report.done), len(report.failed)) == (CONCURRENCY, 0)
    assert {skipped.because for skipped in report.skipped} == {"the run was interrupted"}
    assert len(report.skipped) == 3
    assert sum(isinstance(event, Interrupting) for event in events) == 1
    assert not any(isinstance(event, Failed) for event in events)
