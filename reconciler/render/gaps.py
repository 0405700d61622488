"""Gaps as text, JSON and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from reconciler.model.field_types import Instant
from reconciler.model.gaps import Gap, GapReport, GapState, ObjectGaps
from reconciler.model.wording import printable, quoted, several, shortened
from reconciler.render.counts import short_count
from reconciler.render.markup import code, inline, within
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.style import Colour, Style

_LONGEST_ERROR = 120
_MARGIN = 300
"""Characters for the head of the table and the count of what is missing."""
_COLOURS = {
    GapState.MISSING: Colour.RED,
    GapState.FAILED: Colour.RED,
    GapState.BILLING: Colour.RED,
    GapState.PAUSED: Colour.YELLOW,
    GapState.UNKNOWN: Colour.YELLOW,
    GapState.PENDING: Colour.DIM,
}


def gaps_as_text(report: GapReport, options: RenderOptions = DEFAULTS) -> str:
    """Return the gaps of every object that has some, the counts, and the command that repairs."""
    shown = [item for item in report.objects if item.gaps or item.unknown]
    lines = [f"Environment {printable(report.environment)} · {_window(report)}", ""]
    for item in shown:
        lines += [*_object(item, options.style), ""]
    complete = len(report.objects) - len(shown)
    if complete:
        lines += [f"✓ {several(complete, 'object')} without gaps", ""]
    lines.append(_summary(report))
    lines += _repairs(report)
    return "\n".join(lines) + "\n"


def gaps_as_markdown(report: GapReport, options: RenderOptions = DEFAULTS) -> str:
    """Return a table with a row for each gap."""
    lines = [f"### {inline(report.environment)}: {inline(_counts(report))}", "", _window(report)]
    used = sum(len(line) + 1 for line in lines)
    pieces = (*_rows(report), *_unknown(report))
    kept, missing = within(iter(pieces), options.limit - used - _MARGIN)
    if kept and kept[0].startswith("|"):
        lines += ["", "| object | state | from | to | intervals | last error |"]
        lines.append("|---|---|---|---|---|---|")
    lines += kept
    lines += ["", f"… and {several(missing, 'more line')}"] if missing else []
    return "\n".join(lines) + "\n"


def _rows(report: GapReport) -> Iterator[str]:
    for item in report.objects:
        for gap in item.gaps:
            yield (
                f"| {code(str(item.address))} {inline(item.name)} | {gap.state} | "
                f"{moment(gap.start)} | {moment(gap.end)} | {gap.intervals} | "
                f"{inline(_error(gap))} |"
            )


def _unknown(report: GapReport) -> Iterator[str]:
    for item in report.objects:
        if item.unknown:
            yield f"- {code(str(item.address))}: unknown: {inline(item.unknown)}"


def moment(value: datetime) -> str:
    """Return a time as options take it."""
    return str(Instant().canonical(value.replace(microsecond=0)))


def _window(report: GapReport) -> str:
    return f"intervals from {moment(report.window.start)} to {moment(report.window.end)}"


def _object(item: ObjectGaps, style: Style) -> Iterator[str]:
    parent = f"  {printable(item.parent_name)}" if item.parent_name else ""
    open_count = sum(gap.intervals for gap in item.gaps)
    count = f"  {open_count:,} of {several(item.expected, 'interval')}" if item.gaps else ""
    yield f"{style.paint(Colour.BOLD, str(item.address))} {quoted(item.name)}{parent}{count}"
    if item.unknown:
        yield f"  unknown: {printable(item.unknown)}"
    for gap in item.gaps:
        state = style.paint(_COLOURS[gap.state], f"{gap.state.value:<8}")
        line = f"  {state} {moment(gap.start)} to {moment(gap.end)}"
        line += f"  {several(gap.intervals, 'interval')}"
        if gap.partly:
            line += f", {gap.partly} exported in part"
        error = _error(gap)
        yield line + (f"  {error}" if error else "")


def _error(gap: Gap) -> str:
    return shortened(printable(gap.error or ""), _LONGEST_ERROR)


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
        name = next(iter(names)) if len(names) == 1 else "NAME"
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
