"""A plan of backfills, and how they ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import starmap
from typing import TypeVar

from reconciler.model.address import Address
from reconciler.model.backfill_plan import (
    BackfillEnd,
    BackfillPlan,
    BackfillState,
    ObjectBackfills,
    PlannedBackfill,
)
from reconciler.model.plan import Consequence, Severity
from reconciler.model.text import listed, printable, quoted, several
from reconciler.model.times import moment_as_option
from reconciler.render.document import Cell, Column, Document, Facts, Group, Row, Table
from reconciler.render.durations import short_count
from reconciler.render.options import RenderOptions
from reconciler.render.style import Colour, Style

_T = TypeVar("_T")
_MOST_LISTED = 3
_SEVERITIES = {Severity.DANGER: Colour.RED, Severity.WARNING: Colour.YELLOW}
_COLUMNS = (
    Column("from"),
    Column("to", " to "),
    *(Column(title, padded=False) for title in ("runs", "order")),
)
_RULES = Column("severity"), Column("rule"), Column("message", padded=False)
_COLOURS = {
    BackfillState.COMPLETED: Colour.GREEN,
    BackfillState.EMPTY: Colour.GREEN,
    BackfillState.PARTLY: Colour.RED,
    BackfillState.FAILED: Colour.RED,
    BackfillState.UNKNOWN: Colour.BOLD_RED,
    BackfillState.SKIPPED: Colour.YELLOW,
}


def backfills_document(plan: BackfillPlan, options: RenderOptions) -> Document:
    """Return where it runs, the backfills of each object, what to know before, and the counts."""
    where = Cell(f"{plan.source.environment} · {plan.source.base_url}")
    rows = tuple(_row(item, of) for of in plan.objects for item in of.backfills)
    rules = _common(plan, lambda of: of.consequences)
    notes = [_about(note, where) for note, where in _common(plan, lambda of: of.notes)]
    return Document(
        (Cell(f"Backfills of {plan.source.environment}"),),
        (),
        (
            Facts((("Environment", where), ("Plan", Cell(plan.plan_id[:8]))), indent=0),
            Table(_COLUMNS, rows, headed=False, indent=2, noun="backfill"),
            Table(_RULES, tuple(starmap(_consequence, rules)), headed=False, indent=2, wraps=True),
        ),
        f"Plan: {counts(plan)}." if plan.backfills else "Nothing to backfill.",
        (
            *(("Runs of an export follow one another.",) if plan.backfills else ()),
            *((f"Starting them takes {options.cost}.",) if options.cost and plan.backfills else ()),
            *(f"note: {note}" for note in (*plan.notes, *notes)),
        ),
    )


def _common(
    plan: BackfillPlan, parts: Callable[[ObjectBackfills], Iterable[_T]]
) -> list[tuple[_T, str]]:
    """Return each part of some objects once, with these objects; "" if it concerns all."""
    users: dict[_T, list[Address]] = {}
    for item in plan.objects:
        for part in parts(item):
            users.setdefault(part, []).append(item.address)
    every = len(plan.objects)
    return [
        (part, "" if len(names) == every else listed(names, _MOST_LISTED))
        for part, names in users.items()
    ]


def _about(text: str, where: str) -> str:
    return f"{text} ({where})" if where else text


def _row(item: PlannedBackfill, of: ObjectBackfills) -> Row:
    order = ["tried first"] if item.trial else []
    order += [f"retry of {item.run}"] if item.run is not None else []
    cells = (*_ends(item), several(item.runs, "run"), ", ".join(order))
    name = Cell(str(of.address), Colour.BOLD, code=True), Cell(quoted(of.name))
    group = Group(name, f"  {of.parent_name}" if of.parent_name else "")
    return Row(tuple(map(Cell, cells)), "↻", group=group)


def _consequence(item: Consequence, where: str) -> Row:
    cells = Cell(item.severity.value, _SEVERITIES.get(item.severity)), Cell(item.rule, code=True)
    return Row((*cells, Cell(_about(item.message, where))))


def ends_as_text(ended: Sequence[ObjectBackfills], style: Style) -> str:
    """Return a line for every backfill that was to be started, and how to go on."""
    lines: list[str] = []
    for item in ended:
        lines += ["", f"{printable(str(item.address))} {quoted(item.name)}"]
        for end in item.ends:
            lines += _end_lines(end, style)
    states = {end.state for item in ended for end in item.ends}
    if not states.isdisjoint({BackfillState.STARTED, BackfillState.RUNNING}):
        one = f" {printable(str(ended[0].address))}" if len(ended) == 1 else ""
        what = f"the runs: reconciler runs{one}" if one else "all: reconciler status"
        lines += ["", f"Look at {what}; at gaps: reconciler gaps{one}"]
    return "".join(f"{line}\n" for line in lines)


def _end_lines(end: BackfillEnd, style: Style) -> list[str]:
    state = style.paint(_COLOURS.get(end.state), f"{end.state.value:<9}")
    name = f" (backfill {printable(end.id)})" if end.id is not None else ""
    lines = [
        f"  {state} {' to '.join(_ends(end.planned))}  {several(end.planned.runs, 'run')}{name}"
    ]
    lines += style.wrapped(printable(end.detail), "    ", "    ") if end.detail else []
    return [*lines, f"    hint: {printable(end.hint)}"] if end.hint else lines


def counts(plan: BackfillPlan) -> str:
    """Return the numbers of backfills, objects, runs and rows."""
    if not plan.backfills:
        return "nothing to backfill"
    objects = [item for item in plan.objects if item.backfills]
    of = f" of {several(len(objects), 'export')}" if len(objects) > 1 else ""
    count = sum((item.rows or 0) * item.runs for item in objects)
    rows = f", about {short_count(count)} rows" if count else ""
    return f"{several(len(plan.backfills), 'backfill')}{of}, {several(plan.runs, 'run')}{rows}"


def _ends(item: PlannedBackfill) -> tuple[str, str]:
    return moment_as_option(item.start), moment_as_option(item.end)
