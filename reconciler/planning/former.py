"""Find the live objects that a resource was at the git base, by pin, name and former names.

A parent is compared by the live object that it resolves to, never by its key, since a key may
name another object now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject
from reconciler.model.resource import ParentRef, Resource
from reconciler.planning.base import History, Version

ScopedName: TypeAlias = tuple[str | None, str]
"""The id of the parent, and a name in it."""


class Names(Struct, frozen=True):
    """The live objects of one kind by id, and by parent and name."""

    by_id: Mapping[str, LiveObject]
    by_name: Mapping[ScopedName, Sequence[LiveObject]]

    @classmethod
    def of(cls, kind: Kind, objects: Iterable[LiveObject], plain: Mapping[str, str]) -> Names:
        """Index objects. `plain` are names that replace those of some ids.

        Objects of a kind with parents are also listed without one: an export of the organization
        may be in any project.
        """
        by_id: dict[str, LiveObject] = {}
        by_name: dict[ScopedName, list[LiveObject]] = {}
        for item in objects:
            by_id[item.id] = item
            name = plain.get(item.id, item.name.strip())
            scopes = {item.parent_id, None} if kind.parent is not None else {None}
            for scope in scopes:
                by_name.setdefault((scope, name), []).append(item)
        return cls(by_id, by_name)


class FormerObjects(Struct):
    """The objects of former versions. `current` returns the object of a resource of today."""

    history: History
    kinds: Mapping[str, Kind]
    names: Mapping[str, Names]
    current: Callable[[Address], LiveObject | None]
    known_as: dict[tuple[str, str], list[LiveObject]] = field(default_factory=dict)
    """The parents of today by kind and the names that they had."""
    _declared: dict[tuple[str, str, int], tuple[str, ...]] = field(default_factory=dict)
    """The ids of declared parents by kind, key and commit. Children come after all parents."""

    def remember(self, resource: Resource, live: LiveObject | None) -> None:
        """Remember the names that a parent of today had."""
        if live is None:
            return
        names = set(resource.lifecycle.renamed_from)
        names |= {version.name for version in self.history.resources(resource.address)}
        for name in names:
            self.known_as.setdefault((resource.address.kind, name.strip()), []).append(live)

    def is_as_today(self, kind: Kind, resource: Resource, parent_id: str | None) -> bool:
        """Return whether all versions of a resource are that of today, in the parent of today."""
        for version in self.history.versions.get(resource.address, ()):
            if version.resource is not resource or self.scopes(kind, version) != (parent_id,):
                return False
        return True

    def of(self, kind: Kind, address: Address) -> list[LiveObject]:
        """Return the objects that any version of a resource was, newest version first."""
        objects: dict[str, LiveObject] = {}
        for version in reversed(self.history.versions.get(address, ())):
            objects |= {item.id: item for item in self.of_version(kind, version)}
        return list(objects.values())

    def of_version(self, kind: Kind, version: Version) -> list[LiveObject]:
        """Return the objects that one version was: several if its name or place is ambiguous."""
        resource, names = version.resource, self.names[kind.name]
        if resource.pinned_id is not None:
            return [names.by_id[resource.pinned_id]] if resource.pinned_id in names.by_id else []
        scopes = self.scopes(kind, version)
        for name in (resource.name, *resource.lifecycle.renamed_from):
            objects = [item for at in scopes for item in names.by_name.get((at, name.strip()), ())]
            if objects:
                return objects
        return []

    def scopes(self, kind: Kind, version: Version) -> tuple[str | None, ...]:
        """Return the ids of the parents that a version may have had."""
        ref = version.resource.parent
        if ref is None or kind.parent is None:
            return (None,)
        if ref.id is not None:
            return (ref.id,)
        if ref.name is not None:
            objects = self.names[kind.parent].by_name.get((None, ref.name.strip()), ())
            return tuple(item.id for item in objects)
        place = (kind.parent, ref.key or "", id(version.desired))
        if place not in self._declared:
            parents = self._parents(kind.parent, ref, version.parent(kind))
            self._declared[place] = tuple(item.id for item in parents)
        return self._declared[place]

    def _parents(self, kind: str, ref: ParentRef, parent: Version | None) -> list[LiveObject]:
        """Return the objects of a declared parent: of the base, and of the same key today."""
        address = Address(kind, ref.key or "")
        parents = self.of_version(self.kinds[kind], parent) if parent is not None else []
        if not parents:
            parents = self.of(self.kinds[kind], address)
            if parent is not None:
                parents += self.known_as.get((kind, parent.resource.name), [])
        today = self.current(address)
        if today is not None:
            parents = [*parents, today]
        return list({item.id: item for item in parents}.values())
