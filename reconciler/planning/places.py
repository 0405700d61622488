"""Where objects write, what they export, and where their credentials are sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.change import Novelty
from reconciler.model.comparison import comparable, is_default
from reconciler.model.field_types import OpenObject, canonical_text
from reconciler.model.kind import Field, Kind, Variant
from reconciler.model.schemas import canonical_host, looks_like_address, looks_secret
from reconciler.model.values import (
    JSON,
    MISSING,
    JSONObject,
    Path,
    SecretRef,
    leaves,
    mapping_of,
    value_at,
)

_TABLE = r"\b(?:FROM|JOIN) +([\w.$]+)"
UNKNOWN = "*"
"""The name of all secrets of a type that is unknown."""
_PLACES = (Novelty.BUCKET, Novelty.INTEGRATION)
_HOSTS = ("host", "endpoint", "address")
PARENT = "source"
"""The word for the parent whose data an object exports."""
INSIDE = ("prefix", "database", "schema", "dataset", "table")
"""Words for parts of a place that are counted, not listed, where the place is new."""

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


class Reach(Struct, frozen=True):
    """What an object reaches and collects.

    data, shown
        What it exports, to compare and to show: what differs from everything of the default.
    places
        Where it writes, without what is inside of it.
    address, tokens
        Where its credentials are sent, as far as answers have it, and the secret rest.
    inside
        Where it writes inside of the first place, such as `prefix web/`.
    secrets
        The names of the secrets that it may store, `UNKNOWN` for those of an unknown type.
    """

    data: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    places: dict[str, Novelty] = {}
    address: str = ""
    tokens: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    secrets: AbstractSet[str] = frozenset()

    @property
    def pair(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Where and what."""
        return tuple(self.places), self.data

    @property
    def receiver(self) -> str:
        """Where its credentials are sent, with secret addresses."""
        return ", ".join((self.address, *self.tokens))


class Places(Struct, frozen=True):
    """The places of one kind. Made once, since ten thousand objects are asked for theirs."""

    kind: Kind
    holders: tuple[_Holder, ...]

    @classmethod
    def of(cls, kind: Kind) -> Places:
        """Return the places of a kind."""
        return cls(kind, tuple(_Holder.of(field, variant) for field, variant in kind.variants))

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

    def reach(self, body: JSONObject) -> Reach:
        """Return what an object reaches and collects, by a body with the names of fields."""
        overlap = self.kind.behaviour().overlap
        paths = (*overlap.source, *overlap.selection)
        data = [item for path in paths if (item := self._exported(path, body)) is not None]
        data.sort(key=lambda item: len(item[1]))
        reach = Reach(tuple(key for key, _ in data), tuple(text for _, text in data))
        for holder in self.holders:
            if (value := body.get(holder.field.name)) is not None:
                reach = holder.reach(value, reach)
        return reach

    def _exported(self, path: Path, body: JSONObject) -> tuple[str, str] | None:
        """Return the value at a path of what is exported, to compare and to show, or None."""
        value = value_at(body, path)
        if value is MISSING or not value:
            return None
        field = self.kind.field_at(path, body)
        if field is None or value == field.default or is_default(field, value):
            return None
        wanted = comparable(field, value)
        if field.verbatim:
            tables = ", ".join(dict.fromkeys(re.findall(_TABLE, str(wanted), re.IGNORECASE)))
            return str(wanted), f"query over {tables or '?'}: {' '.join(str(value).split())}"
        items = wanted if isinstance(wanted, list) else [wanted]
        texts = [item if isinstance(item, str) else canonical_text(item) for item in items]
        text = f"{str(path[-1]).replace('_', ' ')} {', '.join(texts)}"
        return text, text


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
        if not isinstance(value, (str, int)):
            return None
        # Servers return some numbers as text.
        return self._same(str(value))

    def _same(self, text: str) -> str:
        """Return the text that all texts for the same have."""
        if self.word == "prefix":
            return f"{folder}/" if (folder := text.strip("/")) else ""
        if self.word in _HOSTS:
            text = canonical_host(text)
        return text.rstrip("/") if self.word == "endpoint" else text


