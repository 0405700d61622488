"""List the scopes in which a run creates objects, with the fewest calls."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import NamedTuple

from msgspec import Struct

from reconciler.client import Transport, together
from reconciler.errors import Forbidden, NotFound, ServiceError
from reconciler.kinds import all_kinds, kinds_by_name
from reconciler.model.kind import containers
from reconciler.model.live import Live, LiveObject
from reconciler.model.request import Routes
from reconciler.reading import list_scope, read_object

LONGEST_AGE = 30.0
"""Seconds after which a list is read again before the next create of its scope."""
_PAGE = 100


class Scope(NamedTuple):
    """The place in which a name matters: a kind, below one parent or in the organization."""

    kind: str
    parent_id: str | None


class Listing(Struct, frozen=True):
    """The objects of a scope. `at` is when reading began, in seconds of the clock."""

    at: float
    by_id: Mapping[str, LiveObject]
    by_name: Mapping[str, Sequence[LiveObject]]

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the objects."""
        return frozenset(self.by_id)

    def named(self, *names: str) -> list[LiveObject]:
        """Return the objects with one of the names, apart from whitespace around them."""
        stripped = dict.fromkeys(name.strip() for name in names)
        return [item for name in stripped for item in self.by_name.get(name, ())]


@dataclass(slots=True)
class Scopes:
    """Reads lists of scopes. `live` is what the plan was made from.

    `created` are the ids that this run created, by kind. `pending` counts the creates of each scope
    that are still to be sent, `checks` the objects that are still to be checked. `hidden` are the
    fields that a list of a kind does not show, as far as is known.
    """

    transport: Transport
    organization: str
    live: Live
    created: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    pending: Counter[Scope] = field(default_factory=Counter)
    checks: Counter[Scope] = field(default_factory=Counter)
    hidden: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _sizes: Counter[Scope] = field(init=False)
    _latest: dict[Scope, Listing | ServiceError] = field(default_factory=dict)
    _read_at: dict[Scope, float] = field(default_factory=dict)
    _without_survey: set[str] = field(init=False)
    _locks: dict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    def __post_init__(self) -> None:
        self._without_survey = set(self.live.unlisted)
        items = self.live.by_identity.values()
        self._sizes = Counter(Scope(item.kind, item.parent_id) for item in items)

    def has_children(self, kind: str) -> bool:
        """Return whether objects of a kind contain others."""
        return kind in containers(all_kinds())

    def is_foreign(self, kind: str, live_id: str) -> bool:
        """Return whether neither the plan's state nor this run knows an object."""
        return (kind, live_id) not in self.live.by_identity and live_id not in self.created[kind]

    async def latest(self, scope: Scope) -> Listing:
        """Return a list of a scope that is recent enough for a create.

        Creates that wait for the same list share it, also if it can't be read.

        Raises ServiceError.
        """
        return await self._latest_of(scope, self.pending)

    async def for_check(self, scope: Scope) -> Listing | None:
        """Return a list that is recent enough to check an object, and saves calls.

        None if reading the object alone takes as few calls, or the list can't be read.
        """
        waiting = [other for other, count in self.checks.items() if count > 0]
        same_kind = [other for other in waiting if other.kind == scope.kind]
        saved = sum(self.checks[other] for other in same_kind)
        calls = min(self._cost_of_survey(scope.kind), self._cost_of(same_kind))
        if self._is_due(scope) and calls >= saved:
            return None
        try:
            return await self._latest_of(scope, self.checks)
        except ServiceError:
            return None

    async def _latest_of(self, scope: Scope, waiting: Counter[Scope]) -> Listing:
        async with self._locks[scope.kind]:
            if self._is_due(scope):
                now = self.transport.clock()
                others = [other for other, count in waiting.items() if count > 0]
                wanted = [other for other in others if other.kind == scope.kind]
                due = [scope, *(item for item in wanted if item != scope and self._is_due(item))]
                if self._cost_of_survey(scope.kind) >= self._cost_of(due):
                    # More lists would be too old when it is their turn.
                    due = due[: self.transport.settings.parallelism]
                self._latest.update(await self.read(due))
                self._read_at.update(dict.fromkeys(due, now))
            latest = self._latest[scope]
        if isinstance(latest, ServiceError):
            raise latest
        return latest

    def _is_due(self, scope: Scope) -> bool:
        read_at = self._read_at.get(scope)
        return read_at is None or self.transport.clock() - read_at > LONGEST_AGE

    async def read(self, scopes: Iterable[Scope]) -> dict[Scope, Listing | ServiceError]:
        """Read the lists of some scopes now. A list that can't be read is the error."""
        by_kind: dict[str, list[Scope]] = defaultdict(list)
        for scope in dict.fromkeys(scopes):
            by_kind[scope.kind].append(scope)
        read = await together(self._read_kind(kind, wanted) for kind, wanted in by_kind.items())
        listings = {scope: listing for listings in read for scope, listing in listings.items()}
        for scope, listing in listings.items():
            if isinstance(listing, Listing):
                self._latest[scope], self._read_at[scope] = listing, listing.at
        return listings

    async def full(self, item: LiveObject) -> LiveObject | None:
        """Return a listed object in full, None if it is gone or pending deletion.

        Raises ServiceError.
        """
        routes = Routes(kinds_by_name()[item.kind], self.organization, item.parent_id)
        try:
            full = await read_object(self.transport, routes, item.id)
        except NotFound:
            return None
        return None if routes.kind.is_deleted(full.body) else full

    async def _read_kind(
        self, name: str, scopes: Collection[Scope]
    ) -> dict[Scope, Listing | ServiceError]:
        """Read all objects of a kind, or scope by scope, whichever takes fewer calls."""
        now = self.transport.clock()
        items: list[LiveObject] | None = None
        if self._cost_of_survey(name) < self._cost_of(scopes):
            try:
                items = await self._survey(name)
            except ServiceError as error:
                return dict.fromkeys(scopes, error)
        if items is None:
            listings = await together(self._read_scope(scope) for scope in scopes)
            return dict(zip(scopes, listings, strict=True))
        by_scope: dict[Scope, list[LiveObject]] = defaultdict(list)
        for item in items:
            by_scope[Scope(name, item.parent_id)].append(item)
        return {
            scope: _listing(now, items if scope.parent_id is None else by_scope[scope])
            for scope in scopes
        }

    async def _read_scope(self, scope: Scope) -> Listing | ServiceError:
        now = self.transport.clock()
        try:
            return _listing(now, await self.items(scope))
        except ServiceError as error:
            return error

    async def items(self, scope: Scope) -> list[LiveObject]:
        """Return the objects of a scope now. Raises ServiceError."""
        kind = kinds_by_name()[scope.kind]
        return await list_scope(self.transport, kind, self.organization, scope.parent_id)

    async def _survey(self, name: str) -> list[LiveObject] | None:
        """Return all objects of a kind, None if the key or the server has no such list."""
        try:
            return await self.items(Scope(name, None))
        except (Forbidden, NotFound) as error:
            if isinstance(error, Forbidden) and error.lacks_scope:
                raise
            self._without_survey.add(name)
            return None

    def _cost_of_survey(self, name: str) -> float:
        kind = kinds_by_name()[name]
        if kind.parent is None or kind.paths.survey is None or name in self._without_survey:
            return inf
        return _pages(len(self.live.of(name)) + len(self.created[name]))

    def _cost_of(self, scopes: Collection[Scope]) -> float:
        return sum(_pages(self._sizes[scope] + self.pending[scope]) for scope in scopes)


def _pages(count: int) -> int:
    return max(1, ceil(count / _PAGE))


def _listing(at: float, items: Collection[LiveObject]) -> Listing:
    by_name: dict[str, list[LiveObject]] = defaultdict(list)
    for item in items:
        by_name[item.name.strip()].append(item)
    return Listing(at, {item.id: item for item in items}, by_name)
