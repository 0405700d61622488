"""`reconciler gaps`: compare runs with schedules, and show the intervals that are missing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from reconciler.commands.command import command
from reconciler.commands.options import (
    environments_options,
    format_option,
    one_environment,
    range_of,
    range_options,
    workspace_of,
)
from reconciler.commands.process import write_result
from reconciler.commands.screen import render_options, report_each
from reconciler.commands.workspace import Reported, Workspace
from reconciler.diagnostics import OfEnvironment
from reconciler.exit_codes import ExitCode
from reconciler.model.kind import Dialect
from reconciler.model.public import Count, Public, Term, derived
from reconciler.model.run import BILLING, COMPLETED, BackfillRow, Run
from reconciler.model.text import command_text, several, short_count, shortened
from reconciler.model.times import (
    Interval,
    Schedule,
    UnknownSchedule,
    bound,
    moment_as_option,
    window_at,
)
from reconciler.model.values import Address
from reconciler.render import writer_of
from reconciler.render.document import (
    Cell,
    Column,
    Document,
    Group,
    Lines,
    Row,
    Table,
    reports_document,
    unpadded,
)
from reconciler.render.options import Colour, RenderOptions
from reconciler.render.runs import name_line

if TYPE_CHECKING:
    from reconciler.commands.targets import Target, Targets

_MOST_NAMED = 3
_TITLES = {"from": " ", "to": " to ", "intervals": "  "}
_COLUMNS = Column("state"), *unpadded(_TITLES)
_BEGINNING = datetime.min.replace(tzinfo=UTC)


class GapState(Term):
    """Why an interval is not exported."""

    MISSING = "missing", "It has no run."
    FAILED = "failed", "Its runs failed or were cancelled."
    PAUSED = "paused", "It has no run, since the export was paused."
    INTENDED = "intended", "The configuration pauses the export (`paused: true`)."
    BILLING = "billing", "Its run exceeded a billing limit. Backfills fail until that is settled."
    PENDING = "pending", "A run or a backfill of it has not ended."
    UNKNOWN = "unknown", "It has no run. An earlier pause may be why: only the last is known."

    @property
    def repairable(self) -> bool:
        """Whether a backfill closes it."""
        return self in (GapState.MISSING, GapState.FAILED, GapState.PAUSED)


_REPAIRABLE = tuple(state for state in GapState if state.repairable)
_CERTAIN = (*_REPAIRABLE, GapState.BILLING)
_COLOURS = {
    **dict.fromkeys((GapState.MISSING, GapState.FAILED, GapState.BILLING), Colour.RED),
    **dict.fromkeys((GapState.PAUSED, GapState.UNKNOWN), Colour.YELLOW),
}


class GapWindow(Struct, frozen=True):
    """The window in which gaps are looked for: texts of times, as options take them.

    It ends at `last`, None for now, and begins at `first`, None for `length` before. Times without
    an offset are UTC, and a date is a day in the time zone of the export.
    """

    first: str | None = None
    last: str | None = None
    length: timedelta = timedelta(days=7)

    def at(self, schedule: Schedule | None, now: datetime) -> Interval:
        """Return the window of an export, not after `now`. It may be empty. Raises BadUsage."""
        end = now if self.last is None else min(bound(schedule, self.last, option="--to"), now)
        if self.first is None:
            return Interval(end - self.length, end)
        return Interval(bound(schedule, self.first, option="--from"), end)


_LAST_WEEK = GapWindow()


class Gap(Public, frozen=True):
    """Neighbouring intervals that are not exported for one reason. Times are ISO 8601 in UTC."""

    start: datetime
    end: datetime
    """Exclusive."""
    state: GapState
    intervals: Count = 1
    partly: Count = 0
    """Of the intervals: how many are exported in part."""
    error: str | None = None
    """Of the last run, as the service returns it."""


class ObjectGaps(Public, frozen=True):
    """The gaps of one object."""

    address: Address
    name: str
    parent_name: str | None = None
    gaps: tuple[Gap, ...] = ()
    expected: Count = 0
    """Intervals of the window whose runs are due."""
    rows_per_run: int | None = None
    """Median of the latest completed runs."""
    unknown: str | None = None
    """Why its intervals are unknown, null if they are known."""

    def count(self, *states: GapState) -> int:
        """Return the number of intervals in some states."""
        return sum(gap.intervals for gap in self.gaps if gap.state in states)


class GapReport(Public, frozen=True):
    """All gaps. `gaps` and `repairable` count intervals."""

    schema = "gaps"
    version = 1

    environment: str
    start: datetime
    """Start of the window."""
    end: datetime
    """End of the window."""
    objects: tuple[ObjectGaps, ...]

    @derived
    def gaps(self) -> Count:
        """Intervals that are gaps for certain."""
        return sum(item.count(*_CERTAIN) for item in self.objects)

    @derived
    def repairable(self) -> Count:
        """Intervals that a backfill closes."""
        return sum(item.count(*_REPAIRABLE) for item in self.objects)


@command(
    "gaps",
    examples=(
        ("gaps", "Look for gaps of the last seven days in every export"),
        ("gaps lake 'orders-*' --since 30d", "Look at some exports, for a month"),
        ("gaps -e '*'", "Look in every environment"),
    ),
    page="docs/operations.md",
)
@environments_options
@range_options
@format_option("gaps")
def gaps_command(names: tuple[str, ...], output_format: str, **options: Any) -> ExitCode:
    """Show the intervals that should have been exported and were not. Changes nothing.

    NAME is an address, an id, a key, a name or a glob. Looks at the last seven days, or at a range.
    Times without an offset are UTC; a date is a day in the time zone of the export. Exits with 2 if
    there are gaps. What can't be known, for example because of an earlier pause, is `unknown` and
    no gap. Of several environments, one that fails does not hide the others, and the exit code is
    the worst.
    """
    first, last = options["first"], options["last"]
    # Invalid times are refused before anything is read.
    environments, (begin, _) = one_environment(options), range_of(options)
    length = begin if isinstance(begin, timedelta) else _LAST_WEEK.length
    window = GapWindow(first, last, length)

    def code_of(report: GapReport) -> ExitCode:
        return ExitCode.CHANGES if report.gaps else ExitCode.FINE

    def show(items: Sequence[OfEnvironment[GapReport]]) -> None:
        write = writer_of(output_format, "all_gaps" if environments else "gaps")
        write_result(write(items if environments else items[0].result, render_options()))

    work = partial(gaps, names=names, window=window)
    return report_each(work, workspace_of(options), environments, code_of, show)


async def gaps(
    workspace: Workspace,
    names: Sequence[str] = (),
    *,
    window: GapWindow = _LAST_WEEK,
) -> Reported[GapReport]:
    """Return the intervals that objects should have exported and did not; of all without `names`.

    Raises InvalidConfiguration, BadUsage, ServiceError.
    """
    from reconciler.commands.targets import opened
    from reconciler.service.pace import together

    async with opened(workspace, "runs") as targets:
        chosen, now = targets.named(names), targets.now()
        judged = await together(gaps_of_object(item, targets, window, now) for item in chosen)
        # Days begin at several times, and that of some exports may not have begun.
        windows = [of_object for _, of_object in judged] or [window.at(None, now)]
        start, end = min(it.start for it in windows), max(it.end for it in windows)
        window_at(now, start, end)
        report = GapReport(targets.environment, start, end, tuple(item for item, _ in judged))
        return workspace.masked(Reported(report, calls=targets.transport.calls))


async def gaps_of_object(
    target: Target, targets: Targets, wanted: GapWindow, now: datetime
) -> tuple[ObjectGaps, Interval]:
    """Read the runs of an object that matter, and return its gaps in a window, and the window.

    Raises BadUsage, ServiceError.
    """
    from reconciler.service.operations import latest_runs, read_backfills, runs_since

    calls, latest = targets.calls(target), latest_runs(target.live)
    gaps: tuple[Gap, ...] = ()
    expected, unknown, window = 0, None, wanted.at(None, now)
    try:
        schedule = schedule_of(target, calls.dialect)
        window = wanted.at(schedule, now)
        expected = sum(1 for _ in due_intervals(schedule, window, now))
    except UnknownSchedule as error:
        unknown = str(error)
    if expected:
        runs = await runs_since(calls, window.start)
        gaps = gaps_of(schedule, runs, window, now)
        if gaps:
            rows = await read_backfills(calls, window.start)
            gaps = gaps_of(schedule, runs, window, now, rows)
        if schedule.paused and target.declares_pause:
            gaps = _intended(gaps)
    about = target.address, target.live.name, target.parent_name
    return ObjectGaps(*about, gaps, expected, rows_of_a_run(latest), unknown), window


def schedule_of(target: Target, dialect: Dialect | None) -> Schedule:
    """Return the schedule of an object that runs. Raises UnknownSchedule."""
    schedule = Schedule.of(target.live.body, dialect)
    if target.live.parent_id is None:
        raise UnknownSchedule("the service does not say where it belongs")
    return schedule


def _intended(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Return the gaps of an export that the configuration pauses: none is to be repaired."""
    pending = GapState.PENDING
    changed = (
        gap if gap.state is pending else replace(gap, state=GapState.INTENDED, error=None)
        for gap in gaps
    )
    return tuple(joined(changed))