class _Holder(Struct, frozen=True):
    """A field with variants: the parts of its places by tag, and the extras that hold addresses.

    `others` are the names of the fields below which other addresses are, `secrets` of those that
    are secret.
    """

    field: Field
    variant: Variant
    parts: Mapping[str, tuple[_Part, ...]]
    extras: Mapping[str, _Part]
    others: Mapping[str, AbstractSet[str]]
    secrets: Mapping[str, AbstractSet[str]]

    @classmethod
    def of(cls, field: Field, variant: Variant) -> _Holder:
        """Return the places of a field."""
        others = {
            tag: {item.name for item in fields if isinstance(item.type, OpenObject)}
            | {item.name for item in fields if looks_like_address(item.name)}
            - variant.places.get(tag, {}).keys()
            for tag, fields in variant.variants.items()
        }
        parts: dict[str, tuple[_Part, ...]] = {}
        for tag, words in variant.places.items():
            fields = {below.name: below for below in variant.variants.get(tag, ())}
            parts[tag] = tuple(_Part.of(fields[name], word) for name, word in words.items())
        extras = {extra.name: extra for extra in variant.extras}
        held = {tag: _Part.of(extras[name], name) for tag, name in variant.addressed_by.items()}
        secrets = {
            tag: {item.name for item in fields if item.secret}
            for tag, fields in variant.variants.items()
        }
        return cls(field, variant, parts, held, others, secrets)

    def place(self, declared: JSON, live: JSON) -> Place | None:
        """Return where an object writes, None if that is unknown."""
        outer, live_outer = mapping_of(declared), mapping_of(live)
        tag = outer.get(self.variant.tag, MISSING)
        parts = self.parts.get(str(tag))
        if not parts:
            return None
        if live_outer.get(self.variant.tag, MISSING) != tag:
            live_outer = {}
        extra = self.extras.get(str(tag))
        held = extra.text(outer, live_outer) if extra is not None else ""
        body = mapping_of(outer.get(self.variant.body))
        live_body = mapping_of(live_outer.get(self.variant.body))
        values = [part.text(body, live_body) for part in parts]
        if held is None or None in values or not (values[0] or held):
            return None
        place = [(part.word, text) for part, text in zip(parts, values, strict=True) if text]
        if extra is not None and held:
            place.append((extra.word, held))
        return Place(self.field.name, str(tag), tuple(place), len(parts) > 1)

    def reach(self, value: JSON, reach: Reach) -> Reach:
        """Return what is reached, with the places and the address of a value."""
        outer, tag = mapping_of(value), str(value_at(value, (self.variant.tag,)))
        config = mapping_of(outer.get(self.variant.body))
        parts, below = self._parts(tag, outer, config), [*self._below(tag, config)]
        names = [extra.name for extra in self.variant.extras if outer.get(extra.name)]
        held = [f"{name} {outer[name]}" for name in names]
        by = held if tag in self.extras or tag not in self.variant.variants else []
        hosts = ", ".join(text for sort, text in below if sort is Novelty.HOST)
        word, form = self.variant.outermost.get(next(iter(parts), ""), ("host", ""))
        sort = Novelty(word)
        main = form.format_map(parts) or (f"{tag} {hosts}" if hosts else "")
        endpoint = parts.get("endpoint", "")
        address = [main if sort is Novelty.HOST else "", endpoint, *by]
        if endpoint:
            sort, main = Novelty.HOST, f"{main} at {endpoint}"
        if by:
            sort, main = Novelty.INTEGRATION, " by ".join(filter(None, [main, *by]))
        texts = {main: sort, **{text: sort for sort, text in below if sort in _PLACES}}
        texts |= dict.fromkeys(held if not by else (), Novelty.INTEGRATION)
        return replace(
            reach,
            places=reach.places | {text: sort for text, sort in texts.items() if text},
            address=", ".join(filter(None, address)) or tag,
            tokens=tuple(text for sort, text in below if sort is Novelty.SECRET),
            inside=tuple(f"{word} {text}" for word, text in parts.items() if word in INSIDE),
            secrets=self.secrets.get(tag, {UNKNOWN}),
        )

    def _parts(self, tag: str, outer: JSONObject, config: JSONObject) -> Mapping[str, str]:
        """Return the parts of a place by their words, of secrets the references."""
        named = self.variant.places.get(tag, {})
        shown = {name: _shown(config[name]) for name in named if name in config}
        place = self.place({**outer, self.variant.body: shown}, None)
        return dict(place.parts) if place is not None else {}

    def _below(self, tag: str, config: Mapping[str, JSON]) -> Iterator[tuple[Novelty, str]]:
        """Yield the addresses, buckets and integrations that are no parts of a place.

        They are found by name, at any depth. An address that is secret is in no answer.
        """
        names = self.others.get(tag, config.keys()) & config.keys()
        for path, leaf in leaves({name: config[name] for name in sorted(names)}) if names else ():
            name = next(part for part in reversed(path) if isinstance(part, str))
            if leaf in (None, ""):
                continue
            if looks_like_address(name):
                sort = Novelty.SECRET if looks_secret(name) else Novelty.HOST
                yield sort, canonical_host(str(_shown(leaf)))
            elif len(path) > 1 and looks_secret(name) and not isinstance(leaf, SecretRef):
                yield Novelty.INTEGRATION, f"{name} {leaf}"
            elif "bucket" in name:
                yield Novelty.BUCKET, f"s3://{leaf}"


def _shown(value: JSON) -> JSON:
    """Return a value, of a secret the reference, of a literal the host if it is an address.

    Letters that look like those of ASCII are escaped.
    """
    if isinstance(value, str):
        return value.encode("ascii", "backslashreplace").decode()
    if value.__class__ is not SecretRef:
        return value
    if not value.is_literal:
        return str(value)
    hosts = filter(None, (source.argument.partition("=")[2] for source in value.sources))
    return f"({' '.join(('literal', *hosts))})"
