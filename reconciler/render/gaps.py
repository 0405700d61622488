"""Gaps of objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from reconciler.model.field_types import Instant
from reconciler.model.gaps import GapReport, GapState, ObjectGaps
from reconciler.model.text import printable, quoted, several, shortened
from reconciler.render.document import Cell, Column, Document, Group, Lines, Row, Table
from reconciler.render.durations import short_count
from reconciler.render.options import RenderOptions
from reconciler.render.style import Colour

_LONGEST_ERROR = 120
_MOST_NAMED = 3
_COLUMNS = (
    Column("state"),
    *(Column(title, before, padded=False) for title, before in (("from", " "), ("to", " to "))),
    *(Column(title, padded=False) for title in ("intervals", "last error")),
)
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
            Cell(moment(gap.start)),
            Cell(moment(gap.end)),
            Cell(f"{several(gap.intervals, 'interval')}{partly}"),
            Cell(shortened(printable(gap.error or ""), _LONGEST_ERROR)),
        )
        yield Row(cells, group=group)


def moment(value: datetime) -> str:
    """Return a time as options take it."""
    return str(Instant().canonical(value.replace(microsecond=0)))


def _window(report: GapReport) -> str:
    return f"intervals from {moment(report.window.start)} to {moment(report.window.end)}"


def _counts(report: GapReport) -> str:
    counts = Counter[GapState]()
    for item in report.objects:
        for gap in item.gaps:
            counts[gap.state] += gap.intervals
    return ", ".join(f"{counts[state]:,} {state}" for state in GapState if counts[state]) or (
        "no gaps"
    )


def _summary(report: GapReport) -> str:
    if not any(item.gaps for item in report.objects):
        unknown = sum(item.unknown is not None for item in report.objects)
        rest = f" {several(unknown, 'object')} can't be judged." if unknown else ""
        return f"No gaps.{rest}"
    rows = sum(
        (item.rows_per_run or 0) * item.count(*(state for state in GapState if state.repairable))
        for item in report.objects
    )
    volume = f"; about {short_count(rows)} rows to backfill" if rows else ""
    return f"Intervals: {_counts(report)}{volume}."


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
        begin = min(gap.start for _, gap in repairable)
        end = max(gap.end for _, gap in repairable)
        yield f"hint: reconciler backfill {name} --gaps --from {moment(begin)} --to {moment(end)}"
    states = {gap.state for item in report.objects for gap in item.gaps}
    if GapState.BILLING in states:
        yield "note: settle billing before you backfill those intervals; until then runs fail"
    if GapState.UNKNOWN in states:
        yield (
            "note: an earlier pause may explain unknown intervals; check the data before you "
            "backfill them with --from and --to"
        )
