"""What the guards of a plan look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from reconciler.diagnostics import Mark
from reconciler.model.address import Address
from reconciler.model.change import Change
from reconciler.model.kind import Kind
from reconciler.model.live import Live
from reconciler.model.policy import Policy
from reconciler.model.resource import Resource
from reconciler.planning.base import Base
from reconciler.planning.matcher import Matching
from reconciler.planning.pruning import PrunedObject


class GuardContext(Struct, frozen=True):
    """What a guard may look at: the changes that do something, in order, and their surroundings.

    `resources` are the declared ones, and those of the git base that were removed. `managed` is
    the number of objects that percentages refer to. `pruned` are the objects that the policy
    prunes, selected or not.
    """

    changes: Sequence[Change]
    policy: Policy
    kinds: Sequence[Kind]
    resources: Mapping[Address, Resource]
    managed: int
    allow_replace: bool
    matching: Matching
    name_cycles: Sequence[Sequence[Address]]
    pruned: Sequence[PrunedObject]
    live: Live
    now: datetime
    base: Base | None

    @property
    def destructive(self) -> list[Change]:
        """The deletions and replacements."""
        return [change for change in self.changes if change.action.destructive]

    def mark_of(self, address: Address) -> Mark | None:
        """Return the place of a resource, None if it has none."""
        resource = self.resources.get(address)
        return resource.mark if resource is not None else None
