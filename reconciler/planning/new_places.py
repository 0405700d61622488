"""Find what a change reaches or collects, and neither the git base nor its object does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct

from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.change import Change, NewPlace, Novelty
from reconciler.model.kind import Kind, Variant
from reconciler.model.resource import Resource
from reconciler.model.values import (
    JSON,
    MISSING,
    JSONObject,
    Path,
    SecretSource,
    put_at,
    secret_refs,
)
from reconciler.planning.base import Base
from reconciler.planning.differ import is_ignored
from reconciler.planning.matcher import Match, Matching
from reconciler.planning.places import Places, Reach

_REACHING = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.UNPAUSE)
_MOST_FORMER = 2

_Pair: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


class _Index(Struct, frozen=True):
    """What the git base reaches: the users of each place and pair, and where secrets are sent."""

    users: Mapping[str | _Pair, Sequence[Address]]
    receivers: Mapping[SecretSource, Sequence[str]]


# With a dict, since cached properties need one.
class Known(Struct, frozen=True, dict=True):
    """What is known of places: the git base, and whether anything was managed before."""

    base: Base | None
    kinds: Mapping[str, Kind]
    now: datetime
    is_first: bool = False

    @classmethod
    def of(
        cls, base: Base | None, kinds: Mapping[str, Kind], now: datetime, matching: Matching
    ) -> Known:
        """Return what is known. A plan is the first if nothing that reaches a place is."""
        reaching = {name for name, kind in kinds.items() if any(kind.variants)}
        former = base.desired.resources if base is not None else ()
        live = (match.kind.name for match in matching.matches.values() if match.live is not None)
        is_first = reaching.isdisjoint(address.kind for address in former)
        return cls(base, kinds, now, is_first and reaching.isdisjoint(live))

    @cached_property
    def of_kind(self) -> Mapping[str, Places]:
        """The places of each kind that has any."""
        return {name: Places.of(kind) for name, kind in self.kinds.items() if any(kind.variants)}

    @cached_property
    def index(self) -> _Index:
        """What the git base reaches. What does not run reaches nothing."""
        users: dict[str | _Pair, list[Address]] = defaultdict(list)
        receivers: dict[SecretSource, list[str]] = defaultdict(list)
        for address, resource in self.base.desired.resources.items() if self.base else ():
            if address.kind not in self.of_kind:
                continue
            reach = self.of_kind[address.kind].reach(resource.spec)
            if self.runs(self.kinds[address.kind], resource.spec):
                users[reach.pair].append(address)
                for place in reach.places:
                    users[place].append(address)
            for source in _sources(resource):
                receivers[source].append(reach.receiver)
        return _Index(users, receivers)

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
        kind = match.kind
        if change.action not in _REACHING or kind.name not in self.of_kind:
            return (), ()
        places, live = self.of_kind[kind.name], _fields(match)
        after = _after(change, match, live)
        reach, own = places.reach(after), places.reach(live) if live else Reach()
        was = places.reach(at_base.spec) if at_base is not None else Reach()
        judge = _Judge(self, change, match, reach, own, was, at_base)
        again = change.action is not Action.REPLACE and bool(live) and not self.runs(kind, live)
        again = again and (change.action is Action.UNPAUSE or self.runs(kind, after))
        new = [*judge.secrets(), *judge.references(), *judge.places(again=again)]
        new += [] if self.is_first else judge.data(again=again)
        return (*reach.places, *reach.shown), tuple(sorted(new, key=lambda item: item.sort.rank))


class _Judge(Struct, frozen=True):
    """One change: what it reaches, what its object reaches now, and what it did at the base."""

    known: Known
    change: Change
    match: Match
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

    def data(self, *, again: bool) -> Iterator[NewPlace]:
        """Yield what is exported to a place that did not get it."""
        reach, own = self.reach, self.own
        is_own = reach.pair == own.pair
        if not reach.places or not self._is_new(reach.pair, again=again, is_own=is_own):
            return
        is_other = bool(own.places) and own.data != reach.data
        has_new_place = any(True for _ in self.places(again=again))
        if reach.shown or is_other or not has_new_place:
            text = ", ".join(reach.shown) or "everything"
            text += "" if has_new_place else f" -> {', '.join(reach.places)}"
            before = (", ".join(own.shown) or "everything") if is_other else ""
            yield NewPlace(Novelty.QUERY, text, reach.address, before, again=again)

    def _is_new(self, key: str | _Pair, *, again: bool, is_own: bool) -> bool:
        """Return whether nothing reached it. What does not run did not, so only others count."""
        if is_own and not again:
            return False
        mine = {self.change.address, self.at_base.address if self.at_base else None}
        users = self.known.index.users.get(key, ())
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
        what += ["stored credentials"] if self._sends_stored() else []
        if what:
            receivers = self.known.index.receivers
            former = dict.fromkeys(text for source in sent for text in receivers.get(source, ()))
            before = [self.own.address] if self.own.address else list(former)[:_MOST_FORMER]
            text = f"{' and '.join(what)} -> {self.reach.receiver}"
            yield NewPlace(Novelty.SECRET, text, self.reach.address, ", ".join(before))

    def _is_exposed(self, source: SecretSource) -> bool:
        """Return whether a secret is known, and not known to be sent to the address."""
        reach, own, was = self.reach, self.own, self.was
        if self.known.base is None:
            return own.address != reach.address and any(self._stored(set()))
        receivers = self.known.index.receivers.get(source)
        if not receivers or reach.receiver in receivers:
            return False
        # The live address counts for what the object stores.
        is_own = self.at_base is not None and source in _sources(self.at_base)
        return not (is_own and reach.address == own.address and reach.tokens == was.tokens)

    def _sends_stored(self) -> bool:
        """Return whether an update makes the service use credentials that it stores elsewhere."""
        if self.change.action is not Action.UPDATE:
            return False
        if self.reach.address in (self.own.address, self.was.address):
            return False
        sent = {note.path for note in self.change.secrets if note.use.sent}
        return any(self._stored(sent, self.match.resource.spec))

    def _stored(self, sent: AbstractSet[Path], spec: JSONObject | None = None) -> Iterator[str]:
        """Yield the secrets that the object may store and a change does not send.

        With a `spec`, only those that it uses, too. An object of an unknown type may store any.
        """
        live = _fields(self.match)
        for field, variant in self.match.kind.variants if live else ():
            before = variant.fields_of(live.get(field.name))
            after = variant.fields_of(spec.get(field.name)) if spec is not None else before
            if not (before and after) and not any(path[0] == field.name for path in sent):
                yield field.name
            used = {item.name for item in after if item.secret}
            kept = {item.name for item in before if item.secret} & used
            yield from (name for name in kept if (field.name, variant.body, name) not in sent)

    def references(self) -> Iterator[NewPlace]:
        """Yield the references of secrets that differ from those of the git base."""
        for note in self.change.secrets:
            if note.use.sent and note.former:
                text = f"{note.path[-1]} {_named(note.ref.sources)} -> {self.reach.receiver}"
                yield NewPlace(Novelty.REFERENCE, text, self.reach.address, note.former)


def _sources(resource: Resource) -> Iterator[SecretSource]:
    return (source for _, ref in secret_refs(resource.spec) for source in ref.sources)


def _named(sources: Iterable[SecretSource]) -> str:
    """Return where secrets come from. The place of a literal is not shown."""
    pairs = ((item.source, item.argument) for item in sources)
    return ", ".join(name if name == "literal" else f"{name}:{text}" for name, text in pairs)


def _fields(match: Match) -> dict[str, JSON]:
    """Return the live fields by name, without those that are absent."""
    body = match.live.body if match.live is not None else {}
    values = ((field.name, field.live_value(body)) for field in match.kind.fields if body)
    return {name: value for name, value in values if value is not MISSING}


def _after(change: Change, match: Match, live: JSONObject) -> dict[str, JSON]:
    """Return the fields of an object after its resource is applied."""
    resource, is_new = match.resource, change.action in (Action.CREATE, Action.REPLACE)
    after = {**live, **resource.spec} if is_new else dict(live)
    if not is_new:
        for name, value in resource.spec.items():
            if not is_ignored((name,), resource.lifecycle):
                after[name] = value
        for field, variant in match.kind.variants:
            name = field.name
            given = (live.get(name), resource.spec.get(name))
            after[name] = _merged(*given, (name,), variant, resource)
    for changed in change.fields if change.action is not Action.CREATE else ():
        if not changed.secret and (len(changed.path) == 1 or not is_new):
            put_at(after, changed.path, None if changed.after is MISSING else changed.after)
    return after


def _merged(
    old: JSON, new: JSON, path: tuple[str, ...], variant: Variant, resource: Resource
) -> dict[str, JSON]:
    """Return a value with a variant as a PATCH leaves it: without what `ignore_changes` names."""
    merged = dict(old) if isinstance(old, Mapping) else {}
    for name, value in new.items() if isinstance(new, Mapping) else ():
        below = (*path, name)
        if name == variant.body and len(path) == 1:
            merged[name] = _merged(merged.get(name), value, below, variant, resource)
        elif not is_ignored(below, resource.lifecycle):
            merged[name] = value
    return merged
