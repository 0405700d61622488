"""The checks of `doctor`."""

from __future__ import annotations

from collections import Counter

from reconciler.model.health import Check, Health, HealthReport
from reconciler.model.text import several
from reconciler.render.document import Cell, Column, Document, Row, Table
from reconciler.render.options import RenderOptions
from reconciler.render.style import Colour

_SIGNS = {
    Health.FINE: ("✓", Colour.GREEN),
    Health.WARNING: ("▲", Colour.YELLOW),
    Health.FAILED: ("✗", Colour.RED),
}


def health_document(report: HealthReport, _: RenderOptions) -> Document:
    """Return a row for each check, with its fix below it, and the counts."""
    counts = Counter(check.health for check in report.checks)
    failed, warned = counts[Health.FAILED], counts[Health.WARNING]
    columns = Column("check"), Column("result", padded=False)
    checks = Table(columns, tuple(map(_row, report.checks)), headed=False, wraps=True)
    summary = f"{several(failed, 'check')} failed, {several(warned, 'warning')}."
    return Document((Cell("Checks"),), (), (checks,), summary)


def _row(check: Check) -> Row:
    sign, colour = _SIGNS[check.health]
    fix = (f"fix: {' '.join(check.fix.split())}",) if check.fix else ()
    return Row((Cell(check.name), Cell(check.result)), sign, colour, notes=fix)
