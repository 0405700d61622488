"""The report of `gaps`: the intervals of objects that were not exported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from reconciler.model.address import Address
from reconciler.model.plan import OfEnvironment
from reconciler.model.public import Count, Public, Term, derived
from reconciler.model.text import printable, quoted, several, shortened
from reconciler.model.times import Interval, moment_as_option
from reconciler.render.document import Cell, Column, Document, Group, Lines, Row, Table
from reconciler.render.environments import reports_document
from reconciler.render.options import Colour, RenderOptions
from reconciler.render.words import short_count

_LONGEST_ERROR = 120
_MOST_NAMED = 3
_COLUMNS = (
    Column("state"),
    *(Column(title, before, padded=False) for title, before in (("from", " "), ("to", " to "))),
    *(Column(title, padded=False) for title in ("intervals", "last error")),
)


class GapState(Term):
    """Why an interval is not exported."""

    MISSING = "missing", "It has no run."
    FAILED = "failed", "Its runs failed or were cancelled."
    PAUSED = "paused", "It has no run, since the export was paused."
    BILLING = "billing", "Its run exceeded a billing limit. Backfills fail until that is settled."
    PENDING = "pending", "A run or a backfill of it has not ended."
    UNKNOWN = (
        "unknown",
        "It has no run. An earlier pause may be the reason: only the last is known.",
    )

    @property
    def is_gap(self) -> bool:
        """Whether it is a gap for certain."""
        return self not in (GapState.PENDING, GapState.UNKNOWN)

    @property
    def repairable(self) -> bool:
        """Whether a backfill closes it."""
        return self in (GapState.MISSING, GapState.FAILED, GapState.PAUSED)


_REPAIRABLE = tuple(state for state in GapState if state.repairable)
_CERTAIN = tuple(state for state in GapState if state.is_gap)


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
    internal = frozenset({"window"})
    version = 1

    environment: str
    window: Interval
    objects: tuple[ObjectGaps, ...]

    @derived
    def start(self) -> datetime:
        """Start of the window."""
        return self.window.start

    @derived
    def end(self) -> datetime:
        """End of the window."""
        return self.window.end

    @derived
    def gaps(self) -> Count:
        """Intervals that are gaps for certain."""
        return sum(item.count(*_CERTAIN) for item in self.objects)

    @derived
    def repairable(self) -> Count:
        """Intervals that a backfill closes."""
        return sum(item.count(*_REPAIRABLE) for item in self.objects)


_COLOURS = {
    GapState.MISSING: Colour.RED,
    GapState.FAILED: Colour.RED,
    GapState.BILLING: Colour.RED,
    GapState.PAUSED: Colour.YELLOW,
    GapState.UNKNOWN: Colour.YELLOW,
    GapState.PENDING: Colour.DIM,
}


def gaps_document(report: GapReport, _: RenderOptions) -> Document:
    """Return the gaps of every object that has some, the counts, and the command that repairs."""
    rows = tuple(row for item in report.objects for row in _rows(item))
    complete = sum(not (item.gaps or item.unknown) for item in report.objects)
    fine = (f"✓ {several(complete, 'object')} without gaps",) if complete else ()
    return Document(
        (Cell(f"Gaps of {report.environment}"),),
        (Cell(f"Environment {report.environment} · {_window(report)}"),),
        (Table(_COLUMNS, rows, headed=False, indent=2, noun="gap"), Lines(fine)),
        _summary(report),
        tuple(_repairs(report)),
    )


def _rows(item: ObjectGaps) -> Iterator[Row]:
    parent = f"  {item.parent_name}" if item.parent_name else ""
    open_count = sum(gap.intervals for gap in item.gaps)
    count = f"  {open_count:,} of {several(item.expected, 'interval')}" if item.gaps else ""
    name = Cell(str(item.address), Colour.BOLD, code=True), Cell(quoted(item.name))
    group = Group(name, f"{parent}{count}")
    if item.unknown:
        cells = Cell("unknown"), *(Cell("") for _ in _COLUMNS[2:]), Cell(item.unknown)
        yield Row(cells, group=group)
    for gap in item.gaps:
        partly = f", {gap.partly} exported in part" if gap.partly else ""
        cells = (
            Cell(gap.state.value, _COLOURS[gap.state]),
            Cell(moment_as_option(gap.start)),
            Cell(moment_as_option(gap.end)),
            Cell(f"{several(gap.intervals, 'interval')}{partly}"),
            Cell(shortened(printable(gap.error or ""), _LONGEST_ERROR)),
        )
        yield Row(cells, group=group)


def _window(report: GapReport) -> str:
    start, end = map(moment_as_option, (report.window.start, report.window.end))
    return f"intervals from {start} to {end}"


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


def _repairs(report: GapReport) -> Iterator[str]:
    if report.repairable:
        repairable = [
            (str(item.address), gap)
            for item in report.objects
            for gap in item.gaps
            if gap.state.repairable
        ]
        names = dict.fromkeys(address for address, _ in repairable)
        name = " ".join(names) if len(names) <= _MOST_NAMED else "'*'"
        # `backfill` looks at the last seven days by itself, and this may be another range.
        begin = moment_as_option(min(gap.start for _, gap in repairable))
        end = moment_as_option(max(gap.end for _, gap in repairable))
        yield f"hint: reconciler backfill {name} --gaps --from {begin} --to {end}"
    states = {gap.state for item in report.objects for gap in item.gaps}
    if GapState.BILLING in states:
        yield "note: settle billing before you backfill those intervals; until then runs fail"
    if GapState.UNKNOWN in states:
        yield (
            "note: an earlier pause may explain unknown intervals; check the data before you "
            "backfill them with --from and --to"
        )


def all_gaps_document(
    reports: Sequence[OfEnvironment[GapReport]], options: RenderOptions
) -> Document:
    """Return the gaps of every environment."""
    return reports_document("Gaps", reports, lambda report: gaps_document(report, options))
