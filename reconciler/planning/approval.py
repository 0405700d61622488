"""Decide what a person has to type to approve a plan."""

from __future__ import annotations

from msgspec import Struct

from reconciler.kinds import all_kinds
from reconciler.model.kind import Action, containers
from reconciler.model.plan import Plan, Severity
from reconciler.model.text import printable, quoted


class Approval(Struct, frozen=True):
    """A question, and the answers that approve."""

    question: str
    answers: tuple[str, ...]

    def is_given_by(self, line: str) -> bool:
        """Return whether a line that was typed approves."""
        return line.strip() in self.answers


def approval_of(plan: Plan) -> Approval:
    """Return the question for a plan.

    A plan with a dangerous change asks for the name of its object, so that a habitual `y` deletes
    nothing; one with several asks for the environment, and for a project if it deletes one.
    """
    dangerous = [change for change in plan.sending if change.severity is Severity.DANGER]
    named = list({(change.address, change.name): None for change in dangerous})
    parents = containers(all_kinds())
    lost = [
        item for item in dangerous if item.action is Action.DELETE and item.address.kind in parents
    ]
    if len(lost) == 1 < len(named):
        (first,) = lost
        question = f"Danger for {len(named)} objects: {plan.named_dangers}\nTo apply this plan,"
        question += f" type the name of the {first.address.kind} that it deletes"
        return typed(f"{question}, {quoted(first.name)}: ", first.name, str(first.address))
    if len(named) > 1:
        environment = plan.source.environment
        question = f"Danger for {len(named)} objects: {plan.named_dangers}\nTo apply this plan,"
        return typed(f"{question} type the environment, {quoted(environment)}: ", environment)
    for address, name in named:
        question = f"Danger for {plan.named_dangers}: to apply this plan, type its name"
        return typed(f"{question}, {quoted(name)}: ", name, str(address))
    return confirmed("Apply this plan?")


def typed(question: str, name: str, *others: str) -> Approval:
    """Return a question for a name."""
    return Approval(question, (printable(name).strip(), *others))


def confirmed(question: str) -> Approval:
    """Return a question for a yes."""
    return Approval(f"{question} [y/N]: ", ("y", "Y", "yes", "Yes", "YES"))
