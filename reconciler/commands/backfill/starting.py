"""Start backfills after approval, each at most once, wait for them, cancel them (service.md, 8)."""

from __future__ import annotations

import re
from asyncio import Lock
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import datetime, timedelta
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from reconciler.commands.backfill.planning import Wanted, plan_of
from reconciler.commands.gaps import schedule_of
from reconciler.commands.process import no_terminal
from reconciler.commands.sending import Outputs, only_apply, recording
from reconciler.commands.targets import Targets, opened
from reconciler.commands.workspace import Workspace
from reconciler.errors import (
    AmbiguousOutcome,
    BadUsage,
    Interrupted,
    Invalid,
    NotFound,
    ReconcilerError,
    ServiceError,
    Throttled,
)
from reconciler.model.event import BackfillsEnded, BackfillsPlanned, Noted
from reconciler.model.kind import Dialect
from reconciler.model.run import (
    COMPLETED,
    BackfillEnd,
    BackfillPlan,
    BackfillRow,
    BackfillState,
    ObjectBackfills,
    PlannedBackfill,
    Run,
)
from reconciler.model.schemas import time_text
from reconciler.model.times import Schedule
from reconciler.model.values import JSONObject
from reconciler.render.runs import running_as_text
from reconciler.service.operations import ObjectCalls, backfill_id, read_backfills, read_runs, valid
from reconciler.service.pace import together

