"""What a plan of a world is (docs/planning.md).

Imports nothing of what it judges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tests.model.declared import TYPE, Resource, declared, environment_of
from tests.model.fields import Fields, changed_secrets, dropped, fields_of, is_lost, loosened
from tests.model.identity import Identity, Live
from tests.model.recorded import Record
from tests.model.refusing import refusals_of
from tests.model.selecting import left_out
from tests.model.world import World, checked_out

# What servers of 2026 cannot change.
FIXED = {TYPE, "model"}


@dataclass
class Change:
    """A planned change. `parent` is the id of its project, None for one to create."""

    address: str
    action: str
    live: Live | None
    parent: str | None
    fields: Fields = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    on_purpose: bool = True


class Planned:
    """The plan of a world for one live state. `error` is the name of the error that ends it.

    `saved` is the saved plan that is applied.
    """

    def __init__(self, world: World, live: Sequence[Live], saved: Planned | None = None) -> None:
        self.world, self.live, self.saved, files = world, live, saved, checked_out(world)
        self.now = declared(files, world.environment)
        self.policy = environment_of(world.work, world.environment, "policy")
        self.record, empty = (
            Record(world, live, self.now),
            Record(replace(world, record=None), (), {}),
        )
        globs, differs = self.policy.get("ignore", ()), partial(fields_of, empty)
        self.identity = Identity(
            live, self.now, self.record, globs, lambda r, x: bool(differs(r, x))
        )
        self.left_out, self.selected = set[str](), set[str]()
        self.changes: dict[tuple[str, str], Change] = {}
        self.refusals = set[tuple[str, frozenset[str]]]()
        self.leaving, self.loosened = set[str](), set[tuple[str, str]]()
        self.stays, self.unmanaged = set[tuple[str, str]](), set[str]()
        self.error, self.code = "BadUsage", 64
        candidates = [*self._candidates()]
        if not self._select({change.address for change in candidates}):
            return
        candidates = [change for change in candidates if change.address not in self.left_out]
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
        address, fields = resource.address, fields_of(self.record, resource, item)
        toggle = fields.pop("paused", None)
        moves = bool(item.parent != parent and resource.parent)
        is_needed = moves or bool(self.world.dialect == "2026" and FIXED & fields.keys())
        lost = partial(is_lost, resource=resource, item=item, moves=moves)
        if is_needed:
            parent = parent if resource.parent else item.parent
            whole = fields_of(self.record, resource, item, lost)
            yield Change(address, "replace", item, parent, whole)
            return
        secrets = changed_secrets(self.record, resource, item)
        secrets = resource.secrets if {address, "*"} & {*self.world.rotate} else secrets
        if fields or secrets:
            yield Change(address, "update", item, parent, fields, secrets)
        if toggle:
            action = "pause" if resource.values["paused"] else "unpause"
            yield Change(address, action, item, parent, {"paused": toggle})

    def pruned(self) -> Iterator[Change]:
        """Yield the deletions of removed objects, and of what is in projects to delete."""
        identity, allows = self.identity, self.world.allow_replace
        gone = {x.id for key, x in identity.matched.items() if x and self.now[key].absent}
        for address, item in identity.removed.items():
            is_inside = item.parent in gone
            if address not in identity.left and (is_inside or self.policy.get("prune")):
                yield Change(address, "delete", item, item.parent, on_purpose=is_inside)
        moved = identity.left_by_moves.items()
        allowed = {x for k, x in moved if allows or self.now[k].lifecycle.get("allow_replace")}
        for item in filter(identity.is_free, self.live):
            if item in allowed or item.parent in gone:
                on_purpose = item not in allowed
                yield Change(item.address, "delete", item, item.parent, on_purpose=on_purpose)

    # Selection

    def _select(self, known: set[str]) -> bool:
        """Find what the options leave out; return whether they are usable."""
        secret = {address for address, resource in self.now.items() if resource.secrets}
        out = left_out(self, known)
        self.left_out = out or set()
        return out is not None and {*self.world.rotate} <= secret | {"*"}

    # Notes

    def _note(self) -> None:
        """Collect what leaves management, what is loosened, and fields that stay."""
        for address, item in self.identity.matched.items():
            was = self.record.declared(item)
            if not self.world.no_inventory:
                texts = loosened(self.now[address], was, self.record.trusted.get(address))
                self.loosened |= {(text, address) for text in texts}
            if item and not self.now[address].absent and address not in self.left_out:
                fields = dropped(was, self.now[address], item)
                self.stays |= {(address, path) for path, is_reset in fields if not is_reset}
        gone = {change.live.id for change in self.of_action("delete") if change.live}
        free = [*filter(self.identity.is_free, self.live), *self.identity.removed.values()]
        kept = {key for key, item in self.identity.removed.items() if item.id not in gone}
        self.leaving = kept - self.left_out
        self.leaving |= set() if self.world.is_partial else self.identity.gone
        self.unmanaged = {item.id for item in free if gone.isdisjoint((item.id, item.parent))}
