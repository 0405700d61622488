"""What the options of a command say about a plan."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.model.address import Address
from reconciler.model.public import Public, derived


class Selection(Public, frozen=True):
    """The options that narrow the plan."""

    targets: tuple[str, ...] = ()
    """Globs of --target."""
    excludes: tuple[str, ...] = ()
    """Globs of --exclude."""
    kinds: tuple[str, ...] = ()
    """Globs of --kind."""
    parents: tuple[str, ...] = ()
    """Globs of --project."""

    @derived
    def partial(self) -> bool:
        """Whether something may be excluded."""
        return bool(self.targets or self.excludes or self.kinds or self.parents)


class PlanOptions(Struct, frozen=True):
    """The options of a plan.

    `rotate` names the resources whose secrets are sent again; ("*",) means all. `only` limits the
    plan to some addresses without making it a partial plan for the reader, as undo needs it.
    `planned_before` are the objects of an earlier plan of the same selection, which are selected
    again although their names may have changed. Removed resources have the objects of that plan.
    """

    rotate: tuple[str, ...] = ()
    allow_replace: bool = False
    selection: Selection = field(default_factory=Selection)
    only: frozenset[Address] | None = None
    is_undo: bool = False
    planned_before: Mapping[Address, str | None] | None = None
