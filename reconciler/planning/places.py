"""Where objects write: the same table, the same bucket and prefix, the same address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from reconciler.model.comparison import comparable
from reconciler.model.kind import Field, Kind, Variant
from reconciler.model.values import JSON, MISSING, JSONObject

Parts: TypeAlias = tuple[tuple[str, str], ...]
"""Words for the parts of a place, with their values, the address first."""


class Place(NamedTuple):
    """A place: the field with variants that names it, its tag, and its parts.

    `is_exact`: data of two objects there is mixed. Behind a mere address may be many places.
    """

    field: str
    tag: str
    parts: Parts
    is_exact: bool


class Places(Struct, frozen=True):
    """The places of one kind. Made once, since ten thousand objects are asked for theirs."""

    holders: tuple[_Holder, ...]

    @classmethod
    def of(cls, kind: Kind) -> Places:
        """Return the places of a kind."""
        return cls(tuple(_Holder.of(field, variant) for field, variant in kind.variants))

    def of_body(self, body: JSONObject, live: JSONObject | None = None) -> Iterator[Place]:
        """Yield where an object writes. Values of `live` count where a declared body has none.

        A secret reference can't be compared with a live value, so its place is unknown.
        """
        for holder in self.holders:
            name = holder.field.name
            declared = body.get(name) if live is not None else holder.field.live_value(body)
            place = holder.place(declared, live.get(name) if live else None)
            if place is not None:
                yield place


class _Part(NamedTuple):
    """A field that says where an object writes, a word for it, and its default as text."""

    field: Field
    word: str
    default: str

    @classmethod
    def of(cls, field: Field, word: str) -> _Part:
        """Return the part of a field."""
        default = comparable(field, None)
        return cls(field, word, "" if default is None else str(default))

    def text(self, declared: Mapping[str, JSON], live: Mapping[str, JSON]) -> str | None:
        """Return the value as text, "" without one, None if it can't be compared."""
        name = self.field.name
        value = declared[name] if name in declared else live.get(name)
        if value is None:
            return self.default
        # Servers return some numbers as text.
        return str(value) if isinstance(value, (str, int)) else None


class _Holder(Struct, frozen=True):
    """A field with variants: the parts of its places by tag, and the extras that hold addresses."""

    field: Field
    variant: Variant
    parts: Mapping[str, tuple[_Part, ...]]
    extras: Mapping[str, _Part]

    @classmethod
    def of(cls, field: Field, variant: Variant) -> _Holder:
        """Return the places of a field."""
        parts: dict[str, tuple[_Part, ...]] = {}
        for tag, words in variant.places.items():
            fields = {below.name: below for below in variant.variants.get(tag, ())}
            parts[tag] = tuple(_Part.of(fields[name], word) for name, word in words.items())
        extras = {extra.name: extra for extra in variant.extras}
        held = {tag: _Part.of(extras[name], name) for tag, name in variant.addressed_by.items()}
        return cls(field, variant, parts, held)

    def place(self, declared: JSON, live: JSON) -> Place | None:
        """Return where an object writes, None if that is unknown."""
        outer, live_outer = _mapping(declared), _mapping(live)
        tag = outer.get(self.variant.tag, MISSING)
        parts = self.parts.get(str(tag))
        if not parts:
            return None
        if live_outer.get(self.variant.tag, MISSING) != tag:
            live_outer = {}
        extra = self.extras.get(str(tag))
        held = extra.text(outer, live_outer) if extra is not None else ""
        body = _mapping(outer.get(self.variant.body))
        live_body = _mapping(live_outer.get(self.variant.body))
        values = [part.text(body, live_body) for part in parts]
        if held is None or None in values or not (values[0] or held):
            return None
        place = [(part.word, text) for part, text in zip(parts, values, strict=True) if text]
        if extra is not None and held:
            place.append((extra.word, held))
        return Place(self.field.name, str(tag), tuple(place), len(parts) > 1)


def _mapping(value: JSON) -> Mapping[str, JSON]:
    # dict first, since an abstract class is ten times slower.
    return value if isinstance(value, (dict, Mapping)) else {}
