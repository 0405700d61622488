"""Runs and backfills of objects: reading them, and the use cases `runs` and `cancel`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from reconciler.commands.options import WorkspaceOptions
from reconciler.commands.runtime import Runtime
from reconciler.commands.session import Session
from reconciler.errors import (
    BadUsage,
    Forbidden,
    Invalid,
    InvalidResponse,
    NotFound,
    ReconcilerError,
)
from reconciler.model.field_types import time_text
from reconciler.model.kind import Dialect
from reconciler.model.live import LiveObject, id_text
from reconciler.model.request import Query
from reconciler.model.run import (
    BackfillRow,
    InvalidRun,
    Run,
    RunOrder,
    RunReport,
    Subject,
)
from reconciler.model.text import printable, quoted
from reconciler.model.times import Moment, window_at
from reconciler.model.values import JSON
from reconciler.operations.targets import read_targets
from reconciler.reading.calls import NotOffered, ObjectCalls

_Value = TypeVar("_Value")
PAGE = 100
"""Runs of a page (service.md 2)."""
BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
"""Before every run. Without a window servers show the last seven days (service.md, 15.26)."""
ALL_TIME = {"after": time_text(BEGINNING)}
"""The window of all runs, which also the requests for a single run need."""
_CANCELLED = "Cancelled"


async def read_runs(calls: ObjectCalls, since: datetime) -> tuple[Run, ...]:
    """Return the runs that were created since a moment, newest first.

    They are read by creation, which shows every run of an interval that ends after that moment:
    the order by intervals drops runs without a start (service.md 2).

    Raises NotOffered, ServiceError.
    """
    window = {"after": time_text(since)}
    bodies = [body async for body in calls.listed("runs", query=window)]
    return valid(Run.of, bodies, f"runs of {calls.live.id}")


async def read_run(calls: ObjectCalls, run: str) -> Run:
    """Return one run, however old it is. Raises BadUsage, NotFound, ServiceError."""
    if id_text(run) is None:
        raise BadUsage(f"invalid id of a run: {quoted(run)}")
    try:
        body = await calls.send("run", query=ALL_TIME, run=run)
    except NotFound as error:
        error.message = f"{calls.live.kind} {quoted(calls.live.name)} has no run {printable(run)}"
        error.hint = f"list its runs with: {calls.command('runs')}"
        raise
    return valid(Run.of, [body], f"run {printable(run)}")[0]


async def read_backfills(
    calls: ObjectCalls, since: datetime | None = None
) -> tuple[BackfillRow, ...] | None:
    """Return the backfills that may concern intervals after a moment, newest first.

    All without a moment. None if the server does not offer them. Raises ServiceError.
    """
    if not calls.offered("backfills"):
        return None
    try:
        rows = [body async for body in calls.listed("backfills")]
    except (NotFound, NotOffered, Forbidden):
        return None
    parsed = valid(BackfillRow.of, rows, f"backfills of {calls.live.id}")
    return tuple(row for row in parsed if since is None or row.end is None or row.end > since)


def latest_runs(live: LiveObject) -> tuple[Run, ...]:
    """Return the runs that a live body carries, newest first. Raises InvalidResponse."""
    bodies = live.body.get("latest_runs")
    if not isinstance(bodies, list):
        return ()
    return valid(Run.of, bodies, f"latest_runs of {live.id}")


def reaches_back(runs: tuple[Run, ...], since: datetime) -> bool:
    """Return whether the latest runs, newest first, include all since a moment."""
    oldest = runs[-1].created_at if runs else None
    return oldest is not None and oldest < since


def valid(read: Callable[[JSON], _Value], bodies: Iterable[JSON], label: str) -> tuple[_Value, ...]:
    """Return typed values of bodies. Raises InvalidResponse."""
    try:
        return tuple(read(body) for body in bodies)
    except InvalidRun as error:
        raise InvalidResponse(f"{label}: {error}") from None


def backfill_id(body: JSON) -> str | None:
    """Return the id in the answer of a backfill: of a row, or of a workflow."""
    value = body.get("backfill_id") if isinstance(body, Mapping) else None
    return value if isinstance(value, str) else None


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
            page=target.page(session.loaded.reachable().base_url, f"?tab={tab}"),
        )
        yield Opened(subject, targets.calls(target, transport), session.now(transport))


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
        first: time_text(start or BEGINNING),
    }
    if end is not None:
        query[last] = time_text(end)
    if request.statuses and dialect is Dialect.V2026:
        query["status"] = request.statuses
    return query


async def cancel(
    name: str,
    row_id: str | None,
    workspace: WorkspaceOptions,
    runtime: Runtime,
    begin: Callable[[], None] = lambda: None,
) -> tuple[str, ...]:
    """Cancel a backfill of the object that a text names, or all that run; return their ids.

    `begin` is called before the first is cancelled. One that ended meanwhile is left out.

    Raises BadUsage, NotOffered, Interrupted, ServiceError.
    """
    async with opened(workspace, name, runtime, tab="backfills") as world:
        calls = world.calls
        if row_id is not None and id_text(row_id) is None:
            raise BadUsage(f"invalid id {quoted(row_id)}")
        ids = (row_id,) if row_id is not None else await _running(calls)
        begin()
        cancelled: list[str] = []
        for item in ids:
            try:
                if await _cancelled(calls, item, chosen=row_id is not None):
                    cancelled.append(item)
            except ReconcilerError as error:
                if not cancelled:
                    raise
                before = printable(", ".join(cancelled))
                raise error.reworded(f"{error.message}\n  cancelled before: {before}") from None
        return tuple(cancelled)


async def _cancelled(calls: ObjectCalls, row_id: str, *, chosen: bool) -> bool:
    """Cancel a backfill; return whether this did. Raise the refusal of one that was `chosen`.

    A refusal after an attempt without an answer may mean that the attempt took effect.
    """
    try:
        await calls.send("cancel_backfill", backfill=row_id)
    except Invalid as error:
        row = BackfillRow.of(await calls.send("backfill_row", backfill=row_id))
        if row.status == _CANCELLED and error.unclear:
            return True
        if chosen or row.pending:
            raise
        return False
    return True


async def _running(calls: ObjectCalls) -> tuple[str, ...]:
    if not calls.offered("backfills"):
        raise NotOffered("this server does not list backfills, so none can be cancelled")
    rows = await read_backfills(calls) or ()
    return tuple(row.id for row in rows if row.pending)
