"""The policy violations of a plan as diagnostics, for formats that have no plans."""

from __future__ import annotations

from reconciler.diagnostics import Diagnostic, Level
from reconciler.model.plan import Plan, Refusal
from reconciler.render.plan.new_places import new_lines
from reconciler.render.plan.words import first_of

_MOST_ADDRESSES = 20


def violations_of(plan: Plan) -> tuple[Diagnostic, ...]:
    """Return an error for every violation, and a warning for one that takes effect later."""
    return tuple(map(_diagnostic, plan.refusals))


def new_places_of(plan: Plan) -> tuple[Diagnostic, ...]:
    """Return a warning for each new place and query."""
    return tuple(
        Diagnostic(f"new-{line.sort}", Level.WARNING, f"{line.text}: {line.users}", line.at)
        for line in new_lines(plan)
    )


def unnamed_in(violation: Refusal) -> str:
    """Return the first addresses of a violation, "" if its message has them all."""
    addresses = [str(address) for address in violation.addresses]
    if all(address in violation.message for address in addresses):
        return ""
    return first_of(addresses, _MOST_ADDRESSES)


def _diagnostic(violation: Refusal) -> Diagnostic:
    message = violation.message
    if violation.after_merge:
        message = f"takes effect after the merge: {message}"
    if names := unnamed_in(violation):
        message += f" ({names})"
    level = Level.WARNING if violation.after_merge else Level.ERROR
    return Diagnostic(violation.rule, level, message, violation.at, violation.allow)
