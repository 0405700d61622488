"""Destination tests as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.preflight import Preflight, PreflightReport, StepResult, StepStatus
from reconciler.model.wording import printable, quoted, several
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.style import Colour, Style

_SIGNS = {
    StepStatus.PASSED: ("✓", Colour.GREEN),
    StepStatus.SKIPPED: ("-", Colour.DIM),
    StepStatus.FAILED: ("✗", Colour.RED),
}


def preflight_as_text(report: PreflightReport, options: RenderOptions = DEFAULTS) -> str:
    """Return the steps of every resource, why others were not tested, and the counts."""
    lines = [f"Environment {printable(report.environment)}", ""]
    for result in report.results:
        lines += [*_result(result, options.style), ""]
    failed = sum(result.failed for result in report.results)
    untested = sum(bool(result.untested) for result in report.results)
    tested = len(report.results) - untested
    summary = f"{several(tested, 'destination')} tested, {untested} not tested, {failed} failed."
    return "\n".join([*lines, summary]) + "\n"


def _result(result: Preflight, style: Style) -> Iterator[str]:
    yield f"{style.paint(Colour.BOLD, str(result.address))} {quoted(result.name)}"
    for step in result.steps:
        yield from _step(step, style)
    for problem in result.problems:
        yield f"  {style.paint(Colour.RED, '✗')} {printable(problem)}"
    if result.untested:
        checked = "" if result.problems else "; only checked: files, policy, and that secrets exist"
        yield f"  not tested: {printable(result.untested)}{checked}"


def _step(step: StepResult, style: Style) -> Iterator[str]:
    sign, colour = _SIGNS[step.status]
    message = f": {printable(step.message)}" if step.message else ""
    yield f"  {style.paint(colour, sign)} {printable(step.name)}{message}"
