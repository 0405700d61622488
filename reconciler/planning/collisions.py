"""Find objects that write to the same place: the same table, bucket and prefix, or container."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

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
    managed: dict[Place, list[Match]] = {}
    variants = {name: tuple(kind.variants) for name, kind in kinds.items()}
    for match in matching.matches.values():
        if match.resource.state is not State.ABSENT:
            for place in _places(variants[match.kind.name], match.resource.spec, match.live):
                managed.setdefault(place, []).append(match)
    users = {
        place: [match.resource.address for match in matches] for place, matches in managed.items()
    }
    for item in unmanaged:
        for place in _places(variants[item.kind], item.body, None) if managed else ():
            names = {match.resource.name for match in managed.get(place, ())}
            if names and item.name.strip() not in names:
                users[place].append(Address.of_unmanaged(item.kind, item.id))
    shared = [(sorted(addresses), place) for place, addresses in users.items()]
    for addresses, place in sorted(item for item in shared if len(item[0]) > 1)[:_MOST_NOTES]:
        parts = ", ".join(f"{word} {quoted(value)}" for word, value in place)
        yield Note(
            "same-place",
            f"{listed(addresses, _MOST_LISTED)} write to the same place ({parts}): files may be "
            "overwritten, and a table gets the rows of all",
        )


def _places(
    variants: Iterable[tuple[Field, Variant]], declared: Mapping[str, JSON], live: LiveObject | None
) -> Iterator[Place]:
    for field, variant in variants:
        current = live.body.get(field.name) if live is not None else None
        place = _place(variant, declared.get(field.name), current)
        if place is not None:
            yield place


def _place(variant: Variant, declared: JSON, live: JSON) -> Place | None:
    """Return where an object writes, None if that is unknown. Live values count if undeclared.

    An address alone does not say where the data behind it is kept.
    """
    outer, live_outer = _mapping(declared), _mapping(live)
    tag = outer.get(variant.tag, MISSING)
    words = variant.places.get(str(tag), {})
    if len(words) < _LEAST_PARTS:
        return None
    is_same = live_outer.get(variant.tag, MISSING) == tag
    body = _mapping(outer.get(variant.body))
    live_body = _mapping(live_outer.get(variant.body) if is_same else None)
    parts = []
    for name, word in words.items():
        value = body[name] if name in body else live_body.get(name)
        if value is None:
            value = _default(variant, declared, name)
        if isinstance(value, (str, int)):
            parts.append((word, str(value)))
        elif value is not None and value is not MISSING:
            # A secret reference can't be compared with a live value.
            return None
    return tuple(parts) if len(parts) >= _LEAST_PARTS else None


def _default(variant: Variant, value: JSON, name: str) -> JSON:
    return next(
        (field.default for field in variant.fields_of(value) if field.name == name), MISSING
    )


def _mapping(value: JSON) -> Mapping[str, JSON]:
    # dict first, since an abstract class is ten times slower.
    return value if isinstance(value, (dict, Mapping)) else {}
