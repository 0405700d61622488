"""The git base: what the configuration declared from there to HEAD, and the live objects of that.

A former object is found by pin, name and former names. A parent is compared by the live object
that it resolves to, never by its key, since a key may name another object now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import TypeAlias, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.plan import Note
from reconciler.model.resource import Desired, ParentRef, Resource, State

_Key = TypeVar("_Key")
_Item = TypeVar("_Item")
_Objects: TypeAlias = Sequence[LiveObject]
Handle: TypeAlias = tuple[str, str]
"""What leads to a parent, and its text: ("key", "web"), ("name", "Web") or ("id", "1")."""
Links: TypeAlias = Mapping[Handle, AbstractSet[Handle]]
"""The handles that one key had together, and what each of them leads to."""


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


class Version(Struct, frozen=True, gc=False):
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
        return cls(_in_tuples(versions), in_order, base)

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


def _in_tuples(index: Mapping[_Key, list[_Item]]) -> Mapping[_Key, Sequence[_Item]]:
    """Return an index that takes half the memory: most lists have one item, and room for more."""
    return {key: tuple(items) for key, items in index.items()}


def _is_repeat(kind: Kind, former: Version, later: Version) -> bool:
    """Return whether two versions declare the same resource in the same parent."""
    if former.resource is not later.resource and former.resource != later.resource:
        return False
    parents = former.parent(kind), later.parent(kind)
    first, second = (parent.resource if parent is not None else None for parent in parents)
    return first is second or first == second


class DeclaredNames(Struct, frozen=True):
    """The addresses of the resources of one kind by parent and name, without those with an `id`."""

    addresses: Mapping[tuple[ParentRef | None, str], Address]

    @classmethod
    def of(cls, resources: Iterable[Resource]) -> DeclaredNames:
        """Return the names of resources of one kind."""
        unpinned = (item for item in resources if item.pinned_id is None)
        return cls({(item.parent, item.name.strip()): item.address for item in unpinned})

    def former(self, resource: Resource) -> list[str]:
        """Return the former names of a resource that no other one has.

        The object of such a name is the one of the other resource.
        """
        own = resource.address
        names = map(str.strip, resource.lifecycle.renamed_from)
        return [name for name in names if self.addresses.get((resource.parent, name), own) == own]


class Names(Struct, frozen=True, dict=True):
    """The live objects of one kind by id and by name. `plain` are names to use for some ids.

    Most plans look in known parents only, and each index takes memory, so both are made when used.
    """

    by_id: Mapping[str, LiveObject]
    plain: Mapping[str, str]

    def named(self, parent_id: str | None, name: str) -> Sequence[LiveObject]:
        """Return the objects of a name below a parent, or anywhere without one.

        An export of the organization may be in any project.
        """
        if parent_id is None:
            return self._anywhere.get(name, ())
        return self._below.get((parent_id, name), ())

    @cached_property
    def _anywhere(self) -> Mapping[str, Sequence[LiveObject]]:
        return self._indexed(lambda _, name: name)

    @cached_property
    def _below(self) -> Mapping[tuple[str | None, str], Sequence[LiveObject]]:
        return self._indexed(lambda item, name: (item.parent_id, name))

    def _indexed(self, key_of: Callable[[LiveObject, str], _Key]) -> Mapping[_Key, _Objects]:
        index: dict[_Key, list[LiveObject]] = {}
        for item in self.by_id.values():
            key = key_of(item, self.plain.get(item.id, item.name.strip()))
            index.setdefault(key, []).append(item)
        return _in_tuples(index)


class RemovedResource(Struct, frozen=True):
    """A removed resource and the objects that it may be, `own` those of its own places by id.

    `is_placed`: they are where it was, or may have been. Otherwise they only have its name.
    """

    resource: Resource
    kind: Kind
    objects: tuple[LiveObject, ...]
    own: frozenset[str]
    is_certain: bool
    is_placed: bool = True


class FormerObjects(Struct):
    """The objects of former versions. `current` returns the object of a resource of today."""

    history: History
    kinds: Mapping[str, Kind]
    names: Mapping[str, Names]
    current: Callable[[Address], LiveObject | None]
    known_as: dict[tuple[str, str], list[LiveObject]] = field(default_factory=dict)
    """The parents of today by kind and the names that they had."""
    _groups: dict[tuple[str, str], tuple[LiveObject, ...]] = field(default_factory=dict)
    """The parents that an object of a parent kind and key may be, by kind and key."""
    _links_of: dict[str, Links] = field(default_factory=dict)
    _declared: dict[tuple[str, str, int], tuple[str, ...]] = field(default_factory=dict)
    """The ids of declared parents by kind, key and commit. Children come after all parents."""
    _versions: Mapping[Address | tuple[str, str], Sequence[Version]] = field(default_factory=dict)
    """The versions of live objects by kind and id; of one that is not certain, by address."""

    def remember(
        self, resource: Resource, live: LiveObject | None, declared: DeclaredNames
    ) -> None:
        """Remember the names that a parent of today had.

        `declared` are those that the live parents have today.
        """
        if live is None:
            return
        names = {version.name.strip() for version in self.history.resources(resource.address)}
        for name in names.union(declared.former(resource)):
            self.known_as.setdefault((resource.address.kind, name), []).append(live)

    def is_as_today(self, kind: Kind, resource: Resource, parent_id: str | None) -> bool:
        """Return whether no version of a resource differs from today, nor the name of its parent.

        Another live object may have the name that its parent had in between.
        """
        for version in self.history.versions.get(resource.address, ()):
            is_same = version.resource is resource or version.resource == resource
            if not is_same or self.scopes(kind, version) != (parent_id,):
                return False
        key = resource.parent.key if resource.parent is not None else None
        parents = self.history.resources(Address(kind.parent or "", key or ""))
        return len({parent.name.strip() for parent in parents}) <= 1

    def of(self, kind: Kind, address: Address) -> list[LiveObject]:
        """Return the objects that any version of a resource was, newest version first."""
        objects: dict[str, LiveObject] = {}
        for version in reversed(self.history.versions.get(address, ())):
            objects |= {item.id: item for item in self.of_version(kind, version)}
        return list(objects.values())

    def declared(self, address: Address, live: LiveObject | None) -> Declared:
        """Return how the live object of a resource was declared since the base, under any key.

        Versions of its own key whose object is gone or not certain may be this object.
        """
        if not self.history.versions:
            return Declared(self.history.base, adopted=live is not None)
        if not self._versions:
            by_object: dict[Address | tuple[str, str], list[Version]] = {}
            for version in self.history.in_order:
                own = version.resource.address
                objects = self.of_version(self.kinds[own.kind], version)
                place = (own.kind, objects[0].id) if len(objects) == 1 else own
                by_object.setdefault(place, []).append(version)
            self._versions = _in_tuples(by_object)
        certain = self._versions.get(live.identity, ()) if live is not None else ()
        others = self._versions.get(address)
        versions = sorted([*certain, *others], key=attrgetter("number")) if others else certain
        at_base = [version.resource for version in certain if version.number == 0]
        return Declared(
            self.history.base,
            min(at_base, key=lambda was: self._rank(was, live))
            if len(at_base) > 1
            else next(iter(at_base), None),
            [version.resource for version in versions],
            adopted=live is not None and not (versions and versions[0].number == 0),
        )

    def _rank(self, resource: Resource, live: LiveObject | None) -> tuple[bool, bool]:
        """Return what counts less the larger it is: a match by id, by name or by a former name."""
        names = self.names[resource.address.kind]
        is_named = live in names.named(None, resource.name.strip())
        return resource.pinned_id is None, not is_named

    def elsewhere(self, kind: Kind, address: Address) -> list[LiveObject]:
        """Return the objects of a resource's names in other parents that it may have been in.

        If commits were applied in part, another key may have taken its parent over, by a name that
        the parent had in between, and a newer parent may have the first name. So look in all
        parents that are connected with its parents by names that one key had.
        """
        objects: dict[str, LiveObject] = {}
        names = self.names[kind.name]
        for version in self.history.versions.get(address, ()):
            resource = version.resource
            if kind.parent is None or resource.parent is None or resource.pinned_id is not None:
                continue
            group = self._group(kind.parent, resource.parent)
            for name in (resource.name, *resource.lifecycle.renamed_from):
                for parent in group:
                    same = names.named(parent.id, name.strip())
                    objects |= {item.id: item for item in same}
        return list(objects.values())

    def removed(self, resource: Resource, versions: Sequence[Version]) -> RemovedResource:
        """Return the objects that a removed resource may be."""
        kind = self.kinds[resource.address.kind]
        scopes = [self.scopes(kind, version) for version in versions]
        is_certain = all(len(ids) <= 1 for ids in scopes)
        of_versions = [self.of_version(kind, version) for version in versions]
        is_placed = any(scopes) or any(of_versions)
        if not is_placed:
            # No parent that it had is live under its name of then, so it may be in any.
            is_certain, names = False, self.names[kind.name]
            of_versions = [list(names.named(None, item.resource.name)) for item in versions]
        own = {item.id: item for items in of_versions for item in items}
        objects = own | {item.id: item for item in self.elsewhere(kind, resource.address)}
        return RemovedResource(
            resource, kind, tuple(objects.values()), frozenset(own), is_certain, is_placed
        )

    def of_version(self, kind: Kind, version: Version) -> list[LiveObject]:
        """Return the objects that one version was: several if its name or place is ambiguous."""
        resource, names = version.resource, self.names[kind.name]
        if resource.pinned_id is not None:
            return [names.by_id[resource.pinned_id]] if resource.pinned_id in names.by_id else []
        scopes = self.scopes(kind, version)
        for of_then in ((resource.name,), resource.lifecycle.renamed_from):
            objects = {
                item.id: item
                for name in of_then
                for at in scopes
                for item in names.named(at, name.strip())
            }
            if objects:
                return list(objects.values())
        return []

    def scopes(self, kind: Kind, version: Version) -> tuple[str | None, ...]:
        """Return the ids of the parents that a version may have had."""
        ref = version.resource.parent
        if ref is None or kind.parent is None:
            return (None,)
        if ref.id is not None:
            return (ref.id,)
        if ref.name is not None:
            objects = self.names[kind.parent].named(None, ref.name.strip())
            return tuple(item.id for item in objects)
        place = (kind.parent, ref.key or "", id(version.desired))
        if place not in self._declared:
            parents = self._parents(kind.parent, ref, version.parent(kind))
            self._declared[place] = tuple(item.id for item in parents)
        return self._declared[place]

    def _parents(self, kind: str, ref: ParentRef, parent: Version | None) -> list[LiveObject]:
        """Return the objects of a declared parent: of the base, and of the same key today."""
        address = Address(kind, ref.key or "")
        own = self.of_version(self.kinds[kind], parent) if parent is not None else []
        others: list[LiveObject] = []
        if not own:
            others = self.of(self.kinds[kind], address)
            if parent is not None:
                others += self.known_as.get((kind, parent.resource.name), [])
        today = self.current(address)
        if today is not None:
            others.append(today)
        parents = {item.id: item for item in own}
        for item in others:
            if item.id not in parents and not (parent and self._was_another(item, parent)):
                parents[item.id] = item
        return list(parents.values())

    def _was_another(self, live: LiveObject, version: Version) -> bool:
        """Return whether an object was that of another resource at the commit of a version."""
        address = version.resource.address
        return any(
            live in self.of_version(self.kinds[live.kind], replace(version, resource=resource))
            for resource in version.desired.resources.values()
            if resource.address.kind == live.kind and resource.address != address
        )

    def _group(self, kind: str, ref: ParentRef) -> tuple[LiveObject, ...]:
        """Return the live objects that a declared parent may be, by all names of its group."""
        if ref.key is None:
            return ()
        if (kind, ref.key) not in self._groups:
            handles = sorted(connected({("key", ref.key)}, self._links(kind)))
            objects: dict[str, LiveObject] = {}
            for what, text in handles:
                if what == "name":
                    named = self.names[kind].named(None, text)
                    objects |= {it.id: it for it in (*named, *self.known_as.get((kind, text), ()))}
                elif (today := self.current(Address(kind, text))) is not None:
                    objects[today.id] = today
            group = tuple(objects.values())
            self._groups |= {(kind, text): group for what, text in handles if what == "key"}
        return self._groups[kind, ref.key]

    def _links(self, kind: str) -> Links:
        """Return the names that each key of a kind had, and the keys that each name had."""
        if kind not in self._links_of:
            links: defaultdict[Handle, set[Handle]] = defaultdict(set)
            declared: dict[int, DeclaredNames] = {}
            versions = [it for it in self.history.in_order if it.resource.address.kind == kind]
            for version in versions:
                resource, number = version.resource, version.number
                if number not in declared:
                    every = version.desired.resources.values()
                    declared[number] = DeclaredNames.of(
                        item for item in every if item.address.kind == kind
                    )
                key = ("key", resource.address.key)
                for name in (resource.name.strip(), *declared[number].former(resource)):
                    links[key].add(("name", name))
                    links["name", name].add(key)
            self._links_of[kind] = links
        return self._links_of[kind]


def connected(start: Iterable[Handle], links: Links) -> AbstractSet[Handle]:
    """Return the handles that lead to each other, by the keys that had several."""
    handles, left = set(start), list(start)
    while left:
        new = links.get(left.pop(), frozenset()) - handles
        handles |= new
        left += new
    return handles


def candidates_of(
    starts: Sequence[_Item], find: Callable[[_Item], list[LiveObject]]
) -> tuple[list[tuple[_Item, list[LiveObject]]], list[_Item]]:
    """Return the resources with the objects that they may be, and those without any.

    All are looked for before any is claimed: else the order of the keys would decide which of two
    resources has an object. Of several objects, those that another resource must be don't count.
    """
    pairs = [(start, find(start)) for start in starts]
    certain = {items[0].id for _, items in pairs if len(items) == 1}
    left = [
        (start, [item for item in items if len(items) == 1 or item.id not in certain])
        for start, items in pairs
    ]
    return [pair for pair in left if pair[1]], [start for start, items in left if not items]
