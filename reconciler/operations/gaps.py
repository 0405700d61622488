"""The use case `gaps`: compare the runs of objects with their schedules. Changes nothing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from reconciler.client import Transport, together
from reconciler.client.limits import Estimate
from reconciler.commands.options import WorkspaceOptions
from reconciler.commands.runtime import Reported, Runtime
from reconciler.commands.session import Session
from reconciler.errors import BadUsage
from reconciler.model.run import BILLING, COMPLETED, BackfillRow, Run
from reconciler.model.times import Interval, Schedule, UnknownSchedule
from reconciler.operations.gaps_report import Gap, GapReport, GapState, ObjectGaps
from reconciler.operations.runs import PAGE, latest_runs, reaches_back, read_backfills, read_runs
from reconciler.operations.targets import Target, Targets, read_targets
from reconciler.reading.calls import ObjectCalls

_BEGINNING = datetime.min.replace(tzinfo=UTC)
Announce = Callable[[Estimate], None]
"""Is called with the calls that reading the runs takes at most, before they are made."""


class History(Struct, frozen=True):
    """The runs of an export since the begin of a window, and its backfills, None if unknown."""

    runs: Sequence[Run] = ()
    backfills: Sequence[BackfillRow] | None = ()


def gaps_of(
    schedule: Schedule, history: History, window: Interval, now: datetime
) -> tuple[Gap, ...]:
    """Return the gaps among the intervals that end in a window and whose runs are due, in order."""
    judge = _Judge(schedule, history)
    intervals = due_intervals(schedule, window, now)
    return tuple(_joined(gap for interval in intervals if (gap := judge.gap(interval))))


def due_intervals(schedule: Schedule, window: Interval, now: datetime) -> Iterator[Interval]:
    """Yield the intervals that end in a window and whose runs are due, in order."""
    for interval in schedule.expected(window.start, min(window.end, now)):
        if schedule.due_after(interval.end) <= now:
            yield interval


class _Judge:
    """Decides whether an interval is exported."""

    def __init__(self, schedule: Schedule, history: History) -> None:
        self._schedule = schedule
        self._runs = history.runs
        rows = history.backfills or ()
        completed = [span for run in history.runs if run.completed and (span := _span(run))]
        with_runs = {run.backfill for run in history.runs}
        settled = [span for row in rows if (span := _settled(row, with_runs)) is not None]
        pending = [span for run in history.runs if run.pending and (span := _span(run))]
        pending += [span for row in rows if row.pending and (span := _range(row))]
        self._covered = _union(completed + settled)
        self._pending = _union(pending)
        self._ended = sorted(
            (
                (span, run)
                for run in history.runs
                if not (run.completed or run.pending) and run.start and (span := _span(run))
            ),
            key=_start_of,
        )
        self._longest = max((span.end - span.start for span, _ in self._ended), default=timedelta())
        self._resumed = self._resumption()

    def gap(self, interval: Interval) -> Gap | None:
        """Return the gap of an interval, None if it is exported."""
        open_parts = _without(interval, self._covered)
        if not open_parts:
            return None
        partly = int(open_parts != [interval])
        gap = Gap(interval.start, interval.end, GapState.PENDING, partly=partly)
        if not any(_without(part, self._pending) for part in open_parts):
            return gap
        last = self._last_run(open_parts)
        if last is not None:
            state = GapState.BILLING if last.status == BILLING else GapState.FAILED
            return replace(gap, state=state, error=last.error or last.status)
        return replace(gap, state=self._without_run(interval.end))

    def _last_run(self, parts: Sequence[Interval]) -> Run | None:
        """Return the newest run that ended without exporting one of the parts."""
        first = bisect_right(self._ended, parts[0].start - self._longest, key=_start_of)
        last = bisect_left(self._ended, parts[-1].end, key=_start_of)
        runs = [run for span, run in self._ended[first:last] if any(map(span.overlaps, parts))]
        return max(runs, key=lambda run: run.created_at or _BEGINNING, default=None)

    def _without_run(self, tick: datetime) -> GapState:
        """Return why a tick has no run, as far as the last pause says (service.md, 15.55)."""
        begun, paused = self._schedule.last_paused_at, self._schedule.paused
        if begun is None:
            # A pause by PATCH sets no time (service.md, 1.7).
            return GapState.UNKNOWN if paused else GapState.MISSING
        # A pause between a tick and its delayed start loses the run.
        if self._schedule.due_after(tick) <= begun:
            return GapState.UNKNOWN
        if paused or self._resumed is None or tick < self._resumed:
            return GapState.PAUSED
        return GapState.MISSING

    def _resumption(self) -> datetime | None:
        """Return the first tick that the schedule ran after the last pause began."""
        begun = self._schedule.last_paused_at
        ends = (
            run.end
            for run in self._runs
            if run.backfill is None and run.end is not None and begun is not None
            if run.end > begun and run.created_at is not None and run.created_at > begun
            if run.start is not None
        )
        return min(ends, default=None)


def _start_of(item: tuple[Interval, Run]) -> datetime:
    return item[0].start


def _settled(row: BackfillRow, with_runs: set[str | None]) -> Interval | None:
    """Return the empty intervals that a completed backfill has settled without runs.

    A count of 0 may also be that of failed runs (service.md, 15.47 and 15.48).
    """
    span = _range(row)
    if row.status != COMPLETED or span is None:
        return None
    if row.total_records == 0 and row.id not in with_runs:
        return span
    first = row.adjusted_start
    return Interval(span.start, first) if first is not None and first > span.start else None


def _range(row: BackfillRow) -> Interval | None:
    """Return the range of a backfill; one without an end goes on until it catches up."""
    end = row.end or row.finished_at
    start = row.start or _BEGINNING
    return Interval(start, end) if end is not None and start < end else None


def _span(run: Run) -> Interval | None:
    start = run.start or _BEGINNING
    return Interval(start, run.end) if run.end is not None and start < run.end else None


def _union(ranges: Iterable[Interval]) -> list[Interval]:
    """Return disjoint ranges in order that cover the same time."""
    united: list[Interval] = []
    for item in sorted(ranges):
        if united and item.start <= united[-1].end:
            united[-1] = Interval(united[-1].start, max(united[-1].end, item.end))
        else:
            united.append(item)
    return united


def _without(interval: Interval, covered: Sequence[Interval]) -> list[Interval]:
    """Return the parts of an interval that disjoint ranges in order do not cover."""
    parts, start = [], interval.start
    first = max(0, bisect_right(covered, interval.start, key=lambda item: item.start) - 1)
    for item in covered[first:]:
        if item.start >= interval.end:
            break
        if item.start > start:
            parts.append(Interval(start, item.start))
        start = max(start, item.end)
    if start < interval.end:
        parts.append(Interval(start, interval.end))
    return parts


def _joined(gaps: Iterable[Gap]) -> Iterator[Gap]:
    """Join neighbours of one state. The error is the newest."""
    current: Gap | None = None
    for gap in gaps:
        if current is not None and (current.state, current.end) == (gap.state, gap.start):
            current = replace(
                current,
                end=gap.end,
                intervals=current.intervals + 1,
                partly=current.partly + gap.partly,
                error=gap.error,
            )
            continue
        if current is not None:
            yield current
        current = gap
    if current is not None:
        yield current


class GapRequest(Struct, frozen=True):
    """Which objects, all without `names`, and which window: up to `last`, None for now.

    `first` is None for `length` before the end.
    """

    workspace: WorkspaceOptions
    names: tuple[str, ...] = ()
    length: timedelta = timedelta(days=7)
    first: datetime | None = None
    last: datetime | None = None

    def window(self, now: datetime) -> Interval:
        """Return the window. Raises BadUsage for an empty one."""
        last = now if self.last is None else min(self.last, now)
        first = last - self.length if self.first is None else self.first
        if first >= last:
            raise BadUsage("empty time range", hint="set --from to a time before --to and now")
        return Interval(first, last)


async def gaps(
    request: GapRequest, runtime: Runtime, announce: Announce = lambda _: None
) -> Reported[GapReport]:
    """Return the gaps of objects.

    Raises InvalidConfiguration, BadUsage, ServiceError.
    """
    session = Session.open(request.workspace, runtime)
    async with session.connected() as transport:
        targets = await read_targets(session, transport, "runs")
        chosen = targets.named(request.names)
        now = session.now(transport)
        window = request.window(now)
        listed = await gaps_in(chosen, targets, transport, window, now, announce)
        report = GapReport(session.loaded.desired.environment, window, tuple(listed))
        return Reported(report, calls=transport.calls)


async def gaps_in(
    chosen: tuple[Target, ...],
    targets: Targets,
    transport: Transport,
    window: Interval,
    now: datetime,
    announce: Announce = lambda _: None,
) -> list[ObjectGaps]:
    """Return the gaps of objects in a window, in their order. Raises ServiceError."""
    readings = [
        _Reading.of(target, targets.calls(target, transport), window, now) for target in chosen
    ]
    calls = sum(reading.most_calls for reading in readings)
    if calls:
        announce(transport.estimate(calls))
    return await together(reading.gaps() for reading in readings)


class _Reading(Struct, frozen=True):
    """What has to be read of one object. `runs` are all that matter, None if they are unread."""

    target: Target
    calls: ObjectCalls
    schedule: Schedule | None
    window: Interval
    now: datetime
    expected: int
    runs: tuple[Run, ...] | None
    latest: tuple[Run, ...]
    unknown: str | None = None

    @classmethod
    def of(cls, target: Target, calls: ObjectCalls, window: Interval, now: datetime) -> _Reading:
        latest = latest_runs(target.live)
        schedule, unknown = None, None
        try:
            schedule = Schedule.of(target.live.body, calls.dialect)
            if not schedule.works:
                unknown = f"the server never runs exports with interval '{schedule.interval}'"
        except UnknownSchedule as error:
            unknown = str(error)
        if target.live.parent_id is None:
            unknown = "the service does not say where it belongs"
        expected = 0
        if schedule is not None and unknown is None:
            expected = sum(1 for _ in due_intervals(schedule, window, now))
        known = not expected or reaches_back(latest, window.start)
        runs = latest if known else None
        return cls(target, calls, schedule, window, now, expected, runs, latest, unknown)

    @property
    def most_calls(self) -> int:
        """The calls that it takes unless intervals have several runs."""
        if not self.expected:
            return 0
        pages = 0 if self.runs is not None else self.expected // PAGE + 1
        return pages + self.calls.offered("backfills")

    async def gaps(self) -> ObjectGaps:
        """Read what is missing, and return the gaps. Raises ServiceError."""
        gaps: tuple[Gap, ...] = ()
        if self.schedule is not None and self.expected:
            runs = self.runs
            if runs is None:
                runs = await read_runs(self.calls, self.window.start)
            history = History(runs)
            gaps = gaps_of(self.schedule, history, self.window, self.now)
            if gaps:
                rows = await read_backfills(self.calls, self.window.start)
                gaps = gaps_of(
                    self.schedule, replace(history, backfills=rows), self.window, self.now
                )
        target = self.target
        return ObjectGaps(
            target.address,
            target.live.name,
            target.parent_name,
            gaps,
            self.expected,
            rows_of_a_run(self.latest),
            self.unknown,
        )


def rows_of_a_run(runs: tuple[Run, ...]) -> int | None:
    """Return the median number of rows of completed runs, None without any."""
    counts = [run.records for run in runs if run.completed and run.records is not None]
    return int(median(counts)) if counts else None
