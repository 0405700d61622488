"""Find objects that write to the same place: the same table, bucket and prefix, or container."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.kind import Field, Kind, Variant
from reconciler.model.live import LiveObject
from reconciler.model.plan import Note
from reconciler.model.resource import State
from reconciler.model.values import JSON, MISSING
from reconciler.model.wording import listed, quoted
from reconciler.planning.matcher import Match, Matching

_LEAST_PARTS = 2
_MOST_LISTED = 5
_MOST_NOTES = 20
Place: TypeAlias = tuple[tuple[str, str], ...]
"""Words for the parts of a place, with their values."""


def collision_notes(
    matching: Matching, unmanaged: Iterable[LiveObject], kinds: Mapping[str, Kind]
) -> Iterator[Note]:
    """Yield a note for each place that a resource and another object write to, up to a number.

    An unmanaged object with the name of a resource has a note of its own (`notes.py`).
    """
    first: dict[Place, Match] = {}
    more: dict[Place, list[Match]] = {}
    holders = {
        name: tuple(_Holder.of(field, variant) for field, variant in kind.variants)
        for name, kind in kinds.items()
    }
    for match in matching.matches.values():
        if match.resource.state is not State.ABSENT:
            for place in _places(holders[match.kind.name], match.resource.spec, match.live):
                # Most places have one user, so they need no list.
                if first.setdefault(place, match) is not match:
                    more.setdefault(place, [first[place]]).append(match)
    others: dict[Place, list[Address]] = {}
    for item in unmanaged:
        for place in _places(holders[item.kind], item.body, None) if first else ():
            matches = more.get(place) or filter(None, [first.get(place)])
            names = {match.resource.name for match in matches}
            if names and item.name.strip() not in names:
                others.setdefault(place, []).append(Address.of_unmanaged(item.kind, item.id))
    shared = []
    for place in more.keys() | others.keys():
        managed = (match.resource.address for match in more.get(place, [first[place]]))
        shared.append((sorted((*managed, *others.get(place, ()))), place))
    for addresses, place in sorted(shared)[:_MOST_NOTES]:
        parts = ", ".join(f"{word} {quoted(value)}" for word, value in place)
        yield Note(
            "same-place",
            f"{listed(addresses, _MOST_LISTED)} write to the same place ({parts}): files may be "
            "overwritten, and a table gets the rows of all",
        )


_Part: TypeAlias = tuple[str, str, JSON]
"""A field that says where an object writes: its name, a word for it, its default."""


class _Holder(Struct, frozen=True):
    """A field with variants, and the parts of its places by tag.

    An address alone does not say where the data behind it is kept: tags with fewer than two parts
    are left out.
    """

    name: str
    variant: Variant
    parts: Mapping[str, tuple[_Part, ...]]

    @classmethod
    def of(cls, field: Field, variant: Variant) -> _Holder:
        """Return the places of a field."""
        parts: dict[str, tuple[_Part, ...]] = {}
        for tag, words in variant.places.items():
            if len(words) >= _LEAST_PARTS:
                defaults = {below.name: below.default for below in variant.variants.get(tag, ())}
                parts[tag] = tuple(
                    (name, word, defaults.get(name, MISSING)) for name, word in words.items()
                )
        return cls(field.name, variant, parts)

    def place(self, declared: JSON, live: JSON) -> Place | None:
        """Return where an object writes, None if that is unknown. Live values count if undeclared.

        A secret reference can't be compared with a live value, so its place is unknown.
        """
        outer, live_outer = _mapping(declared), _mapping(live)
        tag = outer.get(self.variant.tag, MISSING)
        parts = self.parts.get(str(tag), ())
        is_same = live_outer.get(self.variant.tag, MISSING) == tag
        body = _mapping(outer.get(self.variant.body))
        live_body = _mapping(live_outer.get(self.variant.body) if is_same else None)
        place: list[tuple[str, str]] = []
        for name, word, default in parts:
            value = body[name] if name in body else live_body.get(name)
            if value is None:
                value = default
            if isinstance(value, (str, int)):
                place.append((word, str(value)))
            elif value is not None and value is not MISSING:
                return None
        return tuple(place) if len(place) >= _LEAST_PARTS else None


def _places(
    holders: Iterable[_Holder], declared: Mapping[str, JSON], live: LiveObject | None
) -> Iterator[Place]:
    for holder in holders:
        current = live.body.get(holder.name) if live is not None else None
        place = holder.place(declared.get(holder.name), current)
        if place is not None:
            yield place


def _mapping(value: JSON) -> Mapping[str, JSON]:
    # dict first, since an abstract class is ten times slower.
    return value if isinstance(value, (dict, Mapping)) else {}
