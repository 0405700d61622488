"""Destination tests."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.preflight import Preflight, PreflightReport, StepStatus
from reconciler.model.text import quoted, several
from reconciler.render.document import Cell, Column, Document, Group, Row, Table
from reconciler.render.options import RenderOptions
from reconciler.render.style import Colour

_SIGNS = {
    StepStatus.PASSED: ("✓", Colour.GREEN),
    StepStatus.SKIPPED: ("-", Colour.DIM),
    StepStatus.FAILED: ("✗", Colour.RED),
}


def preflight_document(report: PreflightReport, _: RenderOptions) -> Document:
    """Return the steps of every resource, why others were not tested, and the counts."""
    failed = sum(result.failed for result in report.results)
    untested = sum(bool(result.untested) for result in report.results)
    tested = len(report.results) - untested
    rows = tuple(row for result in report.results for row in _rows(result))
    columns = Column("step", padded=False), Column("message", ": ", padded=False)
    return Document(
        (Cell(f"Destination tests of {report.environment}"),),
        (Cell(f"Environment {report.environment}"),),
        (Table(columns, rows, headed=False, indent=2),),
        f"{several(tested, 'destination')} tested, {untested} not tested, {failed} failed.",
    )


def _rows(result: Preflight) -> Iterator[Row]:
    name = Cell(str(result.address), Colour.BOLD, code=True), Cell(quoted(result.name))
    group = Group(name)
    for step in result.steps:
        sign, colour = _SIGNS[step.status]
        yield Row((Cell(step.name), Cell(step.message or "")), sign, colour, group)
    for problem in result.problems:
        yield Row((Cell(problem), Cell("")), "✗", Colour.RED, group)
    if result.untested:
        checked = "" if result.problems else "; only checked: files, policy, and that secrets exist"
        yield Row((Cell("not tested"), Cell(f"{result.untested}{checked}")), group=group)
