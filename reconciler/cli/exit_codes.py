"""The exit code of each result. Exceptions have their own (`ReconcilerError.exit_code`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from reconciler.diagnostics import Diagnostic, Level
from reconciler.errors import ExitCode

if TYPE_CHECKING:
    # A command imports only what it needs.
    from reconciler.commands.applying import Applied
    from reconciler.model.audit_log import Audit
    from reconciler.model.files import Imported
    from reconciler.model.plan import Plan
    from reconciler.model.policy import PolicyReport


_WORST_FIRST = (
    ExitCode.INTERRUPTED,
    ExitCode.ERROR,
    ExitCode.USAGE,
    ExitCode.PARTLY_APPLIED,
    ExitCode.STALE,
    ExitCode.REFUSED,
    ExitCode.CHANGES,
    ExitCode.FINE,
)


def worst_of(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the most important of several exit codes."""
    return min(codes, key=_WORST_FIRST.index, default=ExitCode.FINE)


def exit_code_of_plan(plan: Plan, *, detailed: bool) -> ExitCode:
    """Return REFUSED, CHANGES (only if `detailed`) or FINE."""
    if any(not refusal.after_merge for refusal in plan.refusals):
        return ExitCode.REFUSED
    return ExitCode.CHANGES if detailed and not plan.empty else ExitCode.FINE


def exit_code_of_apply(applied: Applied) -> ExitCode:
    """Return the code of a run, of the plan that verified it, and of its mark."""
    code = applied.ended.exit_code
    incomplete = applied.left_out or applied.mark_problem is not None
    return ExitCode.PARTLY_APPLIED if incomplete and code is ExitCode.FINE else code


def exit_code_of_diagnostics(diagnostics: Iterable[Diagnostic]) -> ExitCode:
    """Return ERROR if any of them is an error."""
    failed = any(diagnostic.level is Level.ERROR for diagnostic in diagnostics)
    return ExitCode.ERROR if failed else ExitCode.FINE


def exit_code_of_audit(audit: Audit) -> ExitCode:
    """Return PARTLY_APPLIED if the run that is shown has unknown outcomes or twins."""
    shown = audit.shown
    incomplete = shown.unknown or shown.twins or shown.unknown_requests
    return ExitCode.PARTLY_APPLIED if incomplete else ExitCode.FINE


def exit_code_of_policy(report: PolicyReport) -> ExitCode:
    """Return REFUSED if a plan breaks a rule that denies changes."""
    failed = any(item.level is Level.ERROR for item in report.diagnostics)
    return ExitCode.REFUSED if failed else ExitCode.FINE


def exit_code_of_import(imported: Imported) -> ExitCode:
    """Return ERROR if an object can't be imported."""
    return ExitCode.ERROR if imported.refused else ExitCode.FINE
