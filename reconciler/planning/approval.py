"""Decide what a person has to type to approve a plan."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.change import Severity
from reconciler.model.plan import Plan
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
    nothing; one with several asks for the environment.
    """
    dangerous = [change for change in plan.effective if change.severity is Severity.DANGER]
    if not dangerous:
        return Approval("Apply this plan? [y/N]: ", ("y", "Y", "yes", "Yes", "YES"))
    names = {(change.address, change.name): change for change in dangerous}
    if len(names) > 1:
        environment = plan.source.environment
        return Approval(
            f"Danger for {len(names)} objects: {plan.named_dangers}\n"
            f"To apply this plan, type the environment, {quoted(environment)}: ",
            (printable(environment).strip(),),
        )
    change = dangerous[0]
    return Approval(
        f"Danger for {plan.named_dangers}: to apply this plan, type its name, "
        f"{quoted(change.name)}: ",
        (printable(change.name).strip(), str(change.address)),
    )
