"""The git base: what the configuration declared at each commit from the base to HEAD."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct, field

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.plan import Note
from reconciler.model.resource import Desired, Resource, State


class Base(Struct, frozen=True):
    """The configuration at a git commit and at the commits from there to HEAD.

    desired, commit, ref
        The configuration at the base commit, the commit, and the short name of the reference that
        leads to it, None if only the commit is known.
    later
        The configurations between the base and HEAD, oldest first.
    commits
        The number of first-parent commits since the base that touch the workspace.
    time
        When the base was committed, an aware datetime.
    kept, notes
        Removed resources that `prune: git` must not delete, each with the reason, and notes on the
        base for the reader of the plan.
    merged
        Whether the default branch contains the commit. One that it lacks may be a commit of the
        change that is planned, so it does not decide what drifted.
    remarks
        What a reader should know about the choice of the base.
    uncommitted
        Whether the loaded files differ from HEAD.
    """

    desired: Desired
    commit: str
    ref: str | None = None
    later: tuple[Desired, ...] = ()
    commits: int = 0
    time: datetime | None = None
    kept: Mapping[Address, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    merged: bool = True
    remarks: tuple[str, ...] = ()
    uncommitted: bool = False

    @property
    def present(self) -> Mapping[Address, Resource]:
        """The resources that the base declares, without those of `state: absent`."""
        every = self.desired.resources.items()
        return {address: item for address, item in every if item.state is State.PRESENT}


class Version(Struct, frozen=True):
    """A resource at a commit, with everything that was declared then.

    `number` counts the configurations of the range: 0 is the base.
    """

    resource: Resource
    desired: Desired
    number: int

    def parent(self, kind: Kind) -> Version | None:
        """Return its declared parent at the same commit, None without one."""
        ref = self.resource.parent
        if ref is None or ref.key is None or kind.parent is None:
            return None
        parent = self.desired.resources.get(Address(kind.parent, ref.key))
        return Version(parent, self.desired, self.number) if parent is not None else None


class Declared(Struct, frozen=True):
    """How one live object was declared since the git base, under any key.

    at_base
        As the base declares it, None if it does not.
    versions
        At each commit, oldest first, without repeats.
    adopted
        Whether it is live and certainly not declared at the base.
    """

    base: Base | None = None
    at_base: Resource | None = None
    versions: Sequence[Resource] = ()
    adopted: bool = False


class History(Struct, frozen=True):
    """The versions of every resource in the range of the base, oldest first, without repeats.

    `in_order` are those of all resources. `known` are the ids of objects that an earlier plan
    identified: what that changed may have made it unclear which one a removed resource has.
    """

    versions: Mapping[Address, Sequence[Version]]
    in_order: Sequence[Version] = ()
    base: Base | None = None
    known: Mapping[Address, str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, base: Base | None, kinds: Iterable[Kind]) -> History:
        """Return the history of a base, empty without one."""
        by_name = {kind.name: kind for kind in kinds}
        versions: dict[Address, list[Version]] = {}
        in_order: list[Version] = []
        range_ = (base.desired, *base.later) if base is not None else ()
        for number, desired in enumerate(range_):
            for address, resource in desired.resources.items():
                former, kind = versions.setdefault(address, []), by_name.get(address.kind)
                version = Version(resource, desired, number)
                if kind is not None and not (former and _is_repeat(kind, former[-1], version)):
                    former.append(version)
                    in_order.append(version)
        return cls(versions, in_order, base)

    def resources(self, address: Address) -> tuple[Resource, ...]:
        """Return a resource as it was declared, oldest first. Empty if it never was."""
        return tuple(version.resource for version in self.versions.get(address, ()))

    def removed(self, desired: Desired) -> list[tuple[Resource, Sequence[Version]]]:
        """Return the resources that are gone from the configuration, with their versions.

        The newest version counts, but a protected one if there is any. Versions with
        `state: absent` are left out: the object was to be deleted at that commit already. The
        protected ones are first, so that an object of two keys is protected if either is.
        """
        removed: list[tuple[Resource, Sequence[Version]]] = []
        for address in sorted(self.versions.keys() - desired.resources.keys()):
            present = [
                version
                for version in self.versions[address]
                if version.resource.state is State.PRESENT
            ]
            if present:
                resources = [version.resource for version in reversed(present)]
                protected = (item for item in resources if item.lifecycle.protect)
                removed.append((next(protected, resources[0]), present))
        return sorted(removed, key=lambda item: not item[0].lifecycle.protect)


def _is_repeat(kind: Kind, former: Version, later: Version) -> bool:
    """Return whether two versions declare the same resource in the same parent."""
    if former.resource is not later.resource and former.resource != later.resource:
        return False
    parents = former.parent(kind), later.parent(kind)
    first, second = (parent.resource if parent is not None else None for parent in parents)
    return first is second or first == second
