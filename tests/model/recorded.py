"""What was applied, as far as it counts (docs/git.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.model.declared import Declared, Resource, all_resources, declared, sent_by
from tests.model.world import LOST, Entry, World, checked_out

if TYPE_CHECKING:
    from tests.model.identity import Live


class Record:
    """The entries that count, with their applied declarations.

    uncounted
        The addresses of those that do not count.
    behind
        The entries that are not current.
    trusted
        What the trusted branch declares, or else the newest applied commit if it is no job.
    elsewhere
        The removed addresses that other files may declare.
    is_older
        Whether HEAD is older than the newest applied commit, and its files differ.
    """

    def __init__(self, world: World, live: Sequence[Live], now: Declared) -> None:
        self.world, self.now, self.live = world, now, live
        self.exists = world.record is not None and not world.no_inventory
        every = dict(world.record or {}) if self.exists else {}
        self.known = {key: entry for key, entry in every.items() if self._is_known(entry)}
        self.entries = {key: entry for key, entry in self.known.items() if self._counts(key, entry)}
        self.uncounted = every.keys() - self.entries.keys()
        self.applied = {
            key: was for key, entry in self.entries.items() if (was := self.at(entry.commit, key))
        }
        is_own = world.default is None and self.exists and not world.job
        trusted = None if world.no_inventory else world.newest if is_own else world.default
        files = world.commits[trusted or 0].files
        self.trusted = declared(files, world.environment) if trusted is not None else {}
        self.of_object = {entry.id: key for key, entry in self.entries.items()}
        self.behind = {key for key in self.entries if not self._is_current(key)}
        self.elsewhere = self._elsewhere()
        is_ancestor = world.head in world.ancestors(world.newest)
        self.is_older = self.exists and not world.rollback and is_ancestor
        self.is_older &= world.commits[world.newest].files != world.commits[world.head].files

    def at(self, commit: int | None, address: str) -> Resource | None:
        """Return how the files at a commit declare an address, None if they do not."""
        if commit is None or commit == LOST:
            return None
        was = declared(self.world.commits[commit].files, self.world.environment).get(address)
        return None if was is None or was.absent else was

    def _is_known(self, entry: Entry) -> bool:
        """Return whether the commit of an entry is one to believe."""
        if self.world.job:
            return entry.commit in self.world.first_parents(self.world.default)
        return entry.commit != LOST

    def _counts(self, address: str, entry: Entry) -> bool:
        """Return whether the files at its commit declare it by its name, in its project."""
        if entry.commit is None:
            return True
        was = self.at(entry.commit, address)
        return was is not None and was.name == entry.name and self._is_inside(was, entry)

    def _is_inside(self, was: Resource, entry: Entry) -> bool:
        how, text = was.parent or ("id", "")
        above, own = self.at(entry.commit, text), self.known.get(text)
        if how == "key" and above is None:
            return False
        is_own = own is not None and own.id == entry.parent
        return is_own or self._is_project(was, above, entry.parent)

    def _is_project(self, was: Resource, above: Resource | None, parent: str | None) -> bool:
        """Return whether a live project is that of a resource: `above`, or named by id or name."""
        how, text = was.parent or ("id", parent)
        if how == "id":
            return text == parent
        if above and above.pinned == parent:
            return True
        name = above.name if above else text
        return any(item.id == parent and item.name == name for item in self.live)

    def _is_current(self, address: str) -> bool:
        world, commit = self.world, self.entries[address].commit
        before = world.ancestors(world.head)
        if world.rollback or commit is None or commit in before:
            return True
        # The newest common ancestor. Histories of worlds have one.
        base = max(world.ancestors(commit) & before)
        return self.applied[address] in (self.now.get(address), self.at(base, address))

    def _elsewhere(self) -> set[str]:
        """Return the removed addresses that a file which is not loaded may declare."""
        contained = {address for _, address, _ in all_resources(checked_out(self.world))}
        removed = self.entries.keys() - self.now.keys()
        return removed if self.world.left_out else removed & contained

    def declared(self, item: Live | None) -> Resource | None:
        """Return how an object was applied, under any address."""
        return self.applied.get(self.of_object.get(item.id, "")) if item else None

    def protects(self, address: str, item: Live) -> bool:
        """Return whether an object was applied as protected, or is so on the trusted branch."""
        known = self.of_object.get(item.id, "")
        own = [self.applied.get(known), self.trusted.get(address), self.trusted.get(known)]
        own += [was for was in self.trusted.values() if self._is_trusted(was, item)]
        return any(was and was.protected for was in own)

    def _is_trusted(self, was: Resource, item: Live) -> bool:
        """Return whether an object is that of a resource of the trusted branch, by id or names."""
        above = self.trusted.get(was.parent[1]) if was.parent else None
        is_named = was.name == item.name and self._is_project(was, above, item.parent)
        return was.kind == item.kind and (item.id == was.pinned or is_named)

    def sends(self, resource: Resource, item: Live) -> bool:
        """Return whether other secrets were sent last, or it is not known which."""
        key = self.of_object.get(item.id)
        if key is None:
            return resource.address in self.entries
        return self.entries[key].sent != sent_by(resource)
