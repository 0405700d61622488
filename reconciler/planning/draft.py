"""What a plan depends on, and the plan as far as it is decided, which guards and notes look at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.diagnostics import Mark
from reconciler.model.kind import Action
from reconciler.model.live import LiveObject
from reconciler.model.plan import Change, Reason
from reconciler.model.resource import Resource, State
from reconciler.model.settings import Policy
from reconciler.model.values import Address, Path
from reconciler.planning.match import Match, Matching
from reconciler.planning.places import Known
from reconciler.planning.select import PlanContext, Selected


class Synonyms(Struct, frozen=True):
    """The keys and names of one object: as configured, as applied and as live."""

    keys: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)

    def add(self, address: Address | None, *names: str) -> None:
        """Add a key and names."""
        if address is not None:
            self.keys.add(address.key)
        self.names.update(name.strip() for name in names)


class Duplicate(Struct, frozen=True):
    """A resource that would be created, and the object beside which it would run.

    `inside` are the resources of a created container that would double what is in this one.
    """

    match: Match
    live: LiveObject
    is_ignored: bool
    inside: tuple[Address, ...] = ()

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The resource, then those inside."""
        return (self.match.resource.address, *self.inside)


# With a dict, since cached properties need one.
class Draft(Struct, frozen=True, dict=True):
    """What is decided, step by step.

    `changes` are those that do something, in order.
    """

    selected: Selected
    known: Known
    policy: Policy
    changes: Sequence[Change] = ()
    name_cycles: Sequence[Sequence[Address]] = ()
    duplicates: Sequence[Duplicate] = ()

    @property
    def matching(self) -> Matching:
        """Every resource with its object."""
        return self.selected.matching

    @property
    def context(self) -> PlanContext:
        """What the plan depends on besides configuration, live state and policy."""
        return self.selected.context

    @property
    def environment(self) -> str:
        """The environment of the plan, "" if the workspace has no other."""
        return self.selected.desired.environment if self.context.has_environments else ""

    @cached_property
    def after_merge(self) -> Draft | None:
        """The same under the policy that applies, None if that is the one of the files."""
        trusted = self.context.trusted
        if trusted is None or trusted.policy == self.policy:
            return None
        return replace(self, policy=trusted.policy)

    @cached_property
    def resources(self) -> Mapping[Address, Resource]:
        """All resources, also removed ones, whose places are those of the applied files."""
        removed = self.matching.removed.items()
        return {
            **{key: replace(item.resource, mark=None, marks={}) for key, item in removed},
            **{key: item.resource for key, item in self.matching.resources.items()},
        }

    @cached_property
    def names(self) -> Mapping[tuple[str, str], Synonyms]:
        """The keys and names of objects by kind and id. Empty if no rule needs them."""
        names: dict[tuple[str, str], Synonyms] = defaultdict(Synonyms)
        if not self.policy.rules:
            return names
        for match in (*self.matching.resources.values(), *self.matching.removed.values()):
            if (live := match.live) is not None:
                names[live.identity].add(match.resource.address, match.resource.name, live.name)
        entries = self.context.inventory.entries if self.context.inventory else {}
        for address, entry in entries.items():
            names[address.kind, entry.id].add(address, entry.name)
        return names

    @cached_property
    def destructive(self) -> Sequence[Change]:
        """The deletions and replacements."""
        return [change for change in self.changes if change.action.destructive]

    @cached_property
    def removed(self) -> Sequence[Change]:
        """The deletions of what was removed from the files, but none inside of a deleted parent."""
        matches = self.matching.matches
        asked = {
            item.match.resource.address
            for item in self.selected.pruned
            if item.reason is not Reason.REMOVED_FROM_FILES
            or (item.parent is not None and matches[item.parent].resource.state is State.ABSENT)
        }
        removed = {item.match.resource.address for item in self.selected.pruned} - asked
        return [change for change in self.destructive if change.address in removed]

    def mark_of(self, address: Address, path: Path = ()) -> Mark | None:
        """Return the place of a resource, or of the field at a path, None if it has none."""
        resource = self.resources.get(address)
        return resource.near(path) if resource is not None else None

    @cached_property
    def deleted(self) -> AbstractSet[tuple[str, str]]:
        """The objects that the plan deletes, by kind and id."""
        return {
            (change.address.kind, change.live_id or "")
            for change in self.changes
            if change.action is Action.DELETE
        }

    @cached_property
    def refused(self) -> AbstractSet[Address]:
        """The creates that would double an object."""
        return {address for item in self.duplicates for address in item.addresses}

    @cached_property
    def remaining(self) -> Sequence[LiveObject]:
        """The objects that no resource claims, except deleted ones and children of those."""
        matching, kinds = self.matching, self.matching.kinds
        removed = [match.live for match in matching.removed.values() if match.live is not None]
        remaining = [
            item
            for item in (*matching.unmanaged, *removed)
            if not {item.identity, (kinds[item.kind].parent, item.parent_id)} & self.deleted
        ]
        return sorted(remaining, key=lambda item: (item.kind, item.name, item.id))

    @cached_property
    def unmanaged(self) -> Sequence[LiveObject]:
        """What remains, except objects of removed resources that are not selected."""
        left_out = self.matching.removed.keys() - self.selected.addresses
        address_of = self.matching.inventory.by_object.get
        return [item for item in self.remaining if address_of(item.identity) not in left_out]
