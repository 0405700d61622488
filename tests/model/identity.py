"""Which live object a resource is (docs/planning.md, Identity)."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.model.declared import Declared, Resource, canonical

if TYPE_CHECKING:
    from tests.model.recorded import Record

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
_MARKER = re.compile(r"\s*<!-- iac:[\w-]+:\S+ iac:hash:\S+ -->$")


@dataclass(frozen=True, eq=False)
class Live:
    """A live object. `parent` is the id of its project."""

    kind: str
    id: str
    parent: str | None
    values: Mapping[str, Any]

    def value(self, path: str) -> Any:
        return canonical(path, self.values.get(path))

    @property
    def name(self) -> str:
        return str(self.value("name"))

    @property
    def has_marker(self) -> bool:
        return _MARKER.search(self.name) is not None

    @property
    def address(self) -> str:
        return f"{self.kind}.id:{self.id}"

    def is_beside(self, resource: Resource) -> bool:
        return not {self.name, self.address}.isdisjoint(resource.lifecycle.get("beside", ()))

    def has_ended(self, since: timedelta = timedelta()) -> bool:
        end = self.value("end_at")
        return end is not None and end < NOW - since


class Identity:
    """The live objects of the resources, and of those that were removed from the files.

    removed
        The objects of entries that no resource has and whose address is not declared.
    left
        Those of them that are not deleted in any case.
    replaced, left_by_moves
        The recorded objects of resources that have another one now, and those of them that a move
        left in another project.
    gone
        The removed addresses whose object does not exist.
    """

    def __init__(
        self,
        live: Sequence[Live],
        now: Declared,
        record: Record,
        globs: Sequence[str],
        differs: Callable[[Resource, Live], object],
    ) -> None:
        self.live, self.now, self.record, self.differs = live, now, record, differs
        # What `policy.ignore` names, and the resources that it forbids.
        self.ignored = {item for item in live if _is_any(item.name, globs)}
        pinned = {item.id for item in self.ignored}
        self.untouchable = {key for key in now if now[key].pinned in pinned}
        self.untouchable |= {key for key in now if _is_any(now[key].name, globs)}
        self.matched: dict[str, Live | None] = {}
        self.owner: dict[Live, str] = {}
        self.by_id = {item.id: item for item in live}
        self.removed: dict[str, Live] = {}
        self.left: set[str] = set()
        self.replaced: dict[str, Live] = {}
        self.left_by_moves: dict[str, Live] = {}
        self.gone: set[str] = set()
        self.leads: dict[Live, list[str]] = {}
        self.ambiguous = set[str]()
        self.unclear = set[tuple[str, frozenset[str]]]()
        for kind in ("project", "batch_export"):
            self._match([now[key] for key in sorted(now.keys() - self.untouchable)], kind)
        self._match_removed()

    def is_free(self, item: Live) -> bool:
        return item not in self.leads and item not in self.owner and item not in self.ignored

    def _named(self, resource: Resource, *names: str) -> list[Live]:
        """Return the free objects of some names in the project of a resource."""
        parent = self.parent_of(resource)
        if resource.parent is not None and parent is None:
            return []
        items = [item for item in self.live if (item.kind, item.parent) == (resource.kind, parent)]
        found = [item for name in names for item in items if item.name == name]
        return [item for item in dict.fromkeys(found) if self.is_free(item)]

    def parent_of(self, resource: Resource) -> str | None:
        """Return the id of the live project of a resource, None if it does not exist yet."""
        if resource.parent is None:
            return None
        how, text = resource.parent
        if how == "key":
            project = self.matched.get(text)
            return project.id if project else None
        found = self._projects(how, text)
        return found[0].id if len(found) == 1 else None

    def _projects(self, how: str, text: str) -> list[Live]:
        projects = [item for item in self.live if item.kind == "project"]
        return [item for item in projects if text == (item.id if how == "id" else item.name)]

    def _is_placed(self, resource: Resource, inside: dict[str, set[str]]) -> bool:
        """Return whether the project of a resource is clear, and refuse it otherwise."""
        how, text = resource.parent or ("key", "")
        if how == "key":
            if text not in self.ambiguous | self.untouchable:
                return True
            inside.setdefault(text, set()).add(resource.address)
            self.ambiguous.add(resource.address)
            return False
        found = self._projects(how, text)
        if len(found) == 1 or (how == "id" and resource.absent):
            return True
        return self._refuse("ambiguous" if found else "unresolved", resource.address)

    def _refuse(self, rule: str, *addresses: str) -> bool:
        self.unclear.add((rule, frozenset(addresses)))
        self.ambiguous.update(addresses)
        return False

    # The resources

    def _match(self, resources: list[Resource], kind: str) -> None:
        """Match by one rule after the other, each for all resources before the next."""
        inside: dict[str, set[str]] = {}
        every = [resource for resource in resources if resource.kind == kind]
        resources = [resource for resource in every if self._is_placed(resource, inside)]
        for parent, addresses in inside.items():
            rule = "ignore" if parent in self.untouchable else "ambiguous"
            self.unclear.add((rule, frozenset(addresses)))
        for resource in resources:
            if resource.pinned is not None:
                found = [item for item in self.live if item.id == resource.pinned]
                if found or resource.absent:
                    self._claim(resource, found)
                else:
                    self._refuse("unresolved", resource.address)
        left = [resource for resource in resources if resource.pinned is None]
        for find in (self._recorded_here, self._by_name, self._recorded, self._by_former_name):
            pairs = [(it, self._every(it, find(it, left), left)) for it in left]
            for resource, found in pairs:
                if found:
                    self._claim(resource, found)
            left = [resource for resource, found in pairs if not found]
        for resource in left:
            self._claim(resource, [])
        self._match_ambiguous(every, kind)

    def _match_ambiguous(self, every: list[Resource], kind: str) -> None:
        """Refuse what leads to one object, and keep what ambiguous resources may have."""
        for item, addresses in self.leads.items():
            if item.kind == kind and len(addresses) > 1 and not self.ambiguous >= {*addresses}:
                self._refuse("ambiguous", *addresses)
        for resource in every:
            entry = self.record.entries.get(resource.address)
            if resource.address in self.ambiguous:
                self.matched.pop(resource.address, None)
                for identity in (resource.pinned, entry.id if entry else None):
                    if identity in self.by_id and self.by_id[identity].kind == kind:
                        self.leads.setdefault(self.by_id[identity], [resource.address])
        for item in [item for item, address in self.owner.items() if address in self.ambiguous]:
            del self.owner[item]

    def _claim(self, resource: Resource, found: list[Live]) -> None:
        item = found[0] if len(found) == 1 else None
        for one in found:
            self.leads.setdefault(one, []).append(resource.address)
        if len(found) > 1:
            self._refuse("ambiguous", resource.address)
            return
        self.matched[resource.address] = item
        if item:
            self.owner[item] = resource.address

    def _recorded(self, resource: Resource, _: Iterable[Resource] = ()) -> list[Live]:
        entry = self.record.entries.get(resource.address)
        item = self.by_id.get(entry.id) if entry else None
        return [item] if item is not None and self.is_free(item) else []

    def is_here(self, resource: Resource, item: Live) -> bool:
        return resource.parent is None or item.parent == self.parent_of(resource)

    def _recorded_here(self, resource: Resource, left: Iterable[Resource]) -> list[Live]:
        """Return the recorded object in the declared project: to rename, if its name is free."""
        found = [item for item in self._recorded(resource) if self.is_here(resource, item)]
        if not found or found[0].name == resource.name:
            return found
        others = [item for other in left for item in self._recorded(other)]
        named = self._named(resource, resource.name)
        return found + [item for item in named if item not in others]

    def _by_name(self, resource: Resource, _: Iterable[Resource]) -> list[Live]:
        """Return the object of its name: beside the recorded one elsewhere only if it is done."""
        found = self._named(resource, resource.name)
        if len(found) == 1 and (resource.absent or self.differs(resource, found[0])):
            found += self._recorded(resource)
        return found

    def _every(self, resource: Resource, found: list[Live], left: Iterable[Resource]) -> list[Live]:
        """Return to delete all that a resource may be: the next plan would delete the others."""
        if not found or not resource.absent:
            return found
        others = [item for other in left for item in self._recorded(other)]
        may_be = self._named(resource, resource.name) + self._by_former_name(resource)
        return list(dict.fromkeys([*found, *(item for item in may_be if item not in others)]))

    def _by_former_name(self, resource: Resource, _: Iterable[Resource] = ()) -> list[Live]:
        found = self._named(resource, *resource.names[1:])
        return [item for item in found if not (item.is_beside(resource) or item.has_marker)]

    # The entries of which no resource has the object

    def _match_removed(self) -> None:
        for address, entry in sorted(self.record.entries.items()):
            item, resource = self.by_id.get(entry.id), self.now.get(address)
            if item is None and resource is None:
                self.gone.add(address)
            if item is None or item in self.owner or item in self.leads:
                continue
            must_stay = self._must_stay(address, item)
            if resource is None:
                self.removed[address] = item
                self.owner[item] = address
                self.left |= {address} if must_stay else set()
            elif not resource.absent and address in self.matched:
                self.replaced[address] = item
                is_move = self.matched[address] and not self.is_here(resource, item)
                if is_move and resource.pinned is None and not must_stay:
                    self.left_by_moves[address] = item

    def _must_stay(self, address: str, item: Live) -> bool:
        """Return whether the object of an entry is not deleted, whatever the policy says."""
        record, was = self.record, self.record.applied.get(address)
        if was is None or address in record.elsewhere | record.behind or item in self.ignored:
            return True
        is_other = item.name != was.name or item.parent != record.entries[address].parent
        how, text = was.parent or ("id", "")
        if how != "id":
            above = record.at(record.entries[address].commit, text) if how == "key" else None
            project = self.by_id.get(item.parent or "")
            is_other |= project is None or project.name != (above.name if above else text)
        return is_other or item.has_marker


def _is_any(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)
