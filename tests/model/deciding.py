"""What a plan of a world is (docs/planning.md)."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from tests.model.declared import DEFAULTS, INTEGRATION, TYPE, Resource, declared, environment_of
from tests.model.identity import Identity, Live
from tests.model.recorded import Record
from tests.model.refusing import refusals_of
from tests.model.world import World, checked_out

# What servers of 2026 cannot change.
FIXED = {TYPE, "model"}
# Fields with their origin, and whether they are reset.
Fields = dict[str, tuple[str, bool]]


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
        self.record = Record(world, live, self.now)
        differs = partial(fields_of, Record(replace(world, record=None), (), {}))
        self.identity = Identity(
            live, self.now, self.record, self.policy.get("ignore", ()), differs
        )
        self.left_out, self.selected = set[str](), set[str]()
        self.changes: dict[tuple[str, str], Change] = {}
        self.refusals = set[tuple[str, frozenset[str]]]()
        self.leaving, self.loosened = set[str](), set[tuple[str, str]]()
        self.stays, self.unmanaged = set[tuple[str, str]](), set[str]()
        self.error, self.code = "BadUsage", 64
        candidates = [*self._candidates()]
        secret = {address for address, resource in self.now.items() if resource.secrets}
        out = left_out(self, {change.address for change in candidates})
        if out is None or not {*world.rotate} <= secret | {"*"}:
            return
        self.left_out = out
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

    # Notes

    def _note(self) -> None:
        """Collect what leaves management, what is loosened, and fields that stay."""
        for address, item in self.identity.matched.items():
            was = self.record.declared(item)
            if not self.world.no_inventory:
                before = was or self.record.trusted.get(address)
                is_new = not before or not item or item.id not in self.record.of_object
                texts = loosened(self.now[address], before, is_new=is_new)
                self.loosened |= {(text, address) for text in texts}
            if item and not self.now[address].absent and address not in self.left_out:
                fields = dropped(was, self.now[address], item)
                self.stays |= {(address, path) for path, is_reset in fields if not is_reset}
        gone = {change.live.id for change in self.of_action("delete") if change.live}
        kept = {key: x for key, x in self.identity.removed.items() if key not in self.left_out}
        free = [*filter(self.identity.is_free, self.live), *kept.values()]
        self.leaving = {key for key, item in kept.items() if item.id not in gone}
        self.leaving |= set() if self.world.is_partial else self.identity.gone
        self.unmanaged = {item.id for item in free if gone.isdisjoint((item.id, item.parent))}


# What differs between a resource and its live object (docs/planning.md, What counts as a change)


def fields_of(
    record: Record, resource: Resource, item: Live, lost: Callable[[str], bool] = lambda _: False
) -> Fields:
    """Return the fields that differ. What is ignored and `lost` does."""
    was, found = record.declared(item), Fields()
    for path in resource.values.keys() - resource.secrets:
        is_kept = resource.ignores(path) and not lost(path)
        if resource.value(path) != item.value(path) and not is_kept:
            found[path] = (_origin(was, path, resource, item), False)
    resets = [path for path, is_reset in dropped(was, resource, item) if is_reset]
    return found | dict.fromkeys(resets, ("files", True))


def is_lost(path: str, resource: Resource, item: Live, *, moves: bool) -> bool:
    """Return whether the new object of a replacement can't have the value of the old one."""
    is_other = resource.value(TYPE) != item.value(TYPE)
    return path.startswith("destination.") and (is_other or (moves and path == INTEGRATION))


def _origin(was: Resource | None, path: str, now: Resource, item: Live) -> str:
    if was is None:
        return "unknown"
    if path not in was.values:
        return "files"
    if was.value(path) == now.value(path):
        return "live"
    return "files" if was.value(path) == item.value(path) else "both"


def dropped(was: Resource | None, resource: Resource, item: Live) -> Iterator[tuple[str, bool]]:
    """Yield the fields that were applied and are not set now, and whether they are reset.

    The others keep their live value.
    """
    if was is None:
        return
    same = was.value(TYPE) == resource.value(TYPE) == item.value(TYPE)
    for path in was.values.keys() - resource.unset - resource.values.keys():
        if resource.ignores(path) or (path.startswith("destination.") and not same):
            pass
        elif path not in {*DEFAULTS} - {"paused"} or path in was.secrets:
            if path != "paused" or item.value(path):
                yield path, False
        elif item.value(path) != DEFAULTS[path]:
            yield path, True


def changed_secrets(record: Record, resource: Resource, item: Live) -> set[str]:
    """Return the secrets that are sent again: all that are not ignored, or none."""
    if not record.sends(resource, item):
        return set()
    return {path for path in resource.secrets if not resource.ignores(path)}


