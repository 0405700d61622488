"""What else writes to the place of an object: declared ones, and unmanaged ones like a new one."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.change import Change
from reconciler.model.comparison import field_leaves, is_default, is_equal
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject, other_tool_of, parse_marked_name, plain_name
from reconciler.model.plan import Note
from reconciler.model.resource import Resource, State
from reconciler.model.text import listed, printable, quoted, several, yaml_text
from reconciler.planning.matcher import Matching
from reconciler.planning.places import Parts, Place, Places

_MOST_OBJECTS = 3
_MOST_NOTES = 20
_MOST_COMPARED = 200
"""Unmanaged objects of a kind up to which names and fields are compared one by one."""
_MOST_AT_A_PLACE = 20
_SIMILAR = 0.85
_DIGITS = re.compile(r"\d+")

_Identity: TypeAlias = tuple[str, str]
_MOST_LISTED = 5
_MOST_COLLISIONS = 20


class _Alike(NamedTuple):
    """An object that looks like a resource, and what is alike."""

    live: LiveObject
    reason: str


class LookAlikes(Struct, frozen=True):
    """The unmanaged objects, indexed.

    `parent_names` are those of live objects, by kind and id. The plan deletes `deleted`.
    `environment` is the one of the plan, "" if the workspace has no other.
    """

    kinds: Mapping[str, Kind]
    parent_names: Mapping[_Identity, str]
    deleted: AbstractSet[_Identity]
    environment: str
    by_id: Mapping[str, dict[str, LiveObject]] = field(default_factory=lambda: defaultdict(dict))
    by_name: Mapping[_Identity, list[LiveObject]] = field(default_factory=lambda: defaultdict(list))
    by_place: Mapping[tuple[str, Place], list[LiveObject]] = field(
        default_factory=lambda: defaultdict(list)
    )
    places: dict[str, Places] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        objects: Iterable[LiveObject],
        kinds: Mapping[str, Kind],
        parent_names: Mapping[_Identity, str],
        *,
        deleted: AbstractSet[_Identity] = frozenset(),
        environment: str = "",
    ) -> LookAlikes:
        """Index objects, without the new ones of interrupted replacements."""
        index = cls(kinds, parent_names, deleted, environment)
        index.places.update((name, Places.of(kind)) for name, kind in kinds.items())
        for item in objects:
            if parse_marked_name(item.name) is None:
                index.by_id[item.kind][item.id] = item
                index.by_name[item.kind, plain_name(item.name).casefold()].append(item)
                for place in index.places[item.kind].of_body(item.body):
                    index.by_place[item.kind, place].append(item)
        return index

    def notes(
        self,
        changes: Sequence[Change],
        resources: Mapping[Address, Resource],
        *,
        refused: AbstractSet[Address] = frozenset(),
    ) -> Iterator[Note]:
        """Yield a note on each planned create that looks like unmanaged objects.

        Objects inside of one that looks like a planned parent are left out, and creates that are
        `refused` for such an object.
        """
        alike = {
            change.address: self._alike(change, resources[change.address])
            for change in changes
            if change.action is Action.CREATE
        }
        families = self._families(changes, alike)
        noted = compared = 0
        for change in changes:
            if change.action is not Action.CREATE or change.address in refused:
                continue
            kind, items = self.kinds[change.address.kind], alike[change.address]
            parents: Mapping[str, int] = families.get(
                Address(kind.parent or "", _key_of_parent(change) or ""), {}
            )
            lifecycle = resources[change.address].lifecycle
            items = [item for item in items if item.live.parent_id not in parents]
            if change.address in families:
                items = self._by_children(kind, families[change.address])
            elif not alike[change.address] and compared < _MOST_NOTES:
                compared += 1
                items = self._similar(change, resources[change.address])
            items = [
                item for item in items if not lifecycle.is_beside(item.live.name, item.live.address)
            ]
            noted += bool(items)
            if items and noted <= _MOST_NOTES:
                yield self._note(change, kind, items)
        if noted > _MOST_NOTES:
            more = several(noted - _MOST_NOTES, "more planned create")
            yield Note("look-alike", f"unmanaged objects look like {more}")

    def _alike(self, change: Change, resource: Resource) -> list[_Alike]:
        """Return the objects with the name or the place of a resource, both first."""
        kind = self.kinds[change.address.kind]
        objects: dict[str, LiveObject] = {}
        same: dict[str, list[str]] = defaultdict(list)
        named = self.by_name.get((kind.name, resource.name.casefold()), ())
        for item in named[:_MOST_COMPARED]:
            objects[item.id] = item
            is_same = plain_name(item.name) == resource.name
            refused = ", which newer servers refuse" if kind.unique_names else ""
            same[item.id].append("name" if is_same else f"name in another case{refused}")
        for place in self.places[kind.name].of_body(resource.spec):
            there = self.by_place.get((kind.name, place), ())
            # A place of many objects does not distinguish them.
            for item in there if len(there) <= _MOST_AT_A_PLACE else ():
                objects[item.id] = item
                same[item.id].append(place.field)
        best = sorted(objects, key=lambda live_id: (-len(same[live_id]), live_id))
        return [_Alike(objects[item], f"same {' and '.join(same[item])}") for item in best]

    def _families(
        self, changes: Sequence[Change], alike: Mapping[Address, Sequence[_Alike]]
    ) -> dict[Address, Counter[str]]:
        """Return the unmanaged parents of the objects that look like children of a planned one.

        By the address of the planned parent, with the number of its children.
        """
        families: dict[Address, Counter[str]] = defaultdict(Counter)
        for change in changes:
            kind, key = self.kinds[change.address.kind], _key_of_parent(change)
            if kind.parent is None or key is None or change.parent_id is not None:
                continue
            ids = {item.live.parent_id for item in alike.get(change.address, ())}
            ids.add(change.old_parent_id)
            unmanaged = self.by_id.get(kind.parent, {})
            families[Address(kind.parent, key)].update(
                parent_id for parent_id in ids if parent_id in unmanaged
            )
        return {address: family for address, family in families.items() if family}

    def _by_children(self, kind: Kind, family: Counter[str]) -> list[_Alike]:
        return [
            _Alike(self.by_id[kind.name][live_id], f"{several(count, 'object')} in it alike")
            for live_id, count in sorted(family.items(), key=lambda item: (-item[1], item[0]))
        ]

    def _similar(self, change: Change, resource: Resource) -> list[_Alike]:
        """Return the few objects in the same parent with a similar name or with equal fields."""
        kind = self.kinds[change.address.kind]
        objects = self.by_id.get(kind.name, {})
        if len(objects) > _MOST_COMPARED:
            return []
        beside = [item for item in objects.values() if item.parent_id == change.parent_id]
        names = {_plain(item.name): item for item in beside}
        name = _plain(resource.name)
        similar = [
            _Alike(names[close], "similar name")
            for close in get_close_matches(name, names, n=_MOST_OBJECTS, cutoff=_SIMILAR)
            if _DIGITS.findall(close) == _DIGITS.findall(name)
        ]
        # Where an object writes says more than its fields, if it writes anywhere.
        compared = [] if any(kind.variants) else beside
        equal = [
            _Alike(item, "same fields") for item in compared if _has_fields(kind, resource, item)
        ]
        # Many objects with equal fields mean that the fields do not distinguish objects.
        return similar or (equal if len(equal) <= _MOST_OBJECTS else [])

    def _note(self, change: Change, kind: Kind, items: Sequence[_Alike]) -> Note:
        stays = [item for item in items if (item.live.kind, item.live.id) not in self.deleted]
        items = stays or items
        shown = ", ".join(self._shown(change, kind, item) for item in items[:_MOST_OBJECTS])
        if len(items) > _MOST_OBJECTS:
            shown += f" and {len(items) - _MOST_OBJECTS} more"
        one = "this one" if len(items) == 1 else "one of these"
        fate = "unmanaged" if stays else "deleted by this plan"
        return Note(
            "look-alike",
            f"{fate}: {shown}. If it is {one}, {self._way(change, items[0].live)}",
            about=change.address,
        )

    def _way(self, change: Change, live: LiveObject) -> str:
        """Return how a resource becomes the one of an object, in all environments if possible."""
        if live.parent_id == change.parent_id and not other_tool_of(live.name):
            return f"set `lifecycle: {{renamed_from: [{yaml_text(live.name)}]}}`"
        pin = f"id: {printable(live.id)}"
        if self.environment:
            pin = f"overrides: {{{self.environment}: {{{pin}}}}}"
        return f"pin it: `{pin}`"

    def _shown(self, change: Change, kind: Kind, item: _Alike) -> str:
        live, where = item.live, ""
        if kind.parent is not None and live.parent_id != change.parent_id:
            name = self.parent_names.get((kind.parent, live.parent_id or ""))
            where = f" in {kind.parent} {quoted(name)}" if name is not None else ""
        return f"{quoted(live.name)}{where} (id {printable(live.id)}, {item.reason})"


def _key_of_parent(change: Change) -> str | None:
    return change.parent.key if change.parent is not None else None


def _has_fields(kind: Kind, resource: Resource, live: LiveObject) -> bool:
    """Return whether all declared fields that are known of an object are equal.

    One of them must have another value than its default. The name does not count.
    """
    known = {leaf.path: leaf.value for leaf in field_leaves(kind.fields, live.body, live=True)}
    declared = [
        (leaf.field, leaf.value, known[leaf.path])
        for leaf in field_leaves(kind.fields, resource.spec, live=False)
        if leaf.path in known and leaf.path != ("name",)
    ]
    return any(not is_default(item, wanted) for item, wanted, _ in declared) and all(
        is_equal(item, wanted, current) for item, wanted, current in declared
    )


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


def collision_notes(
    matching: Matching,
    unmanaged: Iterable[LiveObject],
    kinds: Mapping[str, Kind],
    *,
    changed: Collection[Address],
    refused: Collection[Address],
) -> Iterator[Note]:
    """Yield a note for each place that a resource and another object write to, up to a number.

    `refused` creates have a violation. Objects that the policy ignores count for `changed`
    resources.
    """
    places = {name: Places.of(kind) for name, kind in kinds.items()}
    users = _users(matching, places)
    others: dict[Parts, list[tuple[str, Address]]] = defaultdict(list)
    watched = {address for address in changed if address not in refused}
    ignored = {(item.kind, item.id): item for item in matching.ignored if watched}
    for item in (*unmanaged, *ignored.values()) if users else ():
        for parts in _shared(places[item.kind].of_body(item.body)):
            resources = [one for one in users.get(parts, ()) if one.address not in refused]
            if (item.kind, item.id) in ignored:
                resources = [one for one in resources if one.address in watched]
            if resources:
                others[parts].append((item.name, item.address))
    shared = (
        (_unexpected(resources, others.get(parts, ())), parts)
        for parts, resources in users.items()
        if len(resources) > 1 or parts in others
    )
    for addresses, parts in sorted(item for item in shared if len(item[0]) > 1)[:_MOST_COLLISIONS]:
        where = ", ".join(f"{word} {quoted(value)}" for word, value in parts)
        yield Note(
            "same-place",
            f"{listed(addresses, _MOST_LISTED)} write to the same place ({where}): files may be "
            "overwritten, and a table gets the rows of all",
        )


def _users(matching: Matching, places: Mapping[str, Places]) -> Mapping[Parts, Sequence[Resource]]:
    """Return the resources that write to each place."""
    users: dict[Parts, list[Resource]] = defaultdict(list)
    for match in matching.matches.values():
        resource = match.resource
        if resource.state is not State.ABSENT:
            live = match.live.body if match.live is not None else {}
            for parts in _shared(places[match.kind.name].of_body(resource.spec, live)):
                users[parts].append(resource)
    return users


def _shared(places: Iterable[Place]) -> Iterator[Parts]:
    """Yield places that say where data is kept. Their type does not count: S3, AwsS3."""
    return (place.parts for place in places if place.is_exact)


def _unexpected(
    resources: Sequence[Resource], others: Iterable[tuple[str, Address]]
) -> list[Address]:
    """Return the addresses at a place, without those that `lifecycle.beside` of another names."""
    trusting = [item for item in resources if item.lifecycle.beside]
    listed_there = [*((item.name, item.address) for item in resources), *others]
    left: list[Address] = []
    for name, address in listed_there:
        beside = (item for item in trusting if item.address != address)
        if not any(item.lifecycle.is_beside(name, address) for item in beside):
            left.append(address)
    return sorted(left)