def rows_of_a_run(runs: tuple[Run, ...]) -> int | None:
    """Return the median number of rows of completed runs, None without any."""
    counts = [run.records for run in runs if run.completed and run.records is not None]
    return int(median(counts)) if counts else None


def gaps_of(
    schedule: Schedule,
    runs: Sequence[Run],
    window: Interval,
    now: datetime,
    backfills: Sequence[BackfillRow] | None = (),
) -> tuple[Gap, ...]:
    """Return the gaps among the intervals that end in a window and whose runs are due, in order.

    `runs` are those since the begin of the window; `backfills` is None if they are unknown.
    """
    judge = _Judge(schedule, runs, backfills or ())
    intervals = due_intervals(schedule, window, now)
    return tuple(joined(gap for interval in intervals if (gap := judge.gap(interval))))


def due_intervals(schedule: Schedule, window: Interval, now: datetime) -> Iterator[Interval]:
    """Yield the intervals that end in a window and whose runs are due, in order."""
    for interval in schedule.expected(window.start, min(window.end, now)):
        if schedule.due_after(interval.end) <= now:
            yield interval


class _Judge:
    """Decides whether an interval is exported."""

    def __init__(
        self, schedule: Schedule, runs: Sequence[Run], rows: Sequence[BackfillRow]
    ) -> None:
        self._schedule, self._runs = schedule, runs
        spans = [(span, run) for run in runs if (span := _span(run.start, run.end))]
        with_runs = {run.backfill for run in runs}
        settled = [span for row in rows if (span := _settled(row, with_runs))]
        filling = [span for row in rows if row.pending and (span := _range(row))]
        self._covered = _union([*(span for span, run in spans if run.completed), *settled])
        self._pending = _union([*(span for span, run in spans if run.pending), *filling])
        ended = [it for it in spans if not (it[1].completed or it[1].pending) and it[1].start]
        self._ended = sorted(ended, key=_start_of)
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
    return _span(row.start, row.end or row.finished_at)