def _permits(resource: Resource) -> set[str]:
    own, lists = resource.lifecycle, ("ignore_changes", "renamed_from", "beside")
    found = {f"{key} {item}" for key in lists for item in own.get(key, ())}
    found |= {key for key in ("allow_replace",) if own.get(key)}
    found |= {f"id {resource.pinned}"} if resource.pinned else set()
    return found if resource.protected else found | {"protect"}


def loosened(resource: Resource, before: Resource | None, *, is_new: bool) -> set[str]:
    """Return what a resource permits and did not when it was applied, or merged if it is new."""
    own = _permits(resource) - (_permits(before) if before else set())
    return {text for text in own if text.startswith("beside")} if is_new else own


# What the options that select resources leave out (docs/planning.md, Select resources)


class Thing(NamedTuple):
    """What an option may name: a resource, with its object or without, or an unmanaged object."""

    address: str
    names: frozenset[str]
    live: Live | None
    parents: frozenset[str | None]
    is_unmanaged: bool = False

    @property
    def key(self) -> str:
        return self.address.partition(".")[2]

    @property
    def levels(self) -> tuple[AbstractSet[str], ...]:
        """Its names, the kind of name first that counts first."""
        ids = {self.live.id, self.live.address} if self.live else set[str]()
        return {self.address}, ids, {self.key}, self.names


def things_of(plan: Planned) -> dict[str, Thing]:
    """Return everything that an option may name, by address."""
    identity, things = plan.identity, list[Thing]()
    for address in identity.untouchable | identity.ambiguous | identity.matched.keys():
        resource, live = plan.now[address], identity.matched.get(address)
        names = frozenset({resource.name, *({live.name} if live else ())})
        parents = frozenset({identity.parent_of(resource), *(resource.parent or ())[1:]})
        things.append(Thing(address, names, live, parents))
    for address, item in identity.removed.items():
        was = plan.record.applied.get(address)
        names = frozenset({was.name if was else item.name, item.name})
        things.append(Thing(address, names, item, frozenset({item.parent})))
    for item in plan.live:
        if item not in identity.owner and item not in identity.leads:
            names, parents = frozenset({item.name}), frozenset({item.parent})
            things.append(Thing(item.address, names, item, parents, is_unmanaged=True))
    return {thing.address: thing for thing in things}


def named(text: str, things: dict[str, Thing]) -> set[str]:
    """Return the addresses that a text names: the first kind of name that anything has counts."""
    for level in range(4):
        found = {address for address, thing in things.items() if text in thing.levels[level]}
        if found:
            return found
    return {
        address
        for address, thing in things.items()
        if any(fnmatch.fnmatchcase(own, text) for own in (address, thing.key, *thing.names))
    }


def left_out(plan: Planned, candidates: set[str]) -> set[str] | None:
    """Return the addresses that the options leave out, None if the options are not usable.

    `candidates` are the resources and objects with a change. What a saved plan selected is selected
    again, and its options need not match anything.
    """
    world, things = plan.world, things_of(plan)
    unmanaged = {address for address, thing in things.items() if thing.is_unmanaged} - candidates
    targets = [named(text, things) for text in world.targets]
    excludes = [named(text, things) for text in world.excludes]
    projects = {key: thing for key, thing in things.items() if key.startswith("project.")}
    parents = [named(text, projects) for text in world.parents]
    kinds = {text.removesuffix("s") for text in world.kinds}
    is_strict = plan.saved is None
    if not kinds <= {"project", "batch_export"}:
        return None
    is_wrong = not all((*excludes, *parents)) or any(found <= unmanaged for found in targets)
    if is_strict and is_wrong:
        return None
    chosen = {*things} - unmanaged
    if targets:
        chosen &= set().union(*targets)
    if parents:
        inside = set[str]().union(*parents)
        ids = {thing.live.id for key in inside if (thing := things[key]).live} | inside
        chosen &= inside | {key for key in things if not ids.isdisjoint(things[key].parents)}
    if kinds:
        chosen = {key for key in chosen if key.partition(".")[0] in kinds}
    excluded = set[str]().union(*excludes)
    chosen -= excluded
    if plan.saved is not None:
        chosen |= plan.saved.selected & things.keys()
    matched = plan.identity.matched
    for address in chosen & matched.keys():
        # What is created or moved needs its project.
        resource = plan.now[address]
        to = (resource.parent or ("", ""))[1]
        is_new = to in matched and matched[to] is None
        if is_new and not plan.now[to].absent and not resource.absent:
            chosen.add(to)
            if to in excluded:
                return None
    plan.selected = chosen
    is_usable = chosen or not world.is_partial or not is_strict
    return {*things} - unmanaged - chosen if is_usable else None
