"""The use case `runs`: the runs of one object, or one run. Changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import asdict, replace

from reconciler.client import Transport
from reconciler.commands.options import WorkspaceOptions
from reconciler.commands.runtime import Runtime
from reconciler.commands.session import Session
from reconciler.model.field_types import Instant
from reconciler.model.kind import Dialect
from reconciler.model.moments import Moment, window_at
from reconciler.model.request import Query
from reconciler.model.run import Run
from reconciler.model.run_report import (
    RunChange,
    RunOrder,
    RunReport,
    Subject,
    changes,
    oldest_pending,
)
from reconciler.operations.run_history import BEGINNING, read_run, valid
from reconciler.operations.targets import Target, read_targets
from reconciler.reading.calls import ObjectCalls

POLL = 10.0
"""Seconds between requests of `--follow`."""


class RunsRequest(Struct, frozen=True):
    """Whose runs to show, the newest `limit` of them; None for all.

    run
        The id of the only run to show.
    first, last
        The window: of the creation, or of the interval if the order is by intervals.
    statuses
        The statuses to show, all without any.
    """

    workspace: WorkspaceOptions
    name: str
    run: str | None = None
    first: Moment | None = None
    last: Moment | None = None
    order: RunOrder = RunOrder.CREATED
    statuses: tuple[str, ...] = ()
    limit: int | None = 20


class Opened(Struct, frozen=True):
    """One object of the service: its operations, how to show it, and the time of the service."""

    subject: Subject
    calls: ObjectCalls
    transport: Transport
    now: datetime


@asynccontextmanager
async def opened(
    workspace: WorkspaceOptions, name: str, runtime: Runtime, *, tab: str
) -> AsyncIterator[Opened]:
    """Connect, and yield the object that a text names. `tab` is that of its page.

    Raises InvalidConfiguration, BadUsage, ServiceError.
    """
    session = Session.open(workspace, runtime)
    async with session.connected() as transport:
        targets = await read_targets(session, transport, tab)
        target = targets.one(name)
        subject = Subject(
            environment=session.loaded.desired.environment,
            address=target.address,
            name=target.live.name,
            parent_name=target.parent_name,
            page=page_of(target, session.loaded.reachable().base_url, tab),
        )
        calls = targets.calls(target, transport)
        yield Opened(subject, calls, transport, session.now(transport))


def page_of(target: Target, base_url: str, tab: str) -> str | None:
    """Return the page of an object on the service, None if it is unknown."""
    live = target.live
    if not target.kind.page or live.parent_id is None:
        return None
    path = target.kind.page.format(parent=quote(live.parent_id), id=quote(live.id))
    return f"{base_url}{path}?tab={tab}"


async def runs(request: RunsRequest, runtime: Runtime) -> RunReport:
    """Return the runs of an object.

    Raises InvalidConfiguration, BadUsage, NotOffered, ServiceError.
    """
    async with opened(request.workspace, request.name, runtime, tab="runs") as world:
        if request.run is not None:
            run = await read_run(world.calls, request.run)
            return RunReport(**asdict(world.subject), runs=(run,), detail=True)
        listed, more = await _listed(request, world)
        unbounded = request.order is RunOrder.INTERVAL
        return RunReport(
            **asdict(world.subject), more=more, runs=tuple(listed), hides_unbounded=unbounded
        )


async def follow_runs(
    request: RunsRequest, runtime: Runtime, listen: Callable[[RunChange], None]
) -> None:
    """Report runs, the oldest first, then new ones and changes of status until it is cancelled.

    Of one run it reports the changes, and returns when it has ended. Raises as `runs` does.
    """
    async with opened(request.workspace, request.name, runtime, tab="runs") as world:
        known: dict[str, str] = {}
        since = window_at(world.now, request.first, request.last)[0] or BEGINNING
        listed, _ = await _current(request, world)
        while True:
            for change in changes(known, listed):
                listen(change)
            if request.run is not None and not listed[0].pending:
                return
            created = [run.created_at for run in listed if run.created_at is not None]
            since = oldest_pending(listed) or max(created, default=since)
            await runtime.client.sleep(POLL)
            later = replace(request, first=since, limit=None, order=RunOrder.CREATED)
            listed, _ = await _current(later, world)


async def _current(request: RunsRequest, world: Opened) -> tuple[list[Run], bool]:
    if request.run is None:
        return await _listed(request, world)
    return [await read_run(world.calls, request.run)], False


async def _listed(request: RunsRequest, world: Opened) -> tuple[list[Run], bool]:
    """Return the runs of a list, and whether there are more."""
    kept: list[Run] = []
    query = _query(request, world.calls.dialect, world.now)
    async for body in world.calls.listed("runs", query=query):
        run = valid(Run.of, [body], f"runs of {world.calls.live.id}")[0]
        if request.statuses and run.status not in request.statuses:
            continue
        if request.limit is not None and len(kept) == request.limit:
            return kept, True
        kept.append(run)
    return kept, False


def _query(request: RunsRequest, dialect: Dialect | None, now: datetime) -> Query:
    start, end = window_at(now, request.first, request.last)
    is_by_interval = request.order is RunOrder.INTERVAL
    first, last = ("start", "end") if is_by_interval else ("after", "before")
    field = "data_interval_start" if is_by_interval else "created_at"
    query: dict[str, str | tuple[str, ...]] = {
        "ordering": f"-{field}",
        first: _text(start or BEGINNING),
    }
    if end is not None:
        query[last] = _text(end)
    if request.statuses and dialect is Dialect.V2026:
        query["status"] = request.statuses
    return query


def _text(moment: datetime) -> str:
    return str(Instant().canonical(moment))
