"""Compare the live states of two environments, object by object.

Objects of a resource are compared by its address, others by their name and that of their parent:
ids differ between environments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.compared import (
    EnvironmentComparison,
    FieldDifference,
    FieldSide,
    Intent,
    OnlyIn,
    ResourceDifference,
)
from reconciler.model.comparison import comparable, field_leaves, is_default, is_same
from reconciler.model.kind import Kind
from reconciler.model.live import Live, LiveObject
from reconciler.model.values import JSON, MISSING, Path
from reconciler.planning.details import Identity, short_forms
from reconciler.planning.matcher import Matching

_Place: TypeAlias = tuple[str, str, str, int]
"""Kind, parent, key or name, and a number for objects of one name."""
_NAME: Path = ("name",)


class LiveSide(Struct, frozen=True):
    """The live state of an environment, matched with its resources."""

    environment: str
    live: Live
    matching: Matching

    def parents(self) -> dict[Identity, str]:
        """Return what objects are called as parents: the key of their resource, or their name."""
        owners = owners_of(self.matching)
        return {
            (kind, item.id): owners[kind, item.id].key if (kind, item.id) in owners else item.name
            for kind, items in self.live.objects.items()
            for item in items
        }

    def objects(self, kinds: Mapping[str, Kind]) -> dict[_Place, tuple[Address, LiveObject]]:
        """Return its objects, without ignored ones, by what they are compared by."""
        parents = self.parents()
        objects: dict[_Place, tuple[Address, LiveObject]] = {
            (address.kind, "", address.key, 0): (address, match.live)
            for address, match in self.matching.matches.items()
            if match.live is not None
        }
        numbers = Counter[tuple[str, str, str]]()
        for item in self.matching.unmanaged:
            parent = parents.get((kinds[item.kind].parent or "", item.parent_id or ""), "")
            # A key has no space before it, so no name is taken for one.
            place = item.kind, parent, f" {item.name.strip()}"
            objects[*place, numbers[place]] = Address.of_unmanaged(item.kind, item.id), item
            numbers[place] += 1
        return objects


def owners_of(matching: Matching) -> dict[Identity, Address]:
    """Return the resources of live objects."""
    return {
        (match.live.kind, match.live.id): address
        for address, match in matching.matches.items()
        if match.live is not None
    }


def compare_live(
    first: LiveSide,
    second: LiveSide,
    kinds: Sequence[Kind],
    *,
    intents: Mapping[Address, Mapping[Path, Intent]],
    chosen: Collection[Address] | None = None,
) -> EnvironmentComparison:
    """Compare the objects of two environments, or those of `chosen` resources.

    `intents` are the intended differences of the files.
    """
    by_name = {kind.name: kind for kind in kinds}
    parents = first.parents(), second.parents()
    objects, others = (
        {
            place: item
            for place, item in side.objects(by_name).items()
            if chosen is None or item[0] in chosen
        }
        for side in (first, second)
    )
    resources = []
    both = sorted(objects.keys() & others.keys())
    for place in both:
        address, item = objects[place]
        kind = by_name[address.kind]
        values = _values(kind, item, parents[0]), _values(kind, others[place][1], parents[1])
        fields = tuple(_differences(*values, intents.get(address, {})))
        if fields:
            resources.append(ResourceDifference(address, item.name, fields))
    return EnvironmentComparison(
        first=first.environment,
        second=second.environment,
        live=True,
        only_first=_only(objects[place] for place in sorted(objects.keys() - others.keys())),
        only_second=_only(others[place] for place in sorted(others.keys() - objects.keys())),
        resources=tuple(resources),
        equal=len(both) - len(resources),
    )


def needed_in_full(matching: Matching, live: Live) -> frozenset[Identity]:
    """Return the objects of resources of which only the short form is known."""
    return frozenset(owners_of(matching).keys() & short_forms(live).keys())


def _only(items: Iterator[tuple[Address, LiveObject]]) -> tuple[OnlyIn, ...]:
    return tuple(OnlyIn(address, item.name) for address, item in items)


def _values(kind: Kind, item: LiveObject, parents: Mapping[Identity, str]) -> dict[Path, JSON]:
    """Return the comparable values of an object that are not the default, by path."""
    values: dict[Path, JSON] = {
        leaf.path: comparable(leaf.field, leaf.value)
        for leaf in field_leaves(kind.fields, item.body, live=True)
        if not is_default(leaf.field, leaf.value)
    }
    if kind.parent_key is not None and item.parent_id is not None:
        parent = parents.get((kind.parent or "", item.parent_id), item.parent_id)
        values[kind.parent_key,] = parent
    return values


def _differences(
    values: Mapping[Path, JSON],
    others: Mapping[Path, JSON],
    intents: Mapping[Path, Intent],
) -> Iterator[FieldDifference]:
    for path in {**values, **others}:
        value, other = values.get(path, MISSING), others.get(path, MISSING)
        if not is_same(value, other):
            intent = Intent.IDENTITY if path == _NAME else intents.get(path, Intent.NONE)
            yield FieldDifference(path, FieldSide(value), FieldSide(other), intent)