_TOO_MANY = "too_many_concurrent_backfills"
_NO_DATA = "no data"
"""In the 400 of a range without data, of servers of 2025 (service.md, 8.1)."""
_SERVER_ERROR = 500
_ROW = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The id of a row, unlike that of a workflow."""
_SEARCH = (0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 30.0, 35.0)
"""Seconds before each look for a row, which may appear after two minutes."""
_LOOKS_AFTER_500 = 6
"""Looks for a row, half a minute in all, after an error of the service itself."""
_LATE = 150.0
_LONGEST = 30.0
_MOMENT = timedelta(seconds=1)
"""The precision of the time of the service."""
_UNTIL_RUNS = 1800.0
"""Seconds without the end of a run after which a server without rows is not waited for."""
_CANCELLED = "Cancelled"


class Backfilled(Struct, frozen=True):
    """How the backfills of a plan ended; none for a dry run. `calls` counts all requests."""

    plan: BackfillPlan
    calls: int
    report: BackfillsEnded = BackfillsEnded(())
    problems: tuple[str, ...] = ()

    @property
    def ends(self) -> tuple[BackfillEnd, ...]:
        """How the backfills of all objects ended."""
        return tuple(end for item in self.report.objects for end in item.ends)


async def backfill(  # noqa: PLR0913 - the options of the command
    workspace: Workspace,
    names: Sequence[str],
    wanted: Wanted,
    *,
    projects: Sequence[str] = (),
    approve: Callable[[BackfillPlan], Awaitable[bool]] | None = None,
    auto_approve: bool = False,
    dry_run: bool = False,
    wait: bool = False,
    outputs: Outputs | None = None,
    show: Callable[[BackfillPlan], None] = lambda _: None,
) -> Backfilled:
    """Plan backfills of objects, get approval, and start them; `wait` until they ended.

    `names` select exports and `projects` projects, by address, id, key, name or glob. `wanted` is
    a range, the gaps of a window, or what the last pause skipped. `dry_run` only plans. `show` is
    called with the plan.

    Raises:
        BadUsage: the range is invalid, a name matches nothing, or there is no way to approve;
            nothing was sent.
        ServiceError: live state can't be read; nothing was sent.
        ReconcilerError: not approved; nothing was sent.

    """
    if not (names or projects):
        raise BadUsage("no export is named", hint="pass NAME or --project; '*' is every export")
    async with opened(workspace, "backfill") as targets, AsyncExitStack() as stack:
        runtime, transport = workspace.runtime, targets.transport
        now = targets.now()
        plan = await plan_of(targets.chosen(names, projects), targets, wanted, now)
        shown = workspace.masked(plan)
        show(shown)
        if dry_run or not plan.backfills:
            return Backfilled(shown, transport.calls)
        if not auto_approve:
            if approve is None:
                raise no_terminal(", or --dry-run to see the backfills")
            if not await approve(shown):
                raise ReconcilerError("not approved; nothing was sent")
        await stack.enter_async_context(only_apply(transport))
        mask = targets.session.mask
        bus = stack.enter_context(recording(outputs or Outputs(), runtime, mask))
        stack.enter_context(transport.reporting_to(bus))
        bus(BackfillsPlanned(plan))
        objects = [item for item in plan.objects if item.backfills]
        turn = Lock()
        ended = await together(
            _backfiller(item, targets, now, turn).run(wait=wait) for item in objects
        )
        started = tuple(replace(item, ends=ends) for item, ends in zip(objects, ended, strict=True))
        report = BackfillsEnded(started, interrupted=runtime.stop.requested.is_set())
        bus(report)
        made = {item.address: item for item in started}
        plan = replace(plan, objects=tuple(made.get(it.address, it) for it in plan.objects))
        return workspace.masked(Backfilled(plan, transport.calls, report, bus.problems))


def _backfiller(
    planned: ObjectBackfills, targets: Targets, now: datetime, turn: Lock
) -> Backfiller:
    """Return what starts the backfills of an object."""
    target = next(it for it in targets.objects if it.live.id == planned.live_id)
    schedule = schedule_of(target, targets.live.dialect)
    return Backfiller(targets.calls(target), schedule, now, planned.backfills, turn)


class Backfiller(Struct):
    """Starts the backfills of one object. `now` is the time of the service when they were planned.

    After one that fails, or whose outcome is unknown, nothing more is started. A stop leaves what
    runs running. Objects share `turn`, so that one is started at a time, and none after a stop.
    """

    calls: ObjectCalls
    schedule: Schedule
    now: datetime
    planned: tuple[PlannedBackfill, ...]
    turn: Lock

    async def run(self, *, wait: bool) -> tuple[BackfillEnd, ...]:
        """Start them in order, and wait for one on trial, with `wait` for all."""
        ends: list[BackfillEnd] = []
        for item in self.planned:
            if ends and not _lets_go_on(ends[-1]):
                detail = "the backfill before it did not complete"
                ends.append(BackfillEnd(item, BackfillState.SKIPPED, detail=detail))
                continue
            async with self.turn:
                end = await self._start(item)
            ends.append(await self.wait(end) if item.trial else end)
        return tuple([await self.wait(end) for end in ends] if wait else ends)

    async def _start(self, planned: PlannedBackfill) -> BackfillEnd:
        """Send one request. If its outcome is unknown, look for the row; never send it again."""
        sent = False
        try:
            before = await read_backfills(self.calls) or ()
            pending = [row for row in before if row.pending]
            if running := rows_of(planned, pending, dialect=self.calls.dialect):
                return BackfillEnd(planned, BackfillState.RUNNING, running[0].id)
            sent = True
            answer = await self._send(planned)
        except AmbiguousOutcome as error:
            looks = _LOOKS_AFTER_500 if error.status == _SERVER_ERROR else len(_SEARCH)
            row = await self._found(planned, before, looks=looks)
            if row is not None:
                return BackfillEnd(planned, BackfillState.STARTED, row.id)
            hint = "look at its backfills and runs before you start it again"
            return BackfillEnd(planned, BackfillState.UNKNOWN, detail=error.message, hint=hint)
        except Interrupted:
            return BackfillEnd(planned, BackfillState.SKIPPED, detail="interrupted")
        except ReconcilerError as error:
            return _not_started(planned, error, sent=sent)
        if answer is not None and not _ROW.fullmatch(answer):
            row = await self._found(planned, before, looks=3)
            answer = row.id if row is not None else None
        return BackfillEnd(planned, BackfillState.STARTED, answer)

    async def _send(self, planned: PlannedBackfill) -> str | None:
        """Send the request to the first of its paths that exists, and return the id."""
        body = self._body(planned)
        if self.calls.offered("backfill"):
            try:
                return backfill_id(await self.calls.send("backfill", body=body))
            except NotFound:
                if not self.calls.offered("backfill_of_old_servers"):
                    raise
        return backfill_id(await self.calls.send("backfill_of_old_servers", body=body))

    def _body(self, planned: PlannedBackfill) -> JSONObject:
        """Return the bounds: dates where days have a time zone (service.md, 1.8)."""
        bounds = {"start_at": planned.start, "end_at": planned.end}
        zone = self.schedule.zone
        if zone is None:
            return {name: time_text(moment) for name, moment in bounds.items()}
        return {name: moment.astimezone(zone).date().isoformat() for name, moment in bounds.items()}

    async def _found(
        self, planned: PlannedBackfill, before: Sequence[BackfillRow], *, looks: int
    ) -> BackfillRow | None:
        """Return the only new row of a range, None also if it can't be looked for."""
        old = {row.id for row in before}
        with suppress(ServiceError, Interrupted):
            for seconds in _SEARCH[:looks] if self.calls.offered("backfills") else ():
                if seconds:
                    await self.calls.transport.pause(seconds, "looking for the backfill")
                rows = [row for row in await read_backfills(self.calls) or () if row.id not in old]
                if matching := rows_of(planned, rows, dialect=self.calls.dialect):
                    return matching[0] if len(matching) == 1 else None
        return None

    async def wait(self, end: BackfillEnd) -> BackfillEnd:
        """Return how a backfill ended, after it has. It is returned unchanged after a stop."""
        if end.state not in (BackfillState.STARTED, BackfillState.RUNNING):
            return end
        try:
            return await self._waited(end)
        except Interrupted:
            hint = f"cancel it with: {self.calls.command('backfill', '--cancel')}"
            return replace(end, detail="it goes on", hint=hint)
        except ServiceError as error:
            return replace(end, detail=f"it was started; {error.message}")

    async def _waited(self, end: BackfillEnd) -> BackfillEnd:
        transport, seconds, progress = self.calls.transport, 2.0, ""
        changed = transport.clock()
        while True:
            seen = await (self._of_runs(end) if end.id is None else self._of_row(end, end.id))
            if isinstance(seen, BackfillEnd):
                return seen
            before, (progress, patience) = progress, seen
            changed = changed if progress == before else transport.clock()
            if transport.clock() - changed > patience:
                return replace(end, detail=f"it was started; {progress}")
            await transport.pause(seconds, progress)
            seconds = min(seconds * 1.5, _LONGEST)

    async def _of_row(self, end: BackfillEnd, row_id: str) -> BackfillEnd | tuple[str, float]:
        """Return how a backfill ended by its row, or its progress and how long that may last."""
        try:
            body = await self.calls.send("backfill_row", backfill=row_id)
        except NotFound:
            # The row of a backfill may appear after two minutes (service.md, 8.1).
            return "the backfill is not listed yet", _LATE
        row = valid(BackfillRow.of, [body], f"backfill {row_id}")[0]
        if row.pending:
            return _progress(end.planned, row), inf
        if row.status != COMPLETED:
            return replace(end, state=BackfillState.FAILED, detail=f"it ended as {row.status}")
        # A completed one may have failed runs (service.md, 8.3).
        since = (row.created_at or self.now) - _MOMENT
        runs = [run for run in await read_runs(self.calls, since) if run.backfill == row.id]
        if not runs:
            is_empty = row.total_records in (0, None)
            return replace(end, state=BackfillState.EMPTY if is_empty else BackfillState.COMPLETED)
        return _judged(end, runs)

    async def _of_runs(self, end: BackfillEnd) -> BackfillEnd | tuple[str, float]:
        """Return the same by the runs since the plan, on servers without a list of backfills."""
        planned = end.planned
        ended = [
            run
            for run in await read_runs(self.calls, self.now - _MOMENT)
            if not run.pending and run.start is not None and run.end is not None
            if planned.start <= run.start and run.end <= planned.end
        ]
        if any(run.end == planned.end for run in ended):
            return _judged(end, ended)
        return f"{len(ended)} of {planned.runs} runs ended", _UNTIL_RUNS


