"""The checks of `doctor` as text and JSON."""

from __future__ import annotations

from collections import Counter

from reconciler.model.health import Health, HealthReport
from reconciler.model.wording import printable, several
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.style import Colour

_SIGNS = {
    Health.FINE: ("✓", Colour.GREEN),
    Health.WARNING: ("▲", Colour.YELLOW),
    Health.FAILED: ("✗", Colour.RED),
}


def health_as_text(report: HealthReport, options: RenderOptions = DEFAULTS) -> str:
    """Return a line for each check, with its fix below it, and the counts."""
    style = options.style
    width = max((len(check.name) for check in report.checks), default=0)
    indent = " " * (width + 4)
    lines: list[str] = []
    for check in report.checks:
        sign, colour = _SIGNS[check.health]
        # A message of several lines is one paragraph here.
        result = printable(" ".join(check.result.split()))
        prefix = f"{sign} {check.name:{width}}  "
        first, *more = style.wrapped(result, prefix, indent) or [prefix.rstrip()]
        lines += [style.paint(colour, first[:1]) + first[1:], *more]
        if check.fix:
            fix = printable(" ".join(check.fix.split()))
            lines += style.wrapped(f"fix: {fix}", indent, f"{indent}     ")
    counts = Counter(check.health for check in report.checks)
    failed, warned = counts[Health.FAILED], counts[Health.WARNING]
    summary = f"{several(failed, 'check')} failed, {several(warned, 'warning')}."
    return "\n".join([*lines, "", summary]) + "\n"
