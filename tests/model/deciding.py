"""What a plan of a world is (docs/planning.md).

Imports nothing of what it judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from tests.model.declared import TYPE, Resource, base_of, declared, environment_of
from tests.model.fields import Fields, changed_secrets, dropped, fields_of, is_lost, loosened
from tests.model.identity import Identity, Live
from tests.model.refusing import refusals_of
from tests.model.selecting import left_out
from tests.model.world import World, checked_out

# What servers of 2026 cannot change.
FIXED = {TYPE, "model"}
_OF_SERVICE = {"id", "team_id", "created_at", "last_updated_at"}


@dataclass
class Change:
    """A planned change. `parent` is the id of its project, None for one to create.

    `new` is the new object of an interrupted replacement.
    """

    address: str
    action: str
    live: Live | None
    parent: str | None
    fields: Fields = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    on_purpose: bool = True
    new: Live | None = None


class Planned:
    """The plan of a world for one live state. `error` is the name of the error that ends it.

    `saved` is the saved plan that is applied.
    """

    def __init__(self, world: World, live: Sequence[Live], saved: Planned | None = None) -> None:
        self.world, self.live, self.saved, files = world, live, saved, checked_out(world)
        self.now = declared(files, world.environment)
        self.policy = environment_of(world.work, world.environment, "policy")
        self.base = base_of(world, self.now)
        globs = self.policy.get("ignore", ())
        self.identity = Identity(live, self.now, self.base.versions, globs)
        # What other environments of the organization declare.
        names = world.work["reconciler.yaml"]["environments"].keys() - {world.environment}
        others = [Identity(live, declared(files, name)) for name in names]
        self.elsewhere = {item for each in others if not each.is_ambiguous for item in each.owner}
        self.left_out, self.selected = set[str](), set[str]()
        self.changes: dict[tuple[str, str], Change] = {}
        self.refusals = set[tuple[str, frozenset[str]]]()
        self.adopted, self.loosened = set[str](), set[tuple[str, str]]()
        self.stays, self.unmanaged = set[tuple[str, str]](), set[str]()
        self.error, self.code = "AmbiguousIdentity", 1
        if self.identity.is_ambiguous:
            return
        self.error, self.code = "BadUsage", 64
        candidates = [*self._candidates()]
        if not self._select({change.address for change in candidates}):
            return
        candidates = [change for change in candidates if change.address not in self.left_out]
        if any(change.action == "stuck" for change in candidates):
            self.error, self.code = "AmbiguousIdentity", 1
            return
        self.changes = {(change.address, change.action): change for change in candidates}
        self.refusals = refusals_of(self)
        self._note()
        self.error, self.code = "", 5 if self.refusals else 2 if self.changes else 0

    def of_action(self, *actions: str) -> list[Change]:
        return [change for change in self.changes.values() if change.action in actions]

    # Changes

    def _candidates(self) -> Iterator[Change]:
        for address, item in self.identity.matched.items():
            resource, parent = self.now[address], self.identity.parent_of(self.now[address])
            if item and resource.absent:
                yield Change(address, "delete", item, item.parent)
            elif item:
                yield from self._of_pair(resource, item, parent)
            elif not resource.absent:
                fields = dict.fromkeys(resource.values, ("unknown", False))
                yield Change(address, "create", None, parent, fields)
        yield from self.pruned()

    def _of_pair(self, resource: Resource, item: Live, parent: str | None) -> Iterator[Change]:
        address, fields = resource.address, fields_of(self.identity, self.base, resource, item)
        toggle = fields.pop("paused", None)
        moves = bool(item.parent != parent and resource.parent)
        is_needed = moves or bool(self.world.dialect == "2026" and FIXED & fields.keys())
        lost = partial(is_lost, resource=resource, item=item, moves=moves)
        if new := self.identity.new.get(address):
            yield from self._rest_of_replacement(resource, item, new, lost, is_needed)
            return
        if is_needed:
            parent = parent if resource.parent else item.parent
            whole = fields_of(self.identity, self.base, resource, item, lost)
            yield Change(address, "replace", item, parent, whole)
            return
        secrets = changed_secrets(self.identity, resource, item)
        secrets = resource.secrets if {address, "*"} & {*self.world.rotate} else secrets
        if fields or secrets:
            yield Change(address, "update", item, parent, fields, secrets)
        if toggle:
            action = "pause" if resource.values["paused"] else "unpause"
            yield Change(address, action, item, parent, {"paused": toggle})

    def _rest_of_replacement(
        self,
        resource: Resource,
        old: Live,
        new: Live,
        lost: Callable[[str], bool],
        is_needed: bool,
    ) -> Iterator[Change]:
        """Yield what is left of a replacement, or that it can't be continued."""
        address = resource.address
        fields = fields_of(self.identity, self.base, resource, old, lost)
        left = fields_of(self.identity, self.base, resource, new, lost)
        toggle = left.pop("paused", None)
        if toggle:
            fields.pop("paused")
        managed = {path for path in resource.values if not resource.ignores(path) or lost(path)}
        paths = (old.values.keys() | new.values.keys()) - managed - _OF_SERVICE
        is_same = all(old.value(path) == new.value(path) for path in paths)
        if not is_needed or not is_same or (self.world.dialect == "2026" and FIXED & left.keys()):
            yield Change(address, "stuck", old, new.parent)
            return
        yield Change(address, "replace", old, new.parent, fields, new=new)
        if toggle:
            action = "pause" if resource.values["paused"] else "unpause"
            yield Change(address, action, old, new.parent, {"paused": toggle})

    def pruned(self) -> Iterator[Change]:
        """Yield the deletions of removed objects, and of unmanaged ones in declared projects."""
        identity, setting = self.identity, self.policy.get("prune", False)
        unclear = {item for items in identity.unclear.values() for item in items}
        projects = {item.id: key for key, item in identity.matched.items() if item}
        for item in [item for item in self.live if item not in identity.ignored]:
            address, project = identity.owner.get(item), projects.get(item.parent or "")
            modes = setting if isinstance(setting, dict) else {item.kind: setting}
            mode = item.plain_name == item.name and modes.get(project, modes.get(item.kind, False))
            is_inside = project is not None and self.now[project].absent and item not in unclear
            if address is not None and address not in self.base.kept:
                is_pruned = address not in self.now and (mode or is_inside)
            else:
                is_pruned = project and (mode is True or (is_inside and address is None))
            if is_pruned:
                change = Change(address or item.address, "delete", item, item.parent)
                change.on_purpose = address is not None or is_inside
                yield change

    # Selection

    def _select(self, known: set[str]) -> bool:
        """Find what the options leave out; return whether they are usable."""
        secret = {address for address, resource in self.now.items() if resource.secrets}
        out = left_out(self, known)
        self.left_out = out or set()
        return out is not None and {*self.world.rotate} <= secret | {"*"}

    # Notes

    def _note(self) -> None:
        """Collect what is adopted, what is loosened, and removed fields that stay as they are."""
        for address, item in self.identity.matched.items():
            history = self.identity.history_of(address, item)
            if self.base.versions:
                self.loosened |= {(text, address) for text in loosened(self.now[address], history)}
                first = history[0] if history else self.now[address]
                if item and first is not self.base.versions[0].get(first.address):
                    self.adopted.add(address)
            if item and not self.now[address].absent and address not in self.left_out:
                fields = dropped(self.identity, self.now[address], item)
                self.stays |= {(address, path) for path, is_reset in fields if not is_reset}
        gone = {change.live.id for change in self.of_action("delete") if change.live}
        free = [*filter(self.identity.is_free, self.live), *self.identity.removed.values()]
        self.unmanaged = {item.id for item in free if gone.isdisjoint((item.id, item.parent))}