def _lets_go_on(end: BackfillEnd) -> bool:
    """Return whether the next backfill of an object may be started."""
    if end.planned.trial:
        return end.state in (BackfillState.COMPLETED, BackfillState.EMPTY)
    return end.state.fine


def _judged(end: BackfillEnd, runs: list[Run]) -> BackfillEnd:
    """Return the end of a backfill by its runs, several of which may be of one interval."""
    completed = {run.end for run in runs if run.completed}
    bad = [run for run in runs if not run.completed and run.end not in completed]
    if not bad:
        return replace(end, state=BackfillState.COMPLETED)
    error = f": {bad[0].error}" if bad[0].error else ""
    detail = f"{len(bad)} of {end.planned.runs} runs did not complete ({bad[0].status}{error})"
    state = BackfillState.PARTLY if completed else BackfillState.FAILED
    return replace(end, state=state, detail=detail)


def rows_of(
    planned: PlannedBackfill, rows: Iterable[BackfillRow], *, dialect: Dialect | None
) -> list[BackfillRow]:
    """Return the rows that a backfill of a range may have.

    Servers of 2025 may move its start (service.md, 15.59).
    """
    ending = [row for row in rows if row.end == planned.end]
    exact = [row for row in ending if row.start == planned.start]
    if exact or dialect not in (None, Dialect.V2025):
        return exact
    return [row for row in ending if row.start is not None and row.start > planned.start]


