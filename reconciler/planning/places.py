"""Where objects send, what they export, where their credentials go, and what of it is new.

Everything is a text, and compared by live ids.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import TypeAlias

from msgspec import Struct

from reconciler.kinds import behaviour_of
from reconciler.model.kind import Action, Kind, Variant, filled
from reconciler.model.live import Identity
from reconciler.model.plan import Change, NewPlace, Novelty
from reconciler.model.resource import Resource
from reconciler.model.schemas import (
    canonical_host,
    canonical_text,
    looks_like_address,
    looks_secret,
)
from reconciler.model.values import JSON, JSONObject, Path, SecretRef, leaves, mapping_of, value_at
from reconciler.planning.compare import (
    comparable,
    is_default,
    live_fields,
    patched,
    with_live_values,
)
from reconciler.planning.integrations import resolved
from reconciler.planning.match import Match, Matching, SecretId, ids_of

# A dotted name, an IP address, HOST:PORT, USER@HOST, //HOST or \\HOST, anywhere in a text.
_ADDRESS = re.compile(r"//|\\\\|@|::|[^\W\d_][\w-]*:\d|[\w-]\.[\w-]*[^\W\d_]|(?:\d+\.){3}\d")
_ANY = "*"
"""The secrets of a type that is unknown."""
_HOSTS = ("host", "endpoint", "address")
PARENT = "source"
"""The word for the parent whose data an object exports."""
INSIDE = ("prefix", "database", "schema", "dataset", "table")
"""Words for parts of a place that are counted, not listed, where the place is new."""

Parts: TypeAlias = tuple[tuple[str, str], ...]
"""Words for the parts of a place, with their values, the address first."""
_Key: TypeAlias = tuple[str, tuple[str, ...] | None]
"""A place, or a place with what is exported to it."""
_Sender: TypeAlias = tuple[str, Kind, JSONObject, AbstractSet[SecretId]]
"""An id, the body of a live object or of what was applied, and what its secrets are known by."""
_NOWHERE = Variant("", "", {})
_REACHING = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.UNPAUSE)
_MOST_FORMER = 2


class Reach(Struct, frozen=True):
    """Where an object sends, and what.

    places
        Where its data goes, the main place first.
    data
        What it exports, compared and shown: what differs from everything of the default.
    addresses
        Where its credentials are sent.
    inside
        Where it writes inside of the first place, such as `prefix web/`.
    secrets
        The names of the secrets that it may store, `*` for those of an unknown type.
    """

    places: Mapping[str, Novelty] = {}
    data: Mapping[str, str] = {}
    addresses: Sequence[str] = ()
    inside: Sequence[str] = ()
    secrets: AbstractSet[str] = frozenset()

    @property
    def exported(self) -> str:
        """What it exports, as text."""
        return ", ".join(self.data.values()) or "everything"

    @property
    def keys(self) -> AbstractSet[_Key]:
        """Every place, alone and with the data."""
        return {(place, data) for place in self.places for data in (None, tuple(self.data))}


def _sending(kind: Kind) -> tuple[str, Variant]:
    """Return the field that says where objects send, with its types."""
    return next(((field.name, variant) for field, variant in kind.variants), ("", _NOWHERE))


def place_of(kind: Kind, body: JSONObject) -> tuple[str, Parts]:
    """Return where an object writes: the type, and the parts. A secret equals no live value.

    There are no parts if no address is known.
    """
    name, variant = _sending(kind)
    outer = mapping_of(body.get(name))
    tag, config = str(outer.get(variant.tag)), mapping_of(outer.get(variant.body))
    fields, words = variant.named_fields_of(outer), variant.places.get(tag, {})
    first, extra = next(iter(words.values()), ""), variant.addressed_by.get(tag, "")
    parts = {word: _part(word, comparable(fields[n], config.get(n))) for n, word in words.items()}
    parts |= {extra: _part(extra, outer.get(extra))} if extra else {}
    has_address = parts.get(first) or parts.get(extra)
    return tag, tuple((word, text) for word, text in parts.items() if text and has_address)


def reach_of(kind: Kind, body: JSONObject) -> Reach:
    """Return where an object sends and what, by its live body or the fields of a declaration."""
    fields, overlap = live_fields(kind, body), behaviour_of(kind).overlap
    exported = (_exported(kind, path, fields) for path in (*overlap.source, *overlap.selection))
    data = dict(sorted(filter(None, exported), key=lambda item: len(item[1])))
    name, variant = _sending(kind)
    if fields.get(name) is None:
        return Reach(data=data)
    outer, (tag, given) = mapping_of(fields[name]), place_of(kind, fields)
    parts, others = dict(given), dict(_others(variant, tag, outer))
    sort, *form = variant.outermost.get(tag, ("",))
    unknown = {} if tag in variant.variants else {tag: Novelty.HOST}
    places = others or unknown
    # A bucket has no credentials of its own.
    addresses = [text for text, sort in others.items() if sort is not Novelty.BUCKET]
    if main := filled(form, parts).removeprefix(" by "):
        novelty = Novelty.HOST if "endpoint" in parts else Novelty(sort)
        novelty = Novelty.INTEGRATION if variant.addressed_by.get(tag) in parts else novelty
        places = {main: novelty, **others}
        address = filled(form if sort == Novelty.HOST.value else form[1:], parts)
        addresses = [re.sub("^ (at|by) ", "", address)] if address else []
    inside = [f"{word} {text}" for word, text in parts.items() if word in INSIDE]
    secrets = [_ANY] if unknown else [item.name for item in variant.fields_of(outer) if item.secret]
    return Reach(places, data, addresses or [tag], inside, frozenset(secrets))


def _others(variant: Variant, tag: str, outer: JSONObject) -> Iterator[tuple[str, Novelty]]:
    """Yield the addresses, buckets, roles and integrations that are no parts, at any depth.

    Those of an unknown type are in any field, and in keys. Secret addresses do not count.
    """
    config = mapping_of(outer.get(variant.body))
    names = config.keys() - variant.places.get(tag, {}).keys()
    if tag in variant.variants:
        # Others are left from another type.
        names &= variant.named_fields_of(outer).keys()
        names = {n for n in names if looks_like_address(n) or isinstance(config[n], Mapping)}
    for path, leaf in leaves({name: config[name] for name in sorted(names)}) if names else ():
        words = [part for part in path if isinstance(part, str)]
        yield from ((f"{tag} {word}", Novelty.HOST) for word in words if _ADDRESS.search(word))
        text, is_address = canonical_host(_shown(leaf)), looks_like_address(words[-1])
        if leaf in (None, "") or leaf.__class__ is bool:
            continue
        if looks_secret(words[-1]):
            # The id of an integration, or a role. Any other value may be a secret.
            is_id = text.isdigit() and tag in variant.variants
            if len(path) > 1 and (is_id or text.startswith("arn:")):
                yield f"{words[-1]} {text}", Novelty.INTEGRATION
        elif not is_address and "bucket" in words[-1]:
            yield f"s3://{text}", Novelty.BUCKET
        elif is_address or (leaf.__class__ is not float and _ADDRESS.search(text)):
            yield f"{tag} {text}", Novelty.HOST
    for extra in variant.extras:
        if outer.get(extra.name) and extra.name != variant.addressed_by.get(tag):
            yield f"{extra.name} {outer[extra.name]}", Novelty.INTEGRATION


def _exported(kind: Kind, path: Path, body: JSONObject) -> tuple[str, str] | None:
    """Return the value at a path of what is exported, to compare and to show, or None."""
    value, field = value_at(body, path), kind.field_at(path, body)
    if field is None or not value or is_default(field, value):
        return None
    wanted = comparable(field, value)
    if field.verbatim:
        tables = ", ".join(behaviour_of(kind).overlap.tables(str(value)))
        return str(wanted), f"query over {tables or '?'}: {' '.join(str(value).split())}"
    items = wanted if isinstance(wanted, list) else [wanted]
    texts = [item if isinstance(item, str) else canonical_text(item) for item in items]
    text = f"{str(path[-1]).replace('_', ' ')} {', '.join(texts)}"
    return text, text


def _part(word: str, value: JSON) -> str:
    """Return the text that all texts for the same part have, "" for none."""
    text = _shown(value) if value is not None else ""
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
    _users: dict[str | None, dict[_Key, set[str]]] = {}

    @cached_property
    def _senders(self) -> Mapping[str | None, Sequence[_Sender]]:
        """What sends, by the id of the project: what was applied, and the live objects."""
        matching, used = self.matching, dict[Identity, AbstractSet[SecretId]]()
        senders = defaultdict[str | None, list[_Sender]](list)
        for address, entry in matching.inventory.entries.items():
            was, kind, identity = entry.was, matching.kinds[address.kind], (address.kind, entry.id)
            used[identity] = matching.secrets_of(address, entry)
            if was is None or not kind.variants:
                continue
            live = matching.live.by_identity.get(identity)
            pair = Match(was, kind, live, live.parent_id if live is not None else entry.parent)
            spec = resolved(pair, was, matching.live, as_live=True).spec
            if was.lifecycle.ignore_changes:
                fields = live_fields(kind, live.body) if live is not None else {}
                spec = with_live_values(spec, fields, was.lifecycle)
            senders[pair.parent_id].append((entry.id, kind, spec, used[identity]))
        for item in matching.live.by_identity.values():
            kind, secrets = matching.kinds[item.kind], used.get(item.identity, frozenset())
            senders[item.parent_id].append((item.id, kind, item.body, secrets))
        return senders

    def users(self, parent_id: str | None) -> Mapping[_Key, AbstractSet[str]]:
        """Return the ids of what runs in a project by what it sends, now or as applied."""
        if parent_id not in self._users:
            users = self._users[parent_id] = defaultdict[_Key, set[str]](set)
            for live_id, kind, body, _ in self._senders.get(parent_id, ()):
                for key in reach_of(kind, body).keys if self._runs(kind, body) else ():
                    users[key].add(live_id)
        return self._users[parent_id]

    @cached_property
    def receivers(self) -> Mapping[SecretId, Collection[str]]:
        """Where declarations and their objects send a secret, by its reference and content."""
        receivers = defaultdict[SecretId, dict[str, None]](dict)
        for _, kind, body, secrets in chain(*self._senders.values()):
            addresses = reach_of(kind, body).addresses if secrets else ()
            for item in secrets:
                receivers[item].update(dict.fromkeys(addresses))
        return receivers

    def _runs(self, kind: Kind, body: JSONObject) -> bool:
        """Return whether an object runs, as far as a body says."""
        is_off = any(body.get(item.name) is True for item in kind.fields if item.toggle is not None)
        return not (is_off or behaviour_of(kind).overlap.has_ended(body, self.now))

    def reached(
        self, change: Change, match: Match, applied: Resource | None
    ) -> tuple[tuple[str, ...], tuple[NewPlace, ...]]:
        """Return what a change reaches, and what of it is new, the worst first.

        `applied` is how the object was applied, None if that is not known.
        """
        if change.action not in _REACHING:
            return (), ()
        kind, live = match.kind, match.live.body if match.live is not None else {}
        after = _after(change, match, live_fields(kind, live))
        again = match.live is not None and not self._runs(kind, live)
        # The service may get another end by a change of its own.
        again = again and (change.action is Action.UNPAUSE or self._runs(kind, after))
        was = reach_of(kind, applied.spec if applied is not None else {})
        judge = _Judge(self, change, match, reach_of(kind, after), reach_of(kind, live), was)
        new = [*judge.secrets(), *judge.places(again=again)]
        new.sort(key=lambda item: item.sort.rank)
        return (*judge.reach.places, *judge.reach.data.values()), tuple(new)


class _Judge(Struct, frozen=True):
    """One change: what it reaches, what its object reaches now, and what it did as applied."""

    known: Known
    change: Change
    match: Match
    reach: Reach
    own: Reach
    was: Reach

    def places(self, *, again: bool) -> Iterator[NewPlace]:
        """Yield the places that are new to the project, and data that is new to a place.

        The places of an object count as its own ones if it runs, or stays paused, in this project,
        unless an `id` takes it over that was not applied for this address.
        """
        change, live, reach, own = self.change, self.match.live, self.reach, self.own
        inventory, pinned = self.known.matching.inventory, self.match.resource.pinned_id
        recorded = inventory.by_object.get((change.address.kind, change.live_id or ""))
        is_taken = pinned is not None and inventory.record is not None
        is_other = again or (is_taken and recorded != change.address)
        is_own = live is not None and not is_other and live.parent_id == change.parent_id
        but = {change.live_id or ""} if is_other else set()
        keys = reach.keys - own.keys if is_own else reach.keys
        # A project that does not exist yet sends nothing. To ask what another one sends takes time.
        users = self.known.users(change.parent_id or self.match.parent_address) if keys else {}
        new = {key for key in keys if users.get(key, set()) <= but}
        source = (f"{PARENT} {change.parent_name}",) if change.parent_name else ()
        inside, data = (*source, *reach.inside), tuple(reach.data)
        address = ", ".join(reach.addresses)
        for place in [place for place in reach.places if (place, None) in new]:
            sort = reach.places[place]
            yield NewPlace(sort, place, address, inside=inside, again=again)
        if places := [
            at for at in reach.places if (at, data) in new and (data or (at, None) not in new)
        ]:
            differs = bool(own.places) and own.data.keys() != reach.data.keys()
            before, inside = (own.exported, ()) if differs else ("", source)
            sent = (", ".join(places), address, reach.exported, before, inside, again)
            yield NewPlace(Novelty.QUERY, *sent)

    def secrets(self) -> Iterator[NewPlace]:
        """Yield secrets that go to another address, and references that differ from the applied.

        The service uses what it stores at another address, too. Where a place is a mere address, a
        secret says where behind it: one that no applied declaration uses counts, too.
        """
        change, own, known = self.change, self.own, self.known
        reach, inventory = self.reach, known.matching.inventory
        address, former = ", ".join(reach.addresses) or str(change.address), dict[str, list[str]]()
        is_mere = not reach.inside and (address, None) in known.users(change.parent_id)
        stored = own.addresses if inventory.record is None and own.secrets else ()
        notes = [note for note in change.secrets if note.use.sent]
        for note in notes:
            ids = {of.origin: ids_of(of, inventory.contents) for of in note.ref.sources}
            for origin, items in ids.items():
                former[origin] = [to for item in items for to in known.receivers.get(item, stored)]
            is_unknown = is_mere and not known.receivers.keys() >= {*chain(*ids.values())}
            if ids and inventory.record is not None and (note.former or is_unknown):
                text = f"{note.path[-1]} {', '.join(ids)}"
                yield NewPlace(Novelty.REFERENCE, address, address, text, note.former)
        sent = {name: to for name, to in former.items() if to and not {*reach.addresses} <= {*to}}
        what = [f"{'secret' if len(sent) == 1 else 'secrets'} {', '.join(sent)}"] if sent else []
        given = {str(note.path[-1]) for note in notes}
        kept = (own.secrets & reach.secrets) - given - ({_ANY} if given else set())
        before = [*own.addresses, *self.was.addresses]
        if change.action is Action.UPDATE and kept and not {*reach.addresses} <= {*before}:
            what.append("stored credentials")
            sent[what[-1]] = before
        if what:
            known_to_all = set.intersection(*map(set, sent.values()))
            new = ", ".join(at for at in reach.addresses if at not in known_to_all)
            is_other = own.addresses and own.addresses != reach.addresses
            others = dict.fromkeys(own.addresses if is_other else chain(*sent.values()))
            before = [at for at in others if at not in reach.addresses][:_MOST_FORMER]
            yield NewPlace(Novelty.SECRET, new, new, " and ".join(what), ", ".join(before))


def _after(change: Change, match: Match, live: JSONObject) -> JSONObject:
    """Return the fields of an object after its resource is applied."""
    names, given = match.kind.names_sent, {**(change.body or {}), **(change.after_create or {})}
    sent = {names[name]: value for name, value in given.items() if name in names}
    sent = sent or dict(match.resource.spec)
    is_new = change.action in (Action.CREATE, Action.REPLACE)
    return patched(match.kind, sent, {} if is_new else live)
