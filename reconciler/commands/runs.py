"""Runs and backfills of objects: reading them, and the use cases `runs` and `cancel`."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import asdict

from reconciler.commands.runtime import Reported, Workspace
from reconciler.commands.targets import Target, Targets, opened
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
from reconciler.model.event import Noted
from reconciler.model.field_types import time_text
from reconciler.model.kind import Dialect
from reconciler.model.live import LiveObject, id_text
from reconciler.model.request import Query
from reconciler.model.run import (
    BackfillRow,
    InvalidRun,
    ListedRun,
    Run,
    RunReport,
    SubjectOfRuns,
)
from reconciler.model.text import printable, quoted
from reconciler.model.times import Moment, window_at
from reconciler.model.values import JSON
from reconciler.service.calls import NotOffered, ObjectCalls
from reconciler.service.waits import together

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


async def runs_since(calls: ObjectCalls, since: datetime) -> tuple[Run, ...]:
    """Return the runs since a moment, newest first: the latest if they reach back so far.

    Raises NotOffered, ServiceError, InvalidResponse.
    """
    latest = latest_runs(calls.live)
    oldest = latest[-1].created_at if latest else None
    return latest if oldest is not None and oldest < since else await read_runs(calls, since)


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


def about(targets: Targets, target: Target, tab: str) -> dict[str, Any]:
    """Return the fields of `Subject`. `tab` is that of the page of the object."""
    return {
        "environment": targets.environment,
        "address": target.address,
        "name": target.live.name,
        "parent_name": target.parent_name,
        "page": targets.page(target, f"?tab={tab}"),
    }


async def runs(  # noqa: PLR0913 - the options of the command
    workspace: Workspace,
    names: Sequence[str] = (),
    *,
    projects: Sequence[str] = (),
    run: str | None = None,
    first: Moment | None = None,
    last: datetime | None = None,
    statuses: Sequence[str] = (),
    limit: int | None = 20,
) -> Reported[RunReport]:
    """Return the newest `limit` runs of objects, the newest first; None for all.

    `names` select exports and `projects` projects, by address, id, key, name or glob; all exports
    without any. `run` is the id of the only run, of one name. `first` and `last` are a window of
    the creation. `statuses` are those to show, all without any. An object that can't be read does
    not hide others.

    Raises InvalidConfiguration, BadUsage, and the error of the first object if all fail.
    """
    async with opened(workspace, "runs") as targets:
        chosen = targets.chosen(names, projects) if run is None else (targets.one(*names),)
        start, end = window_at(targets.now(), first, last)
        query: dict[str, str | tuple[str, ...]] = {
            "ordering": "-created_at",
            "after": time_text(start or BEGINNING),
            **({} if end is None else {"before": time_text(end)}),
        }
        if statuses and targets.live.dialect is Dialect.V2026:
            query["status"] = tuple(statuses)
        newest = _Newest(statuses, limit)
        errors = await together(
            newest.read(targets.calls(target), target.address, query, run) for target in chosen
        )
        if errors and None not in errors:
            raise next(filter(None, errors))
        report = RunReport(
            environment=targets.environment,
            exports=tuple(
                SubjectOfRuns(**about(targets, target, "runs"), **_failure(error))
                for target, error in zip(chosen, errors, strict=True)
            ),
            more=newest.is_full,
            runs=tuple(listed for *_, listed in newest.kept[:limit]),
            detail=run is not None,
        )
        return workspace.masked(Reported(report, calls=targets.transport.calls))


def _failure(error: ReconcilerError | None) -> dict[str, Any]:
    return {} if error is None else {"error": error.message, "exit_code": error.exit_code}


class _Newest(Struct):
    """The newest runs of objects that are read at the same time, and one more than the limit.

    `kept` are in their order, the newest first. Runs of one moment are in that of addresses.
    """

    statuses: Sequence[str]
    limit: int | None
    kept: list[tuple[float, Address, int, ListedRun]] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Whether there are more runs than the limit."""
        return self.limit is not None and len(self.kept) > self.limit

    async def read(
        self, calls: ObjectCalls, address: Address, query: Query, run_id: str | None
    ) -> ReconcilerError | None:
        """Read the runs of an object that may be among the newest; return why it failed."""
        position = 0
        try:
            if run_id is not None:
                self._add(await read_run(calls, run_id), address, 0)
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
        place = (-(run.created_at or BEGINNING).timestamp(), address, position)
        if not self.statuses or run.status in self.statuses:
            insort(self.kept, (*place, ListedRun(**asdict(run), address=address)))
            if self.limit is not None:
                del self.kept[self.limit + 1 :]
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
    that ended meanwhile is left out. Each that was cancelled is reported at once.

    Raises BadUsage, NotOffered, Interrupted, ServiceError.
    """
    async with opened(workspace, "backfills") as targets:
        calls = targets.calls(targets.one(name))
        if row_id is not None and id_text(row_id) is None:
            raise BadUsage(f"invalid id {quoted(row_id)}")
        if row_id is None:
            calls.check("backfills")
            rows = await read_backfills(calls) or ()
        ids = [row.id for row in rows if row.pending] if row_id is None else [row_id]
        begin()
        cancelled: list[str] = []
        for item in ids:
            if await _cancelled(calls, item, chosen=row_id is not None):
                cancelled.append(item)
                targets.session.runtime.listen(Noted(f"cancelled backfill {item}", important=True))
        return tuple(cancelled)


async def _cancelled(calls: ObjectCalls, row_id: str, *, chosen: bool) -> bool:
    """Cancel a backfill; return whether this did. Raise the refusal of one that was `chosen`.

    A refusal after an attempt without an answer may mean that the attempt took effect.
    """
    try:
        await calls.send("cancel_backfill", backfill=row_id)
    except NotFound as error:
        message = f"{calls.live.kind} {quoted(calls.live.name)} has no backfill {printable(row_id)}"
        raise error.reworded(message) from None
    except Invalid as error:
        row = BackfillRow.of(await calls.send("backfill_row", backfill=row_id))
        if row.status == _CANCELLED and error.unclear:
            return True
        if chosen or row.pending:
            raise
        return False
    return True