def _span(start: datetime | None, end: datetime | None) -> Interval | None:
    start = start or _BEGINNING
    return Interval(start, end) if end is not None and start < end else None


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


def joined(gaps: Iterable[Gap]) -> list[Gap]:
    """Return gaps of which neighbours of one state are one. The error is the newest."""
    result: list[Gap] = []
    for gap in gaps:
        last = result[-1] if result else None
        if last is not None and (last.state, last.end) == (gap.state, gap.start):
            count, partly = last.intervals + gap.intervals, last.partly + gap.partly
            result[-1] = replace(gap, start=last.start, intervals=count, partly=partly)
        else:
            result.append(gap)
    return result


def gaps_document(report: GapReport, options: RenderOptions) -> Document:
    """Return the gaps of every object that has some, the counts, and the command that repairs."""
    rows = tuple(row for item in report.objects for row in _rows(item))
    complete = sum(not (item.gaps or item.unknown) for item in report.objects)
    fine = (f"✓ {several(complete, 'object')} without gaps",) if complete else ()
    start, end = map(moment_as_option, (report.start, report.end))
    return Document(
        (Cell(f"Gaps of {report.environment}"),),
        (Cell(f"Environment {report.environment} · intervals from {start} to {end}"),),
        (Table(_COLUMNS, rows, headed=False, indent=2, beside=True, noun="gap"), Lines(fine)),
        _summary(report),
        tuple(_repairs(report, options)),
    )


