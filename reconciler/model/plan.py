"""A plan: an immutable, ordered list of changes with their source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from reconciler.diagnostics import Mark
from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.change import Change, Severity
from reconciler.model.kind import Dialect
from reconciler.model.live import LiveObject
from reconciler.model.plan_options import Selection
from reconciler.model.text import listed, printable

_MOST_DANGERS = 8


class Unmanaged(Struct, frozen=True):
    """A live object that no resource claims."""

    address: Address
    name: str
    parent_id: str | None = None
    parent_name: str | None = None

    @classmethod
    def of(cls, live: LiveObject, parent_name: str | None) -> Unmanaged:
        """Return an object with the name of its parent."""
        address = Address.of_unmanaged(live.kind, live.id)
        return cls(address, live.name, live.parent_id, parent_name)


class Note(Struct, frozen=True):
    """A note on the plan as a whole, or about a resource. `code` is a stable kebab-case word."""

    code: str
    message: str
    about: Address | None = None


class Refusal(Struct, frozen=True):
    """A policy violation: the rule, what violates it, the place of the rule, and the fix.

    `after_merge`: the policy of the trusted branch is violated, and the loaded files lift it.
    `objects` are the live objects that are the reason.
    """

    rule: str
    message: str
    addresses: tuple[Address, ...] = ()
    at: Mark | None = None
    allow: str | None = None
    after_merge: bool = False
    objects: tuple[Unmanaged, ...] = ()


class PlanSource(Struct, frozen=True):
    """What a plan was computed from.

    `base` is the git commit of the base, if any, `base_ref` the short name of the reference that
    leads to it, `base_commits` the number of commits since then, `base_time` its time (ISO 8601),
    `head` the commit that was planned and `head_ref` its branch, which is untrusted text.
    `base_remarks` are what a reader should know about the choice of the base. `uncommitted`: the
    files that were planned differ from `head`.
    """

    environment: str
    organization: str
    base_url: str
    tool_version: str
    dialect: Dialect | None = None
    base: str | None = None
    base_ref: str | None = None
    base_commits: int = 0
    base_time: str | None = None
    head: str | None = None
    head_ref: str | None = None
    undoes: str | None = None
    """The id of the plan that this one undoes."""
    base_remarks: tuple[str, ...] = ()
    uncommitted: bool = False
    organization_name: str | None = None
    """The name of the organization, for readers; None if the key may not read it."""


# With a dict, since cached properties need one.
class Plan(Struct, frozen=True, dict=True):
    """The plan: changes in the order in which they can be made, then no-ops by address."""

    source: PlanSource
    changes: tuple[Change, ...]
    unmanaged: tuple[Unmanaged, ...] = ()
    ignored: tuple[Unmanaged, ...] = ()
    notes: tuple[Note, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    selection: Selection = field(default_factory=Selection)
    created_at: str = ""

    @cached_property
    def effective(self) -> tuple[Change, ...]:
        """The changes that do something, in order."""
        return tuple(change for change in self.changes if change.action is not Action.NO_OP)

    @cached_property
    def deleted_inside(self) -> Mapping[str, tuple[Change, ...]]:
        """The deletions that another deletion makes, by the id of that: they send nothing."""
        deletions = {item.id: item for item in self.changes if item.action is Action.DELETE}
        return {
            change.id: tuple(
                deletions[needed] for needed in change.depends_on if needed in deletions
            )
            for change in deletions.values()
        }

    @property
    def sending(self) -> tuple[Change, ...]:
        """The changes that send requests of their own, in order."""
        inside = {change.id for made in self.deleted_inside.values() for change in made}
        return tuple(change for change in self.effective if change.id not in inside)

    @property
    def objects(self) -> Mapping[Address, str | None]:
        """The live ids of all changes by address, no-ops included."""
        return {change.address: change.live_id for change in self.changes}

    @property
    def empty(self) -> bool:
        """Whether applying it sends nothing."""
        return not self.effective

    @cached_property
    def dangers(self) -> Mapping[str, Sequence[Address]]:
        """The objects with dangers, by the rule."""
        dangers: dict[str, list[Address]] = {}
        for change in self.effective:
            for consequence in change.consequences:
                if consequence.severity is Severity.DANGER:
                    dangers.setdefault(consequence.rule, []).append(change.address)
        return dangers

    @property
    def named_dangers(self) -> str:
        """The objects with dangers, the first of many: `batch_export.a, batch_export.b (rule)`."""
        most = max(1, _MOST_DANGERS // max(1, len(self.dangers)))
        parts = (f"{listed(names, most)} ({rule})" for rule, names in self.dangers.items())
        return printable("; ".join(parts))

    @property
    def counts(self) -> Mapping[Action, int]:
        """The number of changes by action, zeros included."""
        counts = Counter(change.action for change in self.changes)
        return {action: counts[action] for action in Action}
