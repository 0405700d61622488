"""A plan of backfills, and how they ended."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.backfill_plan import (
    BackfillEnd,
    BackfillPlan,
    BackfillState,
    PlannedBackfill,
)
from reconciler.model.change import Consequence, Severity
from reconciler.model.text import printable, quoted, several
from reconciler.render.document import Cell, Column, Document, Facts, Row, Table
from reconciler.render.durations import short_count
from reconciler.render.gaps import moment
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.style import Colour, Style

_SEVERITIES = {Severity.DANGER: Colour.RED, Severity.WARNING: Colour.YELLOW}
_COLUMNS = (
    Column("from"),
    Column("to", " to "),
    *(Column(title, padded=False) for title in ("runs", "order")),
)
_COLOURS = {
    BackfillState.COMPLETED: Colour.GREEN,
    BackfillState.EMPTY: Colour.GREEN,
    BackfillState.PARTLY: Colour.RED,
    BackfillState.FAILED: Colour.RED,
    BackfillState.UNKNOWN: Colour.BOLD_RED,
    BackfillState.SKIPPED: Colour.YELLOW,
}


def backfills_document(plan: BackfillPlan, options: RenderOptions) -> Document:
    """Return where it runs, every backfill, what to know before, and the counts."""
    parent = f" · {plan.parent_name}" if plan.parent_name else ""
    address = Cell(str(plan.address), code=True)
    facts = {
        "Environment": f"{plan.source.environment} · {plan.source.base_url}",
        "Backfill": f"{plan.address} {quoted(plan.name)}{parent}",
        "Plan": plan.id[:8],
    }
    rules = tuple(map(_consequence, plan.consequences))
    columns = Column("severity"), Column("rule"), Column("message", padded=False)
    return Document(
        (Cell("Backfills of"), address, Cell(quoted(plan.name))),
        (),
        (
            Facts(tuple((name, Cell(text)) for name, text in facts.items()), indent=0),
            Table(
                _COLUMNS, tuple(map(_row, plan.backfills)), headed=False, indent=2, noun="backfill"
            ),
            Table(columns, rules, headed=False, indent=4, wraps=True, attached=True),
        ),
        _summary(plan),
        (
            *((f"Starting them takes {options.cost}.",) if options.cost and plan.backfills else ()),
            *(f"note: {note}" for note in plan.notes),
        ),
    )


def _row(item: PlannedBackfill) -> Row:
    trial = "tried first" if item.trial else ""
    cells = (*range_ends(item), several(item.runs, "run"), trial)
    return Row(tuple(map(Cell, cells)), "↻")


def _consequence(item: Consequence) -> Row:
    cells = Cell(item.severity.value, _SEVERITIES.get(item.severity)), Cell(item.rule, code=True)
    return Row((*cells, Cell(item.message)))


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


def _summary(plan: BackfillPlan) -> str:
    if not plan.backfills:
        return "No gaps to backfill."
    return f"Plan: {counts(plan)}. Runs follow one another."