def all_gaps_document(
    reports: Sequence[OfEnvironment[GapReport]], options: RenderOptions
) -> Document:
    """Return the gaps of every environment."""
    return reports_document("Gaps", reports, lambda report: gaps_document(report, options))


def _rows(item: ObjectGaps) -> Iterator[Row]:
    parent = f"  {item.parent_name}" if item.parent_name else ""
    open_count = sum(gap.intervals for gap in item.gaps)
    count = f"  {open_count:,} of {several(item.expected, 'interval')}" if item.gaps else ""
    group = Group(name_line(item.address, item.name), f"{parent}{count}")
    if item.unknown:
        blank = tuple(Cell("") for _ in _TITLES)
        yield Row((Cell("unknown"), *blank), group=group, notes=(item.unknown,))
    for gap in item.gaps:
        partly = f", {gap.partly} exported in part" if gap.partly else ""
        cells = (
            Cell(gap.state.value, _COLOURS.get(gap.state, Colour.DIM)),
            Cell(moment_as_option(gap.start)),
            Cell(moment_as_option(gap.end)),
            Cell(f"{several(gap.intervals, 'interval')}{partly}"),
        )
        error = shortened(" ".join((gap.error or "").split()))
        yield Row(cells, group=group, notes=(error,) if error else ())


def _summary(report: GapReport) -> str:
    if not any(item.gaps for item in report.objects):
        unknown = sum(item.unknown is not None for item in report.objects)
        rest = f" {several(unknown, 'object')} can't be judged." if unknown else ""
        return f"No gaps.{rest}"
    rows = sum((item.rows_per_run or 0) * item.count(*_REPAIRABLE) for item in report.objects)
    volume = f"; about {short_count(rows)} rows to backfill" if rows else ""
    counts = {state: sum(item.count(state) for item in report.objects) for state in GapState}
    texts = [f"{count:,} {state}" for state, count in counts.items() if count]
    return f"Intervals: {', '.join(texts)}{volume}."


def _repairs(report: GapReport, options: RenderOptions) -> Iterator[str]:
    every = [(item.address, gap) for item in report.objects for gap in item.gaps]
    if repairable := [(address, gap) for address, gap in every if gap.state.repairable]:
        names = list(dict.fromkeys(str(address) for address, _ in repairable))
        # `backfill` looks at the last seven days by itself, and this may be another range.
        begin = moment_as_option(min(gap.start for _, gap in repairable))
        end = moment_as_option(max(gap.end for _, gap in repairable))
        names = names if len(names) <= _MOST_NAMED else ["*"]
        words = ("backfill", *names, "--gaps", "--from", begin, "--to", end)
        command = command_text(*words, environment=report.environment, more=options.again)
        yield from ("hint: backfill them:", f"  {command}")
    states = {gap.state for _, gap in every}
    if GapState.BILLING in states:
        yield "note: settle billing before you backfill those intervals; until then runs fail"
    if GapState.UNKNOWN in states:
        yield (
            "note: an earlier pause may explain unknown intervals; check the data before you "
            "backfill them with --from and --to"
        )
