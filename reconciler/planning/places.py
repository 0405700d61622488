"""Where objects send, what they export, where their credentials go, and what of it is new.

docs/output.md has the rule. Everything is compared by live ids.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cached_property
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconciler.kinds import behaviour_of
from reconciler.model.kind import Action, Kind, Variant, filled
from reconciler.model.live import LiveObject
from reconciler.model.plan import Change, NewPlace, Novelty
from reconciler.model.resource import Resource
from reconciler.model.schemas import (
    OpenObject,
    canonical_host,
    canonical_text,
    looks_like_address,
    looks_secret,
)
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
from reconciler.planning.compare import comparable, is_default, live_fields, with_live_values
from reconciler.planning.integrations import resolved
from reconciler.planning.inventory import Applied, ids_of
from reconciler.planning.match import Match, Matching

# A dotted name, an IP address, HOST:PORT, USER@HOST, //HOST or \\HOST, anywhere in a text.
_ADDRESS = re.compile(r"//|\\\\|@|::|[^\W\d_][\w-]*:\d|[\w-]\.[\w-]*[^\W\d_]|(?:\d+\.){3}\d")
_ALL = frozenset({"*"})
"""The secrets of a type that is unknown."""
_HOSTS = ("host", "endpoint", "address")
PARENT = "source"
"""The word for the parent whose data an object exports."""
INSIDE = ("prefix", "database", "schema", "dataset", "table")
"""Words for parts of a place that are counted, not listed, where the place is new."""

Parts: TypeAlias = tuple[tuple[str, str], ...]
"""Words for the parts of a place, with their values, the address first."""
_Key: TypeAlias = tuple[str, ...]
"""A place, or a place with what is exported to it."""
_Applied: TypeAlias = tuple[Resource, Applied, LiveObject | None, JSONObject]
"""An applied declaration, its entry and live object, and its body with live ignored values."""
_Sender: TypeAlias = tuple[str, "Places", LiveObject | JSONObject]
"""An id, the places of its kind, and the live object or the body that was applied."""
_REACHING = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.UNPAUSE)
_MOST_FORMER = 2


class Place(NamedTuple):
    """Exactly where an object writes: the field with variants, its tag, and the parts.

    `is_exact`: data of two objects there is mixed. Behind a mere address may be many places.
    """

    field: str
    tag: str
    parts: Parts
    is_exact: bool


class Reach(Struct, frozen=True):
    """Where an object sends, and what.

    places
        Where its data goes, the main place first.
    data
        What it exports, compared and shown: what differs from everything of the default.
    address
        Where its credentials are sent.
    inside
        Where it writes inside of the first place, such as `prefix web/`.
    secrets
        The names of the secrets that it may store, `*` for those of an unknown type.
    """

    places: Mapping[str, Novelty] = {}
    data: Mapping[str, str] = {}
    address: str = ""
    inside: Sequence[str] = ()
    secrets: AbstractSet[str] = frozenset()

    @property
    def exported(self) -> str:
        """What it exports, as text."""
        return ", ".join(self.data.values()) or "everything"

    @property
    def keys(self) -> Iterator[_Key]:
        """Every place, alone and with the data."""
        for place in self.places:
            yield (place,)
            yield (place, "", *self.data)


class Places(Struct, frozen=True):
    """The places of one kind, made once for ten thousand objects.

    `parts` are the names, words and defaults of its fields by tag, `others` the names of fields
    below which other addresses are.
    """

    kind: Kind
    name: str
    variant: Variant
    parts: Mapping[str, Sequence[tuple[str, str, str]]]
    others: Mapping[str, AbstractSet[str]]

    @classmethod
    def of(cls, kind: Kind) -> Places:
        """Return the places of a kind, whose objects send nowhere if it has no variants."""
        name, variant = next(((f.name, v) for f, v in kind.variants), ("", Variant("", "", {})))
        parts, others = {}, {}
        for tag, fields in variant.variants.items():
            named, words = {item.name: item for item in fields}, variant.places.get(tag, {})
            parts[tag] = [(n, w, str(comparable(named[n], None) or "")) for n, w in words.items()]
            others[tag] = {
                name
                for name in named.keys() - words.keys()
                if looks_like_address(name) or isinstance(named[name].type, OpenObject)
            }
        return cls(kind, name, variant, parts, others)

    def of_body(self, body: JSONObject) -> Iterator[Place]:
        """Yield where an object writes exactly. A secret equals no live value."""
        outer = mapping_of(body.get(self.name))
        if parts := self._parts(outer):
            tag = str(outer.get(self.variant.tag))
            yield Place(self.name, tag, parts, len(self.parts[tag]) > 1)

    def _parts(self, outer: JSONObject) -> Parts:
        tag, config = str(outer.get(self.variant.tag)), mapping_of(outer.get(self.variant.body))
        given = [(word, config.get(n), text) for n, word, text in self.parts.get(tag, ())]
        if extra := self.variant.addressed_by.get(tag):
            given.append((extra, outer.get(extra), ""))
        parts = [(word, default if v is None else _part(word, v)) for word, v, default in given]
        has_address = parts and (parts[0][1] or (extra and parts[-1][1]))
        return tuple((word, text) for word, text in parts if text) if has_address else ()

    def reach(self, body: JSONObject) -> Reach:
        """Return where an object sends and what, by a body with the names of fields."""
        overlap, variant = behaviour_of(self.kind).overlap, self.variant
        exported = (self._exported(path, body) for path in (*overlap.source, *overlap.selection))
        data = dict(sorted(filter(None, exported), key=lambda item: len(item[1])))
        if (value := body.get(self.name)) is None:
            return Reach(data=data)
        outer, parts = mapping_of(value), dict(self._parts(mapping_of(value)))
        tag = str(outer.get(variant.tag))
        is_known = tag in self.parts
        others = dict(self._others(tag, mapping_of(outer.get(variant.body))))
        hosts = [text for text, novelty in others.items() if novelty is Novelty.HOST]
        sort, *form = variant.outermost.get(tag, ("host",))
        main, endpoint = filled(form, parts).removeprefix(" by "), parts.get("endpoint")
        held = {e.name: f"{e.name} {outer[e.name]}" for e in variant.extras if outer.get(e.name)}
        address = [main] if main and sort == "host" else [endpoint] if main else hosts
        if address != [main]:
            address += [text for name, text in held.items() if name in parts or not is_known]
        novelty = Novelty.HOST if endpoint else Novelty(sort)
        places = {main: Novelty.INTEGRATION if held.keys() & parts else novelty} if main else {}
        beside = {text: Novelty.INTEGRATION for name, text in held.items() if name not in parts}
        places |= others | beside
        return Reach(
            places if places or is_known else {tag: Novelty.HOST},
            data,
            ", ".join(filter(None, address)) or tag,
            [f"{word} {text}" for word, text in parts.items() if word in INSIDE],
            {item.name for item in variant.fields_of(value) if item.secret} if is_known else _ALL,
        )

    def _others(self, tag: str, config: JSONObject) -> Iterator[tuple[str, Novelty]]:
        """Yield the addresses, buckets and roles that are no parts, at any depth.

        Those of an unknown type are in any field, and in keys. Secret addresses do not count.
        """
        names = self.others.get(tag, config.keys()) & config.keys()
        for path, leaf in leaves({name: config[name] for name in sorted(names)}) if names else ():
            words = [part for part in path if isinstance(part, str)]
            name, text = words[-1], canonical_host(_shown(leaf))
            hosts = [_shown(word) for word in words if _ADDRESS.search(word)]
            is_address, is_secret = looks_like_address(name), looks_secret(name)
            is_value = leaf not in (None, "") and leaf.__class__ is not bool
            is_text = not isinstance(leaf, (int, float))
            if is_value and is_secret:
                if len(path) > 1 and not (is_address or isinstance(leaf, SecretRef)):
                    yield f"{name} {text}", Novelty.INTEGRATION
            elif is_value and not is_address and "bucket" in name:
                yield f"s3://{text}", Novelty.BUCKET
            elif is_value and (is_address or (is_text and _ADDRESS.search(text))):
                hosts.append(text)
            yield from ((f"{tag} {host}", Novelty.HOST) for host in hosts)

    def _exported(self, path: Path, body: JSONObject) -> tuple[str, str] | None:
        """Return the value at a path of what is exported, to compare and to show, or None."""
        value = value_at(body, path)
        field = self.kind.field_at(path, body) if value is not MISSING and value else None
        if field is None or value == field.default or is_default(field, value):
            return None
        wanted = comparable(field, value)
        if field.verbatim:
            tables = ", ".join(behaviour_of(self.kind).overlap.tables(str(value)))
            return str(wanted), f"query over {tables or '?'}: {' '.join(str(value).split())}"
        items = wanted if isinstance(wanted, list) else [wanted]
        texts = [item if isinstance(item, str) else canonical_text(item) for item in items]
        text = f"{str(path[-1]).replace('_', ' ')} {', '.join(texts)}"
        return text, text


def _part(word: str, value: JSON) -> str:
    """Return the text that all texts for the same part have."""
    text = _shown(value)
    if word == "prefix":
        return f"{folder}/" if (folder := text.strip("/")) else ""
    text = canonical_host(text) if word in _HOSTS else text
    return text.rstrip("/") if word == "endpoint" else text


def _shown(value: JSON) -> str:
    """Return a value as text, of a secret the reference, of a literal the host of an address.

    Servers return some numbers as text.
    """
    if isinstance(value, SecretRef) and value.is_literal:
        hosts = filter(None, (source.argument.partition("=")[2] for source in value.sources))
        return f"({' '.join(('literal', *hosts))})"
    return str(value)


# With a dict, since cached properties need one.
class Known(Struct, frozen=True, dict=True):
    """What is known of places: from the objects of live projects, and from what was applied."""

    matching: Matching
    now: datetime
    _users: dict[str, dict[_Key, set[str]]] = {}

    @cached_property
    def of_kind(self) -> Mapping[str, Places]:
        """The places of each kind."""
        return {name: Places.of(kind) for name, kind in self.matching.kinds.items()}

    @cached_property
    def _applied(self) -> Sequence[_Applied]:
        """The applied declarations of what sends."""
        matching, applied = self.matching, []
        pairs = {**matching.removed, **matching.matches}.values()
        owners = {pair.live.identity: pair for pair in pairs if pair.live is not None}
        for address, entry in matching.inventory.entries.items():
            places, was = self.of_kind[address.kind], entry.was
            if places.name and was is not None:
                pair = owners.get((address.kind, entry.id))
                live = matching.live.by_identity.get((address.kind, entry.id))
                spec = resolved(pair, was, matching.live, as_live=True).spec if pair else was.spec
                if was.lifecycle.ignore_changes:
                    spec = with_live_values(spec, _fields(places, live), was.lifecycle)
                applied.append((was, entry, live, spec))
        return applied

    @cached_property
    def _senders(self) -> Mapping[str, Sequence[_Sender]]:
        """What sends, by the id of the project."""
        senders = defaultdict[str, list[_Sender]](list)
        for was, entry, live, spec in self._applied:
            parent_id = live.parent_id if live is not None else entry.parent
            senders[parent_id or ""].append((entry.id, self.of_kind[was.address.kind], spec))
        for item in self.matching.live.by_identity.values():
            senders[item.parent_id or ""].append((item.id, self.of_kind[item.kind], item))
        return senders

    def users(self, parent_id: str | None) -> Mapping[_Key, AbstractSet[str]]:
        """Return the ids of what runs in a project by what it sends, now or as applied."""
        parent = parent_id or ""
        if parent not in self._users:
            users = self._users[parent] = defaultdict[_Key, set[str]](set)
            for live_id, places, item in self._senders.get(parent, ()):
                body = _fields(places, item) if isinstance(item, LiveObject) else item
                for key in places.reach(body).keys if self._runs(places, body) else ():
                    users[key].add(live_id)
        return self._users[parent]

    @cached_property
    def receivers(self) -> Mapping[SecretSource | str, Collection[str]]:
        """Where declarations and their objects send a secret, by its reference and content."""
        receivers: dict[SecretSource | str, dict[str, None]] = defaultdict(dict)
        for was, entry, live, spec in self._applied:
            refs = [ref for _, ref in secret_refs(was.spec)]
            places, bodies = self.of_kind[was.address.kind], [spec] if refs else []
            bodies += [_fields(places, live)] if refs and live is not None else []
            texts = dict.fromkeys(places.reach(body).address for body in bodies)
            for source in (source for ref in refs for source in ref.sources):
                for item in ids_of(source, entry.contents):
                    receivers[item] |= texts
        return receivers

    def _runs(self, places: Places, body: JSONObject) -> bool:
        """Return whether an object runs, as far as a body says."""
        switches = (item.name for item in places.kind.fields if item.toggle is not None)
        is_off = any(body.get(name) is True for name in switches)
        return not (is_off or behaviour_of(places.kind).overlap.has_ended(body, self.now))

    def reached(
        self, change: Change, match: Match, applied: Resource | None
    ) -> tuple[tuple[str, ...], tuple[NewPlace, ...]]:
        """Return what a change reaches, and what of it is new, the worst first.

        `applied` is how the object was applied, None if that is not known.
        """
        places, live = self.of_kind[match.kind.name], match.live
        if change.action not in _REACHING:
            return (), ()
        fields = _fields(places, live)
        was = places.reach(applied.spec if applied is not None else {})
        after = _after(change, match, fields)
        reach = places.reach(after)
        reach = replace(reach, address=reach.address or str(change.address))
        again = live is not None and not self._runs(places, fields)
        again = again and (change.action is Action.UNPAUSE or self._runs(places, after))
        judge = _Judge(self, change, match, reach, places.reach(fields), was)
        new = [*judge.references(), *judge.objects()]
        new += (*judge.secrets(), *judge.places(again=again)) if places.name else ()
        new.sort(key=lambda item: item.sort.rank)
        return (*reach.places, *reach.data.values()), tuple(new)


class _Judge(Struct, frozen=True):
    """One change: what it reaches, what its object reaches now, and what it did as applied."""

    known: Known
    change: Change
    match: Match
    reach: Reach
    own: Reach
    was: Reach

    def places(self, *, again: bool) -> Iterator[NewPlace]:
        """Yield the places that are new to the project, and data that is new to a place."""
        change, live, reach, own = self.change, self.match.live, self.reach, self.own
        # A project that does not exist yet sends nothing.
        is_created = self.match.resource.parent is not None and change.parent_id is None
        is_other = again or self._is_taken_over
        is_own = live is not None and not is_other and live.parent_id == change.parent_id
        but = {live.id} if live is not None and is_other else set()

        def is_new(*key: str) -> bool:
            if is_created or (is_own and key in {*own.keys}):
                return is_created
            return self.known.users(change.parent_id).get(key, set()) <= but

        new = [place for place in reach.places if is_new(place)]
        source = (f"{PARENT} {change.parent_name}",) if change.parent_name else ()
        for place in new:
            inside = (*source, *reach.inside)
            yield NewPlace(reach.places[place], place, reach.address, inside=inside, again=again)
        others = [place for place in reach.places if is_new(place, "", *reach.data)]
        if others := [place for place in others if reach.data or place not in new]:
            differs = bool(own.places) and own.data.keys() != reach.data.keys()
            before, inside = (own.exported, ()) if differs else ("", source)
            sent = (", ".join(others), reach.address, reach.exported, before, inside, again)
            yield NewPlace(Novelty.QUERY, *sent)

    @property
    def _is_taken_over(self) -> bool:
        """Whether a pinned object was not applied for this address: its places are no own ones."""
        live, inventory = self.match.live, self.known.matching.inventory
        if live is None or self.match.resource.pinned_id is None or inventory.record is None:
            return False
        return inventory.by_object.get(live.identity) != self.change.address

    def objects(self) -> Iterator[NewPlace]:
        """Yield the recorded object that gets another name, or the one in place of it."""
        live, change, matching = self.match.live, self.change, self.known.matching
        entry = matching.inventory.entries.get(change.address)
        if entry is None or live is None or self.match.resource.pinned_id is not None:
            return
        host, shown = f"{live.kind} {live.id}", f"{_in_quotes(live.name)} (id {live.id})"
        if live.id == entry.id and any(item.path == ("name",) for item in change.fields):
            yield NewPlace(Novelty.OBJECT, _in_quotes(change.name), host, shown)
        elif (live.kind, entry.id) not in matching.live.by_identity:
            former = f"{_in_quotes(entry.name)} (id {entry.id})"
            yield NewPlace(Novelty.OBJECT, shown, host, former)

    def secrets(self) -> Iterator[NewPlace]:
        """Yield the known secrets that are sent to another address, and stored credentials."""
        notes = [note for note in self.change.secrets if note.use.sent]
        sources = dict.fromkeys(source for note in notes for source in note.ref.sources)
        former = {source.origin: self._former(source) for source in sources}
        sent = [origin for origin, texts in former.items() if texts]
        what = [f"{'secret' if len(sent) == 1 else 'secrets'} {', '.join(sent)}"] if sent else []
        # The service uses at another address what it stores.
        given = {str(note.path[-1]) for note in notes}
        kept = (self.own.secrets & self.reach.secrets) - given - (_ALL if given else set())
        is_moved = self.reach.address not in (self.own.address, self.was.address)
        if self.change.action is Action.UPDATE and kept and is_moved:
            what.append("stored credentials")
        if what:
            others = dict.fromkeys(text for texts in former.values() for text in texts)
            is_moved = self.own.address not in ("", self.reach.address)
            before = self.own.address if is_moved else ", ".join([*others][:_MOST_FORMER])
            address = self.reach.address
            yield NewPlace(Novelty.SECRET, address, address, " and ".join(what), before)

    def _former(self, source: SecretSource) -> Collection[str]:
        """Return where a known secret is sent, none if it is unknown or sent there already."""
        known, reach, own = self.known, self.reach, self.own
        inventory = known.matching.inventory
        if inventory.record is None:
            return [own.address] if own.address != reach.address and own.secrets else ()
        ids = ids_of(source, inventory.contents)
        receivers = [text for item in ids for text in known.receivers.get(item, ())]
        return () if reach.address in receivers else receivers

    def references(self) -> Iterator[NewPlace]:
        """Yield the references of secrets that differ from the applied ones.

        Where a place is a mere address, a secret says where behind it: one that no applied
        declaration uses, by its reference or its content, counts, too.
        """
        known, reach, inventory = self.known, self.reach, self.known.matching.inventory
        is_address = not reach.inside and (reach.address,) in known.users(self.change.parent_id)
        for note in self.change.secrets if inventory.record is not None else ():
            ids = {item for ref in note.ref.sources for item in ids_of(ref, inventory.contents)}
            is_other = note.former or (is_address and ids - known.receivers.keys())
            if note.use.sent and note.ref.sources and is_other:
                names = ", ".join(source.origin for source in note.ref.sources)
                what, address = f"{note.path[-1]} {names}", reach.address
                yield NewPlace(Novelty.REFERENCE, address, address, what, note.former)


def _in_quotes(name: str) -> str:
    """Return a name in quotes that it does not contain, if there are such. Writers escape it."""
    mark = '"' if "'" in name else "'"
    return f"{mark}{name}{mark}"


def _fields(places: Places, live: LiveObject | None) -> JSONObject:
    """Return the live fields by name, without those that are absent."""
    return live_fields(places.kind, live.body) if live is not None else {}


def patched(kind: Kind, sent: JSONObject, live: JSONObject) -> dict[str, JSON]:
    """Return the fields of an object after a PATCH, which keeps what it does not contain."""
    whole = {**live, **sent}
    for field, variant in kind.variants:
        old, new = (mapping_of(body.get(field.name)) for body in (live, sent))
        body = {**mapping_of(old.get(variant.body)), **mapping_of(new.get(variant.body))}
        whole[field.name] = {**old, **new, variant.body: body}
    return whole


def _after(change: Change, match: Match, live: JSONObject) -> JSONObject:
    """Return the fields of an object after its resource is applied."""
    names, given = match.kind.names_sent, {**(change.body or {}), **(change.after_create or {})}
    sent = {names[name]: value for name, value in given.items() if name in names}
    sent = dict(match.resource.spec) if change.body is None else sent
    is_new = change.action in (Action.CREATE, Action.REPLACE)
    return sent if is_new else patched(match.kind, sent, live)
