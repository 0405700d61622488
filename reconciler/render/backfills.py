"""A plan of backfills and its end as text and JSON, and the words that other formats share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.model.backfill_plan import (
    BackfillEnd,
    BackfillPlan,
    BackfillState,
    PlannedBackfill,
)
from reconciler.model.change import Severity
from reconciler.model.wording import printable, quoted, several
from reconciler.render.counts import short_count
from reconciler.render.gaps import moment
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.style import Colour, Style

_MARKS = {Severity.DANGER: "!!", Severity.WARNING: "!", Severity.INFO: "i"}
_COLOURS = {
    BackfillState.COMPLETED: Colour.GREEN,
    BackfillState.EMPTY: Colour.GREEN,
    BackfillState.PARTLY: Colour.RED,
    BackfillState.FAILED: Colour.RED,
    BackfillState.UNKNOWN: Colour.BOLD_RED,
    BackfillState.SKIPPED: Colour.YELLOW,
}


def backfills_as_text(plan: BackfillPlan, options: RenderOptions = DEFAULTS) -> str:
    """Return where it runs, every backfill, what to know before, and the counts."""
    style, source = options.style, plan.source
    parent = f" · {printable(plan.parent_name)}" if plan.parent_name else ""
    address = style.paint(Colour.BOLD, printable(str(plan.address)))
    lines = [
        f"Environment {printable(source.environment)} · {printable(source.base_url)}",
        f"Backfill    {address} {quoted(plan.name)}{parent}",
        "",
    ]
    for item in plan.backfills:
        trial = "  tried first" if item.trial else ""
        lines.append(f"  ↻ {_range(item)}  {several(item.runs, 'run')}{trial}")
    for consequence in plan.consequences:
        mark = _MARKS[consequence.severity]
        text = printable(f"{consequence.rule}  {consequence.message}")
        lines += style.wrapped(text, f"    {mark} ", "      ")
    lines += ["", *_summary(plan, options.cost)] if plan.backfills else ["No gaps to backfill."]
    lines += [f"note: {printable(note)}" for note in plan.notes]
    return "\n".join(lines) + "\n"


def backfills_as_json(
    plan: BackfillPlan, _: RenderOptions = DEFAULTS, *, ends: Iterable[BackfillEnd] = ()
) -> str:
    """Return the JSON of a plan, and of how it ended."""
    # The forms take 30 ms to import, which other results do not need.
    from reconciler.model.codec.backfill_plan import backfills_as_json as encoded

    return encoded(plan, ends)


def ends_as_text(plan: BackfillPlan, ends: Iterable[BackfillEnd], style: Style) -> str:
    """Return a line for every backfill that was to be started, and how to go on."""
    listed = list(ends)
    lines: list[str] = []
    for end in listed:
        state = style.paint(_COLOURS.get(end.state), f"{end.state.value:<9}")
        name = f" (backfill {printable(end.id)})" if end.id is not None else ""
        lines.append(f"{state} {_range(end.planned)}  {several(end.planned.runs, 'run')}{name}")
        lines += style.wrapped(printable(end.detail), "  ", "  ") if end.detail else []
        lines += [f"  hint: {printable(end.hint)}"] if end.hint else []
    if any(end.state in (BackfillState.STARTED, BackfillState.RUNNING) for end in listed):
        address = printable(str(plan.address))
        lines += [
            "",
            f"Look at the runs: reconciler runs {address}; at gaps: reconciler gaps {address}",
        ]
    return "".join(f"{line}\n" for line in ["", *lines]) if listed else ""


def counts(plan: BackfillPlan) -> str:
    """Return the numbers of backfills, runs and rows."""
    if not plan.backfills:
        return "no gaps to backfill"
    rows = f", about {short_count(plan.rows * plan.runs)} rows" if plan.rows else ""
    return f"{several(len(plan.backfills), 'backfill')}, {several(plan.runs, 'run')}{rows}"


def range_ends(item: PlannedBackfill) -> tuple[str, str]:
    """Return the start and the end of a backfill."""
    return moment(item.start), moment(item.end)


def _range(item: PlannedBackfill) -> str:
    return " to ".join(range_ends(item))


def _summary(plan: BackfillPlan, cost: str) -> Iterator[str]:
    yield f"Plan: {counts(plan)}. Runs follow one another."
    if cost:
        yield f"      {cost}."
