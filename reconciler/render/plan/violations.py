"""The policy violations of a plan as diagnostics, for formats that have no plans."""

from __future__ import annotations

from reconciler.errors import Diagnostic, Level
from reconciler.model.plan import Plan, Refusal
from reconciler.render.plan.words import first_of

_MOST_ADDRESSES = 20


def violations_of(plan: Plan) -> tuple[Diagnostic, ...]:
    """Return an error for every violation, and a warning for one that takes effect later."""
    return tuple(map(_diagnostic, plan.refusals))


def _diagnostic(violation: Refusal) -> Diagnostic:
    message = violation.message
    if violation.after_merge:
        message = f"takes effect after the merge: {message}"
    if any(str(address) not in message for address in violation.addresses):
        message += f" ({first_of(map(str, violation.addresses), _MOST_ADDRESSES)})"
    level = Level.WARNING if violation.after_merge else Level.ERROR
    return Diagnostic(violation.rule, level, message, violation.at, violation.allow)
