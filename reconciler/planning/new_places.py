"""Find what a change reaches or collects, and neither the git base nor its object does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.change import Change, NewPlace, Novelty
from reconciler.model.kind import Kind
from reconciler.model.resource import Lifecycle, Resource, State
from reconciler.model.values import (
    JSON,
    MISSING,
    JSONObject,
    Path,
    SecretRef,
    SecretSource,
    mapping_of,
    secret_refs,
)
from reconciler.planning.base import Base
from reconciler.planning.differ import is_ignored
from reconciler.planning.matcher import Match
from reconciler.planning.places import PARENT, UNKNOWN, Places, Reach

_REACHING = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.UNPAUSE)
_MOST_FORMER = 2

_Key: TypeAlias = str | tuple[object, ...]
"""A place, or places with what of which parent is exported to them."""
_Users: TypeAlias = Mapping[_Key, Sequence[Address]]


# With a dict, since cached properties need one.
class Known(Struct, frozen=True, dict=True):
    """What is known of places: from the git base, and from the live objects of resources."""

    base: Base | None
    kinds: Mapping[str, Kind]
    now: datetime
    matches: Mapping[Address, Match]

    @cached_property
    def is_first(self) -> bool:
        """Whether neither the base nor live state reaches anything."""
        live = any(match.live and any(match.kind.variants) for match in self.matches.values())
        return not (live or self.index[0])

    @cached_property
    def of_kind(self) -> Mapping[str, Places]:
        """The places of each kind that has any."""
        return {name: Places.of(kind) for name, kind in self.kinds.items() if any(kind.variants)}

    @cached_property
    def index(self) -> tuple[_Users, Mapping[SecretSource, Sequence[str]]]:
        """What the objects of the base that run reach, and where their secrets are sent.

        What the base declares and no apply sends is not known: absent and ignored values.
        """
        users: dict[_Key, list[Address]] = defaultdict(list)
        receivers: dict[SecretSource, list[str]] = defaultdict(list)
        for address, resource in self.base.desired.resources.items() if self.base else ():
            places = self.of_kind.get(address.kind)
            if places is None or resource.state is State.ABSENT:
                continue
            match = self.matches.get(address)
            live = _fields(match) if match else {}
            spec, lifecycle = resource.spec, resource.lifecycle
            reach = places.reach(_sent(spec, live, lifecycle) if lifecycle.ignore_changes else spec)
            if self.runs(places.kind, spec):
                users[*reach.pair, str(resource.parent)].append(address)
                for place in reach.places:
                    users[place].append(address)
            for source in _sources(resource):
                receivers[source].append(reach.receiver)
        return users, receivers

    def runs(self, kind: Kind, body: JSONObject) -> bool:
        """Return whether an object runs, as far as a body says."""
        switches = (item.name for item in kind.fields if item.toggle is not None)
        is_off = any(body.get(name) is True for name in switches)
        return not (is_off or kind.behaviour().overlap.has_ended(body, self.now))

    def reached(
        self, change: Change, match: Match, at_base: Resource | None
    ) -> tuple[tuple[str, ...], tuple[NewPlace, ...]]:
        """Return what a change reaches, and what of it is new, the worst first.

        `at_base` is how the git base declares the object, None if it does not.
        """
        kind, places = match.kind, self.of_kind.get(match.kind.name)
        if change.action not in _REACHING:
            return (), ()
        if places is None:
            reach = Reach(address=str(change.address))
            return (), tuple(_Judge(self, change, reach, Reach(), Reach(), None).references())
        live = _fields(match)
        after = _after(change, match, live)
        own = places.reach(live)
        was = places.reach(at_base.spec) if at_base is not None else Reach()
        # Neither an answer nor a PATCH of other fields has the secret addresses.
        tokens = places.reach(match.resource.spec).tokens or was.tokens
        reach = replace(places.reach(after), tokens=tokens)
        judge = _Judge(self, change, reach, own, was, at_base)
        again = change.action is not Action.REPLACE and bool(live) and not self.runs(kind, live)
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
    at_base: Resource | None

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
        key = (*reach.pair, str(self.change.parent))
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
        mine = {self.change.address, self.at_base.address if self.at_base else None}
        users = self.known.index[0].get(key, ())
        return all(again and address in mine for address in users)

    def secrets(self) -> Iterator[NewPlace]:
        """Yield the known secrets that are sent to another address, and stored credentials."""
        is_moved = self.at_base is not None and self.reach.tokens != self.was.tokens
        sent = dict.fromkeys(
            source
            for note in self.change.secrets
            if note.use.sent or is_moved
            for source in note.ref.sources
            if self._is_exposed(source)
        )
        what = [f"{'secret' if len(sent) == 1 else 'secrets'} {_named(sent)}"] if sent else []
        if self.change.action is Action.UPDATE and self._sends_stored():
            what.append("stored credentials")
        if what:
            known = self.known.index[1]
            former = dict.fromkeys(text for source in sent for text in known.get(source, ()))
            before = [self.own.address] if self.own.address else list(former)[:_MOST_FORMER]
            text = f"{' and '.join(what)} -> {self.reach.receiver}"
            yield NewPlace(Novelty.SECRET, text, self.reach.address, ", ".join(before))

    def _is_exposed(self, source: SecretSource) -> bool:
        """Return whether a secret is known, and not known to be sent to the address."""
        reach, own, was = self.reach, self.own, self.was
        if self.known.base is None:
            return own.address != reach.address and bool(own.secrets)
        receivers = self.known.index[1].get(source)
        if not receivers or reach.receiver in receivers:
            return False
        # The live address counts for what the object stores.
        is_own = self.at_base is not None and source in _sources(self.at_base)
        return not (is_own and reach.address == own.address and reach.tokens == was.tokens)

    def _sends_stored(self) -> bool:
        """Return whether the service uses credentials at another address that it stores."""
        sent = {str(note.path[-1]) for note in self.change.secrets if note.use.sent}
        kept = (self.own.secrets & self.reach.secrets) - sent - ({UNKNOWN} if sent else set())
        return bool(kept) and self.reach.address not in (self.own.address, self.was.address)

    def references(self) -> Iterator[NewPlace]:
        """Yield the references of secrets that differ from those of the git base.

        Where a place is a mere address, a secret says where behind it: one that is new counts, too.
        """
        users, receivers = self.known.index
        is_mere = self.reach.address in users and not self.reach.inside
        for note in self.change.secrets:
            is_new = is_mere and any(source not in receivers for source in note.ref.sources)
            if note.use.sent and (note.former or is_new):
                text = f"{note.path[-1]} {_named(note.ref.sources)} -> {self.reach.receiver}"
                yield NewPlace(Novelty.REFERENCE, text, self.reach.address, note.former)


def _sent(
    body: JSONObject, live: JSONObject, lifecycle: Lifecycle, path: Path = ()
) -> dict[str, JSON]:
    """Return what is sent of a body, with live values in place of those that are ignored."""
    sent: dict[str, JSON] = {}
    for name, value in body.items():
        inside = (*path, name)
        if isinstance(value, Mapping):
            sent[name] = _sent(value, mapping_of(live.get(name)), lifecycle, inside)
        elif isinstance(value, SecretRef) or not is_ignored(inside, lifecycle):
            sent[name] = value
        elif name in live:
            sent[name] = live[name]
    return sent


def _sources(resource: Resource) -> Iterator[SecretSource]:
    return (source for _, ref in secret_refs(resource.spec) for source in ref.sources)


def _named(sources: Iterable[SecretSource]) -> str:
    return ", ".join(source.origin for source in sources)


def _fields(match: Match) -> dict[str, JSON]:
    """Return the live fields by name, without those that are absent."""
    body = match.live.body if match.live is not None else {}
    values = ((field.name, field.live_value(body)) for field in match.kind.fields)
    return {name: value for name, value in values if value is not MISSING}


def _after(change: Change, match: Match, live: JSONObject) -> dict[str, JSON]:
    """Return the fields of an object after its resource is applied."""
    fields, given = match.kind.fields, {**(change.body or {}), **(change.after_create or {})}
    sent = {
        item.name: given[name] for item in fields for name in item.sent_as(None) if name in given
    }
    if change.body is None or change.new_id is not None:
        sent = dict(match.resource.spec)
    if change.action in (Action.CREATE, Action.REPLACE):
        return sent
    for field, variant in match.kind.variants:
        # A PATCH keeps what it does not contain.
        old, new = (mapping_of(body.get(field.name)) for body in (live, sent))
        body = {**mapping_of(old.get(variant.body)), **mapping_of(new.get(variant.body))}
        sent[field.name] = {**old, **new, variant.body: body}
    return {**live, **sent}
