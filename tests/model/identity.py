"""Which live object a resource is, now and since the git base (docs/planning.md, Identity).

Imports nothing of what it judges.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.model.declared import Declared, Resource, Versions, canonical

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
Globs = Sequence[str]
_MARKER = re.compile(r"\s*<!-- iac:[\w-]+:\S+ iac:hash:\S+ -->$")


def plain(name: str) -> str:
    """Return a name without the marker of another tool."""
    return _MARKER.sub("", name)


@dataclass(frozen=True, eq=False)
class Live:
    """A live object. `parent` is the id of its project.

    `replaces` is the id of the live object that it replaces, if the replacement was interrupted.
    """

    kind: str
    id: str
    parent: str | None
    values: Mapping[str, Any]
    replaces: str | None = None

    def value(self, path: str) -> Any:
        return canonical(path, self.values.get(path))

    @property
    def name(self) -> str:
        return str(self.value("name"))

    @property
    def plain_name(self) -> str:
        return plain(self.name)

    @property
    def address(self) -> str:
        return f"{self.kind}.id:{self.id}"

    def is_called(self, name: str) -> bool:
        """Return whether it has a name, perhaps with what a replacement of a lost object adds."""
        return name in (self.name, self.name if self.replaces else self.final_name)

    @property
    def final_name(self) -> str:
        """Its name without what a replacement adds until its end."""
        return re.sub(r" \(replaces [\w-]+\)$", "", self.name)

    def is_beside(self, resource: Resource) -> bool:
        return not {self.name, self.address}.isdisjoint(resource.lifecycle.get("beside", ()))

    def has_ended(self, since: timedelta = timedelta()) -> bool:
        end = self.value("end_at")
        return end is not None and end < NOW - since


class Identity:
    """The live objects of resources, for the files of now and of every commit of the range."""

    def __init__(
        self, live: Sequence[Live], now: Declared, versions: Versions = (), globs: Globs = ()
    ) -> None:
        self.live, self.now, self.versions = live, now, versions
        # What `policy.ignore` names, and the resources that it forbids.
        self.ignored = {item for item in live if _is_any(item.name, globs)}
        pinned = {item.id for item in self.ignored}
        self.untouchable = {key for key in now if now[key].pinned in pinned}
        self.untouchable |= {key for key in now if _is_any(now[key].name, globs)}
        self.matched: dict[str, Live | None] = {}
        self.owner: dict[Live, str] = {}
        # The new objects of interrupted replacements, by resource.
        self.new: dict[str, Live] = {}
        # The removed resources, with their objects if these are certain or may be theirs.
        self.was: dict[str, Resource] = {}
        self.removed: dict[str, Live] = {}
        self.unclear: dict[str, list[Live]] = {}
        self.maybe_protected: set[Live] = set()
        self.is_ambiguous = False
        for kind in ("project", "batch_export"):
            self._match([now[key] for key in sorted(now.keys() - self.untouchable)], kind)
        if not self.is_ambiguous:
            self._match_removed()

    def is_free(self, item: Live) -> bool:
        return item not in self.owner and item not in self.ignored

    def named(self, kind: str, parents: Iterable[str | None], name: str) -> list[Live]:
        wanted = {*parents}
        found = [item for item in self.live if item.kind == kind and item.is_called(name)]
        return [item for item in found if item.parent in wanted]

    def _pinned(self, resource: Resource) -> list[Live]:
        return [item for item in self.live if item.id == resource.pinned]

    def parent_of(self, resource: Resource) -> str | None:
        """Return the id of the live project of a resource, None if it does not exist yet."""
        if resource.parent is None:
            return None
        how, text = resource.parent
        projects = [item for item in self.live if item.kind == "project"]
        if how == "key":
            found = [self.matched.get(text)]
        else:
            found = [item for item in projects if text == (item.id if how == "id" else item.name)]
        self.is_ambiguous |= len(found) != 1 and not (how == "id" and resource.absent)
        return found[0].id if found and found[0] else None

    # The resources of now

    def _match(self, resources: list[Resource], kind: str) -> None:
        """Match by id, name, former name and base: each rule for all resources before the next."""
        resources = [resource for resource in resources if resource.kind == kind]
        for resource in resources:
            if resource.pinned is not None:
                found = self._pinned(resource)
                self.is_ambiguous |= not (found or resource.absent)
                self._claim(resource, found)
        left = [resource for resource in resources if resource.pinned is None]
        for rule in (self._by_name, self._by_former_name, self._by_base):
            pairs = [(resource, rule(resource)) for resource in left]
            certain = {found[0] for _, found in pairs if len(found) == 1}
            for resource, found in pairs:
                others = [item for item in found if item not in certain]
                if found:
                    self._claim(resource, found if len(found) == 1 else others)
            left = [resource for resource, found in pairs if not found]
        for resource in left:
            self._claim(resource, [])
        self._continue_replacements(resources)
        for resource in resources:
            if self._has_second(resource):
                self.is_ambiguous = True

    def _continue_replacements(self, resources: list[Resource]) -> None:
        """Find the new objects of replacements of which the old one is still live."""
        items = [item for item in self.live if item.replaces and self.is_free(item)]
        for resource in [resource for resource in resources if not resource.absent]:
            own, parent = self.matched[resource.address], self.parent_of(resource)

            def is_in_place(item: Live, resource: Resource = resource, to: Any = parent) -> bool:
                return resource.parent is None or item.parent == to

            found = [
                item
                for item in items
                if (own and item.replaces == own.id)
                or (item.final_name == resource.name and is_in_place(item))
            ]
            is_own = own is not None and len(found) == 1 and found[0].replaces == own.id
            if is_own and is_in_place(found[0]):
                self.new[resource.address] = found[0]
                self.owner[found[0]] = resource.address
            elif found and resource.pinned is None:
                self.is_ambiguous = True

    def _claim(self, resource: Resource, found: list[Live]) -> None:
        item = found[0] if len(found) == 1 else None
        self.is_ambiguous |= len(found) > 1 or item in self.owner
        self.matched[resource.address] = item
        if item:
            self.owner[item] = resource.address

    def _by_name(self, resource: Resource, *former: str) -> list[Live]:
        parent = self.parent_of(resource)
        if resource.parent is not None and parent is None:
            return []
        names = former or [resource.name]
        found = [item for name in names for item in self.named(resource.kind, [parent], name)]
        return [item for item in found if self.is_free(item)]

    def _may_become(self, resource: Resource, objects: Iterable[Live]) -> list[Live]:
        """Return the objects that a resource may be by another name than its own."""
        found = [item for item in dict.fromkeys(objects) if not item.is_beside(resource)]
        return [item for item in found if self.is_free(item) and item.plain_name == item.name]

    def _by_former_name(self, resource: Resource) -> list[Live]:
        names = resource.names[1:]
        return self._may_become(resource, self._by_name(resource, *names) if names else [])

    def _by_base(self, resource: Resource) -> list[Live]:
        return self._may_become(resource, self.former(resource.address))

    def _has_second(self, resource: Resource) -> bool:
        """Return whether another object than by its name is the resource by the base."""
        address, parent = resource.address, self.parent_of(resource)
        history, project = self.of_key(address), (resource.parent or ("", ""))[1]
        is_same = all(was == resource and self.scopes(n, was) == [parent] for n, was in history)
        is_same &= len({was.name for _, was in self.of_key(project)}) <= 1
        if resource.pinned is not None or (self.matched[address] is not None and is_same):
            return False
        return bool(self._may_become(resource, [*self.former(address), *self.elsewhere(address)]))

    # The resources of the range

    def of_key(self, address: str) -> list[tuple[int, Resource]]:
        return [(n, was[address]) for n, was in enumerate(self.versions) if address in was]

    def of_version(self, number: int, address: str) -> list[Live]:
        """Return the objects that a resource of a commit was: several if it is ambiguous."""
        was = self.versions[number].get(address)
        if was is None or was.pinned is not None:
            return self._pinned(was) if was else []
        scopes = self.scopes(number, was)
        found = self.named(was.kind, scopes, was.name)
        former = [item for name in was.names[1:] for item in self.named(was.kind, scopes, name)]
        return found or [*dict.fromkeys(former)]

    def certain(self, number: int, address: str) -> Live | None:
        found = self.of_version(number, address)
        return found[0] if len(found) == 1 else None

    def former(self, address: str) -> list[Live]:
        """Return the objects that a key was at any commit of the range."""
        return [item for n, _ in self.of_key(address) for item in self.of_version(n, address)]

    def scopes(self, number: int, was: Resource) -> list[str | None]:
        """Return the projects in which a resource of a commit may have been."""
        how, text = was.parent or ("id", None)
        if how == "id" or text is None:
            return [text]
        named = self.named("project", [None], text)
        found = named if how == "name" else self.of_version(number, text)
        others = self.versions[number].keys() - {text} if not found else ()
        taken = {
            x.id
            for key in others
            if key.startswith("project.")
            for x in self.of_version(number, key)
        }
        return [item.id for item in found] or [x for x in self.connected(text) if x not in taken]

    def connected(self, address: str) -> list[str | None]:
        """Return the projects that a key may have had, also if commits were applied in part."""
        names = {name for _, was in self.of_key(address) for name in was.names}
        projects = [item for item in self.live if item.kind == "project"]
        return [i.id for i in projects if i.name in names or self.owner.get(i) == address]

    def elsewhere(self, address: str) -> list[Live]:
        """Return what has a name of a key, in projects in which it may have been."""
        return [
            item
            for _, was in self.of_key(address)
            if was.parent and was.pinned is None
            for name in was.names
            for item in self.named(was.kind, self.connected(was.parent[1]), name)
        ]

    def history_of(self, address: str, item: Live | None) -> list[Resource]:
        """Return how a live object was declared since the base, under any key."""
        return [
            was
            for number, version in enumerate(self.versions)
            for key, was in version.items()
            if (key == address if (own := self.certain(number, key)) is None else own is item)
        ]

    def at_base(self, item: Live | None) -> list[Resource]:
        """Return how the base declares a live object: by id, else by name, else by former names."""
        keys = self.versions[0] if self.versions and item else {}
        found = [was for key, was in keys.items() if self.certain(0, key) is item]
        pinned = [was for was in found if was.pinned is not None]
        return pinned or [was for was in found if item and item.is_called(was.name)] or found

    # The removed resources

    def _match_removed(self) -> None:
        """Find their objects. One that another one certainly is counts less."""
        own, objects = dict[str, list[Live]](), dict[str, list[Live]]()
        keys = {key for was in self.versions for key in was if not was[key].absent}
        for address in keys - self.now.keys():
            numbered = [(n, was) for n, was in self.of_key(address) if not was.absent]
            versions = [was for _, was in numbered]
            self.was[address] = ([was for was in versions if was.protected] or versions)[-1]
            places = [(versions[0].kind, was.name) for was in versions]
            anywhere = [item for item in self.live if (item.kind, item.name) in places]
            found = [item for number, _ in numbered for item in self.of_version(number, address)]
            scopes = [self.scopes(number, was) for number, was in numbered]
            objects[address] = found + self.elsewhere(address) + ([] if any(scopes) else anywhere)
            own[address] = found if all(len(ids) <= 1 for ids in scopes) else []

        def free(address: str) -> list[Live]:
            return [item for item in dict.fromkeys(objects[address]) if self.is_free(item)]

        def certain(address: str) -> bool:
            return len(free(address)) == 1 and free(address)[0] in own[address]

        left = sorted(objects, key=lambda address: (not self.was[address].protected, address))
        for address in left:
            if self.was[address].protected and not certain(address):
                self.maybe_protected |= {*free(address)}
        while sure := [*filter(certain, left)]:
            left.remove(sure[0])
            self.removed[sure[0]] = free(sure[0])[0]
            self.owner[self.removed[sure[0]]] = sure[0]
        self.unclear = {address: free(address) for address in left if free(address)}


def _is_any(name: str, globs: Globs) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)