def _not_started(planned: PlannedBackfill, error: ReconcilerError, *, sent: bool) -> BackfillEnd:
    if isinstance(error, Invalid) and _NO_DATA in error.message:
        return BackfillEnd(planned, BackfillState.EMPTY, detail=error.message)
    state = BackfillState.FAILED if sent else BackfillState.SKIPPED
    is_full = isinstance(error, Throttled) and error.code == _TOO_MANY
    hint = "wait until running backfills of this project finish" if is_full else error.hint
    return BackfillEnd(planned, state, detail=error.message, hint=hint)


def _progress(planned: PlannedBackfill, row: BackfillRow) -> str:
    total = row.total_runs if row.total_runs is not None else planned.runs
    rows = f" · about {row.total_records:,} rows" if row.total_records else ""
    return f"backfill: {row.finished_runs or 0} of {total} runs{rows}"


async def cancel_backfills(
    workspace: Workspace, name: str, *, approve: Callable[[str], Awaitable[bool]]
) -> tuple[str, ...]:
    """Cancel the running backfills of the object that a text names, and return their ids.

    `approve` is called with a text that shows them, if there are any. One that ended meanwhile is
    left out. Each that was cancelled is reported at once.

    Raises BadUsage, NotOffered, Interrupted, ServiceError; ReconcilerError if not approved.
    """
    async with opened(workspace, "backfills") as targets:
        target = targets.one(name)
        calls = targets.calls(target)
        calls.check("backfills")
        rows = [row for row in await read_backfills(calls) or () if row.pending]
        text = running_as_text(target.address, target.live.name, rows)
        if rows and not await approve(workspace.masked(text)):
            raise ReconcilerError("not approved; nothing was sent")
        cancelled: list[str] = []
        for row in rows:
            if await _cancelled(calls, row.id):
                cancelled.append(row.id)
                message = f"cancelled backfill {row.id}"
                targets.session.runtime.listen(Noted(message, important=True))
        return tuple(cancelled)


async def _cancelled(calls: ObjectCalls, row_id: str) -> bool:
    """Cancel a backfill; return whether this did. Raise the refusal of one that still runs.

    A refusal after an attempt without an answer may mean that the attempt took effect.
    """
    try:
        await calls.send("cancel_backfill", backfill=row_id)
    except Invalid as error:
        row = BackfillRow.of(await calls.send("backfill_row", backfill=row_id))
        if row.pending:
            raise
        return row.status == _CANCELLED and error.unclear
    return True
