"""Runs and backfills of objects: reading them, and the use cases `runs` and `cancel`."""

from __future__ import annotations

from bisect import insort
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from reconciler.client import together
from reconciler.commands.runtime import Reported, Workspace
from reconciler.commands.session import Session
from reconciler.errors import (
    BadUsage,
    Forbidden,
    Invalid,
    InvalidResponse,
    NotFound,
    ReconcilerError,
    ServiceError,
)
from reconciler.model.address import Address
from reconciler.model.field_types import time_text
from reconciler.model.kind import Dialect
from reconciler.model.live import LiveObject, id_text
from reconciler.model.request import Query
from reconciler.model.run import (
    BackfillRow,
    InvalidRun,
    ListedRun,
    Run,
    RunOrder,
    RunReport,
    Subject,
    SubjectOfRuns,
)
from reconciler.model.text import printable, quoted
from reconciler.model.times import Moment, window_at
from reconciler.model.values import JSON
from reconciler.operations.targets import Target, read_targets
from reconciler.reading.calls import NotOffered, ObjectCalls

_Value = TypeVar("_Value")
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


class RunFilter(Struct, frozen=True):
    """Which runs to read, the newest `limit` of all; None for all.

    first, last
        The window: of the creation, or of the interval if the order is by intervals.
    statuses
        The statuses to show, all without any.
    """

    first: Moment | None = None
    last: datetime | None = None
    order: RunOrder = RunOrder.CREATED
    statuses: Sequence[str] = ()
    limit: int | None = 20

    def query(self, dialect: Dialect | None, now: datetime) -> Query:
        """Return the query of a list, the newest first. Raises BadUsage for an empty window."""
        start, end = window_at(now, self.first, self.last)
        is_by_interval = self.order is RunOrder.INTERVAL
        first, last = ("start", "end") if is_by_interval else ("after", "before")
        field = "data_interval_start" if is_by_interval else "created_at"
        query: dict[str, str | tuple[str, ...]] = {
            "ordering": f"-{field}",
            first: time_text(start or BEGINNING),
        }
        if end is not None:
            query[last] = time_text(end)
        if self.statuses and dialect is Dialect.V2026:
            query["status"] = tuple(self.statuses)
        return query


class Opened(Struct, frozen=True):
    """One object of the service: its operations, how to show it, and the time of the service."""

    subject: Subject
    calls: ObjectCalls
    now: datetime


@asynccontextmanager
async def opened(workspace: Workspace, name: str, *, tab: str) -> AsyncIterator[Opened]:
    """Connect, and yield the object that a text names. `tab` is that of its page.

    Raises InvalidConfiguration, BadUsage, ServiceError.
    """
    session = Session.open(workspace)
    async with session.connected() as transport:
        targets = await read_targets(session, transport, tab)
        target = targets.one(name)
        subject = Subject(**_about(session, target, tab))
        yield Opened(subject, targets.calls(target, transport), session.now(transport))


def _about(session: Session, target: Target, tab: str) -> dict[str, Any]:
    """Return the fields of `Subject`."""
    return {
        "environment": session.loaded.desired.environment,
        "address": target.address,
        "name": target.live.name,
        "parent_name": target.parent_name,
        "page": target.page(session.loaded.reachable().base_url, f"?tab={tab}"),
    }


async def runs(
    workspace: Workspace,
    names: Sequence[str] = (),
    wanted: RunFilter | None = None,
    *,
    projects: Sequence[str] = (),
    run: str | None = None,
) -> Reported[RunReport]:
    """Return the runs of objects, the newest first. One that can't be read does not hide others.

    `names` select exports and `projects` projects, by address, id, key, name or glob; all exports
    without any. `run` is the id of the only run, of one name.

    Raises InvalidConfiguration, BadUsage, and the error of the first object if all fail.
    """
    session, wanted = Session.open(workspace), wanted or RunFilter()
    async with session.connected() as transport:
        targets = await read_targets(session, transport, "runs")
        chosen = targets.chosen(names, projects) if run is None else (targets.one(*names),)
        newest = _Newest(wanted, run, session.now(transport))
        errors = await together(
            newest.read(targets.calls(target, transport), target.address) for target in chosen
        )
        if errors and None not in errors:
            raise next(filter(None, errors))
        report = RunReport(
            environment=session.loaded.desired.environment,
            exports=tuple(
                SubjectOfRuns(**_about(session, target, "runs"), **_failure(error))
                for target, error in zip(chosen, errors, strict=True)
            ),
            more=newest.is_full,
            runs=tuple(listed for *_, listed in newest.kept[: wanted.limit]),
            detail=run is not None,
            hides_unbounded=run is None and wanted.order is RunOrder.INTERVAL,
        )
        return workspace.masked(Reported(report, calls=transport.calls))


def _failure(error: ReconcilerError | None) -> dict[str, Any]:
    return {} if error is None else {"error": error.message, "exit_code": error.exit_code}


class _Newest:
    """The newest runs of objects that are read at the same time, and one more than the limit.

    `kept` are in their order, the newest first. Runs of one moment are in that of addresses.
    """

    def __init__(self, wanted: RunFilter, run: str | None, now: datetime) -> None:
        self.kept: list[tuple[float, Address, int, ListedRun]] = []
        self._wanted, self._run, self._now = wanted, run, now

    @property
    def is_full(self) -> bool:
        """Whether there are more runs than the limit."""
        limit = self._wanted.limit
        return limit is not None and len(self.kept) > limit

    async def read(self, calls: ObjectCalls, address: Address) -> ReconcilerError | None:
        """Read the runs of an object that may be among the newest; return why it failed."""
        position, query = 0, self._wanted.query(calls.dialect, self._now)
        try:
            if self._run is not None:
                self._add(await read_run(calls, self._run), address, 0)
                return None
            async for body in calls.listed("runs", query=query):
                run = valid(Run.of, [body], f"runs of {calls.live.id}")[0]
                if self._add(run, address, position):
                    break
                position += 1
        except (ServiceError, NotOffered) as error:
            return error
        return None

    def _add(self, run: Run, address: Address, position: int) -> bool:
        """Keep a run if it is wanted, and return whether no older one of its object is."""
        wanted = self._wanted
        by_interval = wanted.order is RunOrder.INTERVAL
        moment = (run.start if by_interval else run.created_at) or BEGINNING
        place = (-moment.timestamp(), address, position)
        if not wanted.statuses or run.status in wanted.statuses:
            insort(self.kept, (*place, ListedRun(**asdict(run), address=address)))
            if wanted.limit is not None:
                del self.kept[wanted.limit + 1 :]
        return self.is_full and place >= self.kept[-1][:3]


async def cancel_backfills(
    workspace: Workspace,
    name: str,
    *,
    row_id: str | None = None,
    begin: Callable[[], None] = lambda: None,
) -> tuple[str, ...]:
    """Cancel the running backfills of the object that a text names, or one; return their ids.

    `row_id` is the id of the only backfill. `begin` is called before the first is cancelled. One
    that ended meanwhile is left out.

    Raises BadUsage, NotOffered, Interrupted, ServiceError.
    """
    async with opened(workspace, name, tab="backfills") as world:
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
