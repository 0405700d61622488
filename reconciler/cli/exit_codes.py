"""The exit code of each result. Exceptions have their own (`ReconcilerError.exit_code`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from reconciler.errors import Diagnostic, ExitCode, Level

if TYPE_CHECKING:
    # A command imports only what it needs.
    from reconciler.commands.applying import Applied
    from reconciler.model.file_change import Formatted
    from reconciler.model.imported import Imported
    from reconciler.model.plan import Plan


def exit_code_of_plan(plan: Plan, *, detailed: bool) -> ExitCode:
    """Return REFUSED, CHANGES (only if `detailed`) or FINE."""
    if plan.refusals:
        return ExitCode.REFUSED
    return ExitCode.CHANGES if detailed and not plan.empty else ExitCode.FINE


def exit_code_of_apply(applied: Applied) -> ExitCode:
    """Return the code of a run and of the plan that verified it."""
    report = applied.report
    if report.failed or report.skipped:
        return ExitCode.INTERRUPTED if report.interrupted else ExitCode.PARTLY_APPLIED
    verified = applied.left is None or applied.left.empty
    return ExitCode.FINE if verified else ExitCode.ERROR


def exit_code_of_diagnostics(diagnostics: Iterable[Diagnostic]) -> ExitCode:
    """Return ERROR if any of them is an error."""
    failed = any(diagnostic.level is Level.ERROR for diagnostic in diagnostics)
    return ExitCode.ERROR if failed else ExitCode.FINE


def exit_code_of_format(formatted: Formatted, *, check: bool) -> ExitCode:
    """Return ERROR if a check finds files that are not formatted."""
    return ExitCode.ERROR if check and formatted.changed else ExitCode.FINE


def exit_code_of_import(imported: Imported) -> ExitCode:
    """Return ERROR if an object can't be imported."""
    return ExitCode.ERROR if imported.refused else ExitCode.FINE
