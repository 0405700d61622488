"""Where objects write, what they export, where their credentials go, and what of it is new."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cached_property
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.comparison import comparable, is_default, live_fields
from reconciler.model.field_types import OpenObject, canonical_text
from reconciler.model.kind import Action, Field, Kind, Variant
from reconciler.model.plan import Change, NewPlace, Novelty, SecretUse
from reconciler.model.resource import Resource, State
from reconciler.model.schemas import canonical_host, looks_like_address, looks_secret
from reconciler.model.values import (
    JSON,
    MISSING,
    JSONObject,
    Path,
    SecretRef,
    SecretSource,
    leaves,
    mapping_of,
    secret_refs,
    value_at,
)
from reconciler.planning.differ import with_live_values
from reconciler.planning.integrations import resolved
from reconciler.planning.matcher import Match, Matching

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
_REACHING = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.UNPAUSE)
_MOST_FORMER = 2


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

    def tokens(self, body: JSONObject) -> tuple[str, ...]:
        """Return the secret addresses of a body with the names of fields."""
        for holder in reversed(self.holders):
            if (value := body.get(holder.field.name)) is not None:
                return holder.tokens(value)
        return ()

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
    parts: dict[str, tuple[_Part, ...]]
    extras: Mapping[str, _Part]
    others: dict[str, AbstractSet[str]]
    secrets: dict[str, AbstractSet[str]]

    @classmethod
    def of(cls, field: Field, variant: Variant) -> _Holder:
        """Return the places of a field."""
        extras = {extra.name: extra for extra in variant.extras}
        held = {tag: _Part.of(extras[name], name) for tag, name in variant.addressed_by.items()}
        holder = cls(field, variant, {}, held, {}, {})
        for tag, fields in variant.variants.items():
            words, named = variant.places.get(tag, {}), {item.name: item for item in fields}
            holder.parts[tag] = tuple(_Part.of(named[name], word) for name, word in words.items())
            holder.others[tag] = {
                name
                for name, item in named.items()
                if isinstance(item.type, OpenObject)
                or (looks_like_address(name) and name not in words)
            }
            holder.secrets[tag] = {name for name, item in named.items() if item.secret}
        return holder

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
        names = [extra.name for extra in self.variant.extras]
        held = [f"{name} {outer[name]}" for name in names if outer.get(name)]
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
            tokens=_tokens(below),
            inside=tuple(f"{word} {text}" for word, text in parts.items() if word in INSIDE),
            secrets=self.secrets.get(tag, {UNKNOWN}),
        )

    def tokens(self, value: JSON) -> tuple[str, ...]:
        """Return the secret addresses of a value."""
        tag = str(value_at(value, (self.variant.tag,)))
        return _tokens(self._below(tag, mapping_of(mapping_of(value).get(self.variant.body))))

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


def _tokens(below: Iterable[tuple[Novelty, str]]) -> tuple[str, ...]:
    return tuple(text for sort, text in below if sort is Novelty.SECRET)


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


_Key: TypeAlias = str | tuple[object, ...]
"""A place, or places with what of which parent is exported to them."""
_Users: TypeAlias = Mapping[_Key, Sequence[Address]]


# With a dict, since cached properties need one.
class Known(Struct, frozen=True, dict=True):
    """What is known of places: from what was applied, and from the live objects of resources.

    `only_live`: what the base declares is known as far as it is live.
    """

    matching: Matching
    now: datetime
    only_live: bool = False

    @cached_property
    def is_first(self) -> bool:
        """Whether neither the base nor live state reaches anything."""
        matches = self.matching.matches.values()
        is_live = any(match.live and any(match.kind.variants) for match in matches)
        return not (is_live or self.index[0])

    @cached_property
    def of_kind(self) -> Mapping[str, Places]:
        """The places of each kind."""
        return {name: Places.of(kind) for name, kind in self.matching.kinds.items()}

    @cached_property
    def index(self) -> tuple[_Users, Mapping[SecretSource, Collection[str]]]:
        """What the objects of the base that run reach, and where their secrets are sent.

        What the base declares and no apply sends is not known: absent and ignored values.
        """
        users: dict[_Key, list[Address]] = defaultdict(list)
        receivers: dict[SecretSource, dict[str, None]] = defaultdict(dict)
        matching, inventory = self.matching, self.matching.inventory
        pairs = {**matching.removed, **matching.matches}.values() if inventory is not None else ()
        owners = {pair.live.identity: pair for pair in pairs if pair.live is not None}
        for address, resource in inventory.applied.items() if inventory is not None else ():
            places = self.of_kind.get(address.kind)
            if places is None or not places.holders or resource.state is State.ABSENT:
                continue
            entry = inventory.entries[address]  # type: ignore[union-attr]
            match = owners.get((address.kind, entry.id))
            is_live = self.only_live or bool(resource.lifecycle.ignore_changes)
            live = _fields(match) if match and is_live else {}
            declared = resolved(match, resource, matching.live, as_live=True) if match else resource
            spec, lifecycle = live if self.only_live else declared.spec, resource.lifecycle
            reach = places.reach(
                with_live_values(spec, live, lifecycle) if lifecycle.ignore_changes else spec
            )
            if self.runs(places.kind, spec):
                users[*reach.pair, entry.parent or ""].append(address)
                for place in reach.places:
                    users[place].append(address)
            for source in _sources(resource):
                receivers[source][reach.receiver] = None
        return users, receivers

    def runs(self, kind: Kind, body: JSONObject) -> bool:
        """Return whether an object runs, as far as a body says."""
        switches = (item.name for item in kind.fields if item.toggle is not None)
        is_off = any(body.get(name) is True for name in switches)
        return not (is_off or kind.behaviour().overlap.has_ended(body, self.now))

    def reached(
        self, change: Change, match: Match, applied: Resource | None
    ) -> tuple[tuple[str, ...], tuple[NewPlace, ...]]:
        """Return what a change reaches, and what of it is new, the worst first.

        `applied` is how the object was applied, None if that is not known.
        """
        kind, places = match.kind, self.of_kind[match.kind.name]
        if change.action not in _REACHING:
            return (), ()
        if not places.holders:
            reach = Reach(address=str(change.address))
            return (), tuple(_Judge(self, change, reach, Reach(), Reach(), None).references())
        live = _fields(match)
        after = _after(change, match, live)
        own = match.live.once(Places.reach, places, live) if match.live is not None else Reach()
        was = places.reach(applied.spec) if applied is not None else Reach()
        # Neither an answer nor a PATCH of other fields has the secret addresses.
        tokens = places.tokens(match.resource.spec) or was.tokens
        reach = replace(places.reach(after), tokens=tokens)
        judge = _Judge(self, change, reach, own, was, applied)
        again = bool(live) and not self.runs(kind, live)
        again = again and (change.action is Action.UNPAUSE or self.runs(kind, after))
        new_places = tuple(judge.places(again=again))
        new = [*judge.secrets(), *judge.references(), *new_places]
        new += [] if self.is_first else judge.data(again=again, has_new_place=bool(new_places))
        return (*reach.places, *reach.shown), tuple(sorted(new, key=lambda item: item.sort.rank))


class _Judge(Struct, frozen=True):
    """One change: what it reaches, what its object reaches now, and what it did at the base."""

    known: Known
    change: Change
    reach: Reach
    own: Reach
    was: Reach
    applied: Resource | None

    def places(self, *, again: bool) -> Iterator[NewPlace]:
        """Yield the places that are new."""
        queries = (", ".join(self.reach.shown),) if self.known.is_first and self.reach.shown else ()
        inside = (*self.reach.inside, *queries)
        for place, sort in self.reach.places.items():
            if self._is_new(place, again=again, is_own=place in self.own.places):
                yield NewPlace(sort, place, self.reach.address, inside=inside, again=again)

    def data(self, *, again: bool, has_new_place: bool) -> Iterator[NewPlace]:
        """Yield what is exported to a place that did not get it.

        `has_new_place`: its places have entries of their own.
        """
        reach, own = self.reach, self.own
        parent, old_parent = self.change.parent_id, self.change.old_parent_id
        is_own = reach.pair == own.pair and old_parent in (None, parent)
        key = (*reach.pair, parent or "")
        if not reach.places or not self._is_new(key, again=again, is_own=is_own):
            return
        is_other = bool(own.places) and own.data != reach.data
        if reach.shown or is_other or not has_new_place:
            text = ", ".join(reach.shown) or "everything"
            text += "" if has_new_place else f" -> {', '.join(reach.places)}"
            before = (", ".join(own.shown) or "everything") if is_other else ""
            is_named = bool(self.change.parent_name) and not is_other
            source = (f"{PARENT} {self.change.parent_name}",) if is_named else ()
            yield NewPlace(Novelty.QUERY, text, reach.address, before, inside=source, again=again)

    def _is_new(self, key: _Key, *, again: bool, is_own: bool) -> bool:
        """Return whether nothing reached it. What does not run did not, so only others count."""
        if is_own and not again:
            return False
        mine = {self.change.address, self.applied.address if self.applied else None}
        users = self.known.index[0].get(key, ())
        return all(again and address in mine for address in users)

    def secrets(self) -> Iterator[NewPlace]:
        """Yield the known secrets that are sent to another address, and stored credentials."""
        has_new_token = self.applied is not None and self.reach.tokens != self.was.tokens
        notes = [note for note in self.change.secrets if note.use.sent or has_new_token]
        sources = dict.fromkeys(source for note in notes for source in note.ref.sources)
        sent = [source for source in sources if self._is_exposed(source)]
        names = ", ".join(source.origin for source in sent)
        what = [f"{'secret' if len(sent) == 1 else 'secrets'} {names}"] if sent else []
        if self.change.action is Action.UPDATE and self._sends_stored():
            what.append("stored credentials")
        if what:
            known = self.known.index[1]
            former = dict.fromkeys(text for source in sent for text in known.get(source, ()))
            is_moved = self.own.address not in ("", self.reach.address)
            before = [self.own.address] if is_moved else list(former)[:_MOST_FORMER]
            text = f"{' and '.join(what)} -> {self.reach.receiver}"
            yield NewPlace(Novelty.SECRET, text, self.reach.address, ", ".join(before))

    def _is_exposed(self, source: SecretSource) -> bool:
        """Return whether a secret is known, and not known to be sent to the address."""
        reach, own, was = self.reach, self.own, self.was
        if self.known.matching.inventory is None:
            return own.address != reach.address and bool(own.secrets)
        receivers = self.known.index[1].get(source)
        if not receivers or reach.receiver in receivers:
            return False
        # The live address counts for what the object stores.
        is_own = self.applied is not None and source in _sources(self.applied)
        return not (is_own and reach.address == own.address and reach.tokens == was.tokens)

    def _sends_stored(self) -> bool:
        """Return whether the service uses credentials at another address that it stores."""
        sent = {str(note.path[-1]) for note in self.change.secrets if note.use.sent}
        kept = (self.own.secrets & self.reach.secrets) - sent - ({UNKNOWN} if sent else set())
        return bool(kept) and self.reach.address not in (self.own.address, self.was.address)

    def references(self) -> Iterator[NewPlace]:
        """Yield the references of secrets that differ from the applied ones.

        Where a place is a mere address, a secret says where behind it: one that is new counts, too.
        """
        sent = [note for note in self.change.secrets if note.use.sent]
        # Most changes send none, and the index of ten thousand objects takes a while.
        users, receivers = self.known.index if sent else ({}, {})
        is_mere = self.reach.address in users and not self.reach.inside
        for note in sent:
            is_new = is_mere and (
                # The content of a tracked file may be another secret under the same reference.
                note.use is SecretUse.RESENT
                or any(source not in receivers for source in note.ref.sources)
            )
            if note.ref.sources and (note.former or is_new):
                names = ", ".join(source.origin for source in note.ref.sources)
                text = f"{note.path[-1]} {names} -> {self.reach.receiver}"
                yield NewPlace(Novelty.REFERENCE, text, self.reach.address, note.former)


def _sources(resource: Resource) -> Iterator[SecretSource]:
    return (source for _, ref in secret_refs(resource.spec) for source in ref.sources)


def _fields(match: Match) -> JSONObject:
    """Return the live fields by name, without those that are absent."""
    return match.live.once(live_fields, match.kind, match.live.body) if match.live else {}


def _after(change: Change, match: Match, live: JSONObject) -> dict[str, JSON]:
    """Return the fields of an object after its resource is applied."""
    names, given = match.kind.names_sent, {**(change.body or {}), **(change.after_create or {})}
    sent = {names[name]: value for name, value in given.items() if name in names}
    if change.body is None:
        sent = dict(match.resource.spec)
    if change.action in (Action.CREATE, Action.REPLACE):
        return sent
    for field, variant in match.kind.variants:
        # A PATCH keeps what it does not contain.
        old, new = (mapping_of(body.get(field.name)) for body in (live, sent))
        body = {**mapping_of(old.get(variant.body)), **mapping_of(new.get(variant.body))}
        sent[field.name] = {**old, **new, variant.body: body}
    return {**live, **sent}
