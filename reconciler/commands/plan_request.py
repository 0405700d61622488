"""What the options of a command say about a plan."""

from __future__ import annotations

from msgspec import Struct, field

from reconciler.commands.options import WorkspaceOptions
from reconciler.model.plan_options import PlanOptions


class PlanRequest(Struct, frozen=True):
    """What to plan.

    `base` is a git reference, None for the one of the CI job; `no_base` does not use git.
    """

    workspace: WorkspaceOptions
    options: PlanOptions = field(default_factory=PlanOptions)
    base: str | None = None
    no_base: bool = False

    @property
    def has_plan_options(self) -> bool:
        """Whether any option changes what is planned."""
        return self != PlanRequest(self.workspace)
