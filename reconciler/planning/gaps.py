"""Compare the intervals that a schedule has with those that were exported (docs/service.md, 7.4).

Coverage is judged by time, since a change of the schedule changes the grid.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.gaps import Gap, GapState
from reconciler.model.intervals import Interval, Schedule
from reconciler.model.run import BackfillRow, Run
from reconciler.model.run_status import BILLING, COMPLETED

_BEGINNING = datetime.min.replace(tzinfo=UTC)


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
        runs = [
            run
            for span, run in self._ended[first:last]
            if any(span.start < part.end and part.start < span.end for part in parts)
        ]
        return max(runs, key=lambda run: run.created_at or _BEGINNING, default=None)

    def _without_run(self, tick: datetime) -> GapState:
        """Return why a tick has no run, as far as the last pause says (docs/service.md, 15.55)."""
        begun, paused = self._schedule.last_paused_at, self._schedule.paused
        if begun is None:
            # A pause by PATCH sets no time (docs/service.md, 1.7).
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

    A count of 0 may also be that of failed runs (docs/service.md, 15.47 and 15.48).
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
