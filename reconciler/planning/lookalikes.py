"""Point out unmanaged objects that look like a planned create. Only notes, never an identity."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.change import Change
from reconciler.model.comparison import comparable, is_default, is_equal
from reconciler.model.kind import Kind
from reconciler.model.leaves import field_leaves
from reconciler.model.live import LiveObject
from reconciler.model.plan import Note
from reconciler.model.replacement import parse_marked_name
from reconciler.model.resource import Resource
from reconciler.model.values import JSONObject, SecretRef, value_at
from reconciler.model.wording import printable, quoted, several

_MOST_OBJECTS = 3
_MOST_NOTES = 20
_MOST_COMPARED = 200
"""Unmanaged objects of a kind up to which names and fields are compared one by one."""
_MOST_AT_A_PLACE = 20
_SIMILAR = 0.85
_DIGITS = re.compile(r"\d+")

_Identity: TypeAlias = tuple[str, str]


class _Place(NamedTuple):
    """Where an object writes: a field with variants, its tag, and what says the place in it."""

    kind: str
    field: str
    tag: str
    values: tuple[str, ...]


class _Alike(NamedTuple):
    """An object that looks like a resource, and what is alike."""

    live: LiveObject
    reason: str


class LookAlikes(Struct, frozen=True):
    """The unmanaged objects, indexed. `parent_names` are those of live objects, by kind and id."""

    kinds: Mapping[str, Kind]
    parent_names: Mapping[_Identity, str]
    by_id: Mapping[str, dict[str, LiveObject]] = field(default_factory=lambda: defaultdict(dict))
    by_name: Mapping[_Identity, list[LiveObject]] = field(default_factory=lambda: defaultdict(list))
    by_place: Mapping[_Place, list[LiveObject]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(
        cls,
        objects: Iterable[LiveObject],
        kinds: Mapping[str, Kind],
        parent_names: Mapping[_Identity, str],
    ) -> LookAlikes:
        """Index objects, without the new ones of interrupted replacements."""
        index = cls(kinds, parent_names)
        for item in objects:
            if parse_marked_name(item.name) is None:
                index.by_id[item.kind][item.id] = item
                index.by_name[item.kind, item.name.strip().casefold()].append(item)
                for place in _places(kinds[item.kind], item.body):
                    index.by_place[place].append(item)
        return index

    def notes(
        self, changes: Sequence[Change], resources: Mapping[Address, Resource]
    ) -> Iterator[Note]:
        """Yield a note on each planned create that looks like unmanaged objects.

        Objects inside of one that looks like a planned parent are left out.
        """
        alike = {
            change.address: self._alike(change, resources[change.address])
            for change in changes
            if change.action is Action.CREATE
        }
        families = self._families(changes, alike)
        noted = compared = 0
        for change in changes:
            if change.action is not Action.CREATE:
                continue
            kind, items = self.kinds[change.address.kind], alike[change.address]
            parents: Mapping[str, int] = families.get(
                Address(kind.parent or "", _key_of_parent(change) or ""), {}
            )
            items = [item for item in items if item.live.parent_id not in parents]
            if change.address in families:
                items = self._by_children(kind, families[change.address])
            elif not alike[change.address] and compared < _MOST_NOTES:
                compared += 1
                items = self._similar(change, resources[change.address])
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
            is_same = item.name.strip() == resource.name
            refused = ", which newer servers refuse" if kind.unique_names else ""
            same[item.id].append("name" if is_same else f"name in another case{refused}")
        for place in _places(kind, resource.spec):
            there = self.by_place.get(place, ())
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
        shown = ", ".join(self._shown(change, kind, item) for item in items[:_MOST_OBJECTS])
        if len(items) > _MOST_OBJECTS:
            shown += f" and {len(items) - _MOST_OBJECTS} more"
        one = "this one" if len(items) == 1 else "one of these"
        first = printable(items[0].live.id)
        return Note(
            "look-alike",
            f"unmanaged: {shown}. If it is {one}, pin it: `id: {first}`",
            about=change.address,
        )

    def _shown(self, change: Change, kind: Kind, item: _Alike) -> str:
        live, where = item.live, ""
        if kind.parent is not None and live.parent_id != change.parent_id:
            name = self.parent_names.get((kind.parent, live.parent_id or ""))
            where = f" in {kind.parent} {quoted(name)}" if name is not None else ""
        return f"{quoted(live.name)}{where} (id {printable(live.id)}, {item.reason})"


def _key_of_parent(change: Change) -> str | None:
    return change.parent.key if change.parent is not None else None


def _places(kind: Kind, body: JSONObject) -> Iterator[_Place]:
    """Yield where an object writes, as far as its fields with variants say it without secrets."""
    for item, variant in kind.variants:
        value = item.live_value(body)
        tag, inside = value_at(value, (variant.tag,)), value_at(value, (variant.body,))
        if not isinstance(tag, str) or not isinstance(inside, Mapping):
            continue
        fields = [
            inner for inner in variant.fields_of(value) if inner.name in variant.places.get(tag, {})
        ]
        values = [inside.get(inner.name) for inner in fields]
        if any(text is not None for text in values) and not any(
            isinstance(text, SecretRef) for text in values
        ):
            texts = (
                text if isinstance(text, str) else str(comparable(inner, text))
                for inner, text in zip(fields, values, strict=True)
            )
            yield _Place(kind.name, item.name, tag, tuple(texts))


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
