"""Check live state around the writes of a run: lists that changes share, comparisons, searches.

Before a write its object is compared with the plan, after it with what was sent. The object of a
create with an unknown outcome is found by such a comparison, too. Only what the plan depends on
counts: an export that ran, or a field that is not managed, makes no change stale. Servers ignore
unknown fields and overwrite some at creation (service.md, 1.1 and 4.1).
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import Struct

from reconciler.errors import Forbidden, Interrupted, NotFound, ServiceError
from reconciler.kinds import kinds_by_name
from reconciler.model.kind import Kind
from reconciler.model.live import Identity, Live, LiveObject, Routes
from reconciler.model.plan import Change
from reconciler.model.redaction import Mask, masked_in
from reconciler.model.schemas import canonical_text
from reconciler.model.text import printable
from reconciler.model.values import JSON, MISSING, JSONObject, Path
from reconciler.planning.compare import field_leaves, is_equal, live_values, stamp_of
from reconciler.service.live import list_scope, read_object
from reconciler.service.transport import Transport

LONGEST_AGE = 30.0
"""Seconds after which what a write relies on is read again."""
_PAGE = 100
SEARCH_PAUSES = (0.5, 1.5, 3.0, 5.0, 8.0, 12.0)
"""Seconds before the searches: a server or a proxy may give up long before the work is done."""


class Scope(NamedTuple):
    """The place in which a name matters: a kind, below one parent or in the organization."""

    kind: str
    parent_id: str | None


class Listing(Struct, frozen=True):
    """The objects of a scope, or of all scopes of a kind."""

    at: float
    """When reading began, in seconds of the clock."""
    by_id: Mapping[str, LiveObject]
    by_name: Mapping[tuple[str | None, str], Sequence[LiveObject]]

    def named(self, parent_id: str | None, *names: str) -> list[LiveObject]:
        """Return the objects with one of the names, apart from whitespace around them."""
        stripped = dict.fromkeys(name.strip() for name in names)
        return [item for name in stripped for item in self.by_name.get((parent_id, name), ())]


@dataclass(slots=True)
class Lists:
    """Reads lists, each once for all changes that need it."""

    transport: Transport
    organization: str
    live: Live
    """What the plan was made from."""
    created: set[Identity] = field(default_factory=set)
    """The objects that this run created."""
    surveyed: set[str] = field(default_factory=set)
    """The kinds of which one list of the organization is read in place of those of the scopes."""
    _changes: Counter[Scope] = field(default_factory=Counter)
    _sizes: Counter[Scope] = field(init=False)
    _unlisted: set[str] = field(init=False)
    _read: dict[Scope, tuple[float, Listing | ServiceError]] = field(default_factory=dict)
    _locks: dict[Scope, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    def __post_init__(self) -> None:
        self._unlisted = set(self.live.unlisted)
        items = self.live.by_identity.values()
        self._sizes = Counter(Scope(item.kind, item.parent_id) for item in items)

    def expect(self, scopes: Iterable[Scope]) -> None:
        """Note the scopes of the changes of a level, one for each."""
        self._changes = Counter(scopes)
        self.surveyed = {
            name
            for name, count in Counter(scope.kind for scope in self._changes).items()
            if name not in self._unlisted
            and kinds_by_name()[name].paths.survey is not None
            and _pages(len(self.live.of(name))) < count
        }

    def saves_calls(self, scope: Scope) -> bool:
        """Return whether a list takes fewer calls than reading each object of the changes."""
        return scope.kind in self.surveyed or self._changes[scope] > _pages(self._sizes[scope])

    def is_foreign(self, identity: Identity) -> bool:
        """Return whether neither the plan's state nor this run knows an object."""
        return identity not in self.live.by_identity and identity not in self.created

    async def listing(self, scope: Scope, since: float) -> Listing:
        """Return a list of a scope whose reading began at `since` or later.

        What waits for the same list shares it, also if it can't be read. Raises ServiceError.
        """
        if scope.kind in self.surveyed:
            try:
                return await self._shared(Scope(scope.kind, None), since)
            except (Forbidden, NotFound) as error:
                if isinstance(error, Forbidden) and error.lacks_scope:
                    raise
                # The key or the server has no such list.
                self._unlisted.add(scope.kind)
                self.surveyed.discard(scope.kind)
        return await self._shared(scope, since)

    def routes(self, scope: Scope) -> Routes:
        """Return the routes of the objects of a scope."""
        return Routes(kinds_by_name()[scope.kind], self.organization, scope.parent_id)

    async def items(self, scope: Scope) -> list[LiveObject]:
        """Return the objects of a scope now. Raises ServiceError."""
        kind = kinds_by_name()[scope.kind]
        return await list_scope(self.transport, kind, self.organization, scope.parent_id)

    async def living(
        self, routes: Routes, live_id: str, change_id: str | None = None
    ) -> LiveObject | None:
        """Return an object in full, None if it is deleted or pending deletion.

        Raises ServiceError.
        """
        try:
            live = await read_object(self.transport, routes, live_id, change_id=change_id)
        except NotFound:
            return None
        return None if routes.kind.is_deleted(live.body) else live

    async def living_of(self, items: Iterable[LiveObject]) -> list[LiveObject]:
        """Return those of some listed objects in full that exist. Raises ServiceError."""
        routes = ((self.routes(Scope(item.kind, item.parent_id)), item.id) for item in items)
        full = [await self.living(*route) for route in routes]
        return [item for item in full if item is not None]

    async def _shared(self, scope: Scope, since: float) -> Listing:
        async with self._locks[scope]:
            known = self._read.get(scope)
            if known is None or known[0] < since:
                now = self.transport.clock()
                try:
                    known = now, _listing(now, await self.items(scope))
                except ServiceError as error:
                    known = now, error
                self._read[scope] = known
        if isinstance(known[1], ServiceError):
            raise known[1]
        return known[1]


def _pages(count: int) -> int:
    return max(1, -(-count // _PAGE))


def _listing(at: float, items: Collection[LiveObject]) -> Listing:
    by_name: dict[tuple[str | None, str], list[LiveObject]] = defaultdict(list)
    for item in items:
        # Scopes of the organization contain what is below its parents, too.
        for parent_id in {item.parent_id, None}:
            by_name[parent_id, item.name.strip()].append(item)
    return Listing(at, {item.id: item for item in items}, by_name)


def modifications(kind: Kind, change: Change, body: JSONObject, *, mask: Mask) -> str:
    """Return `prefix: "a/" -> "b/"` for each modified field, empty without one."""
    live = live_values(kind, body) | stamp_of(kind, body)
    texts = []
    for path, value in sorted((change.seen or {}).items()):
        before, after = (canonical_text(masked_in(item, mask)) for item in (value, live.get(path)))
        if before != after:
            texts.append(f"{path}: {before} -> {after}")
    return printable("; ".join(texts))


def altered_paths(kind: Kind, sent: JSONObject, stored: JSONObject) -> tuple[Path, ...]:
    """Return the paths of sent fields that read back different, without secrets and toggles."""
    values = {leaf.path: leaf.value for leaf in field_leaves(kind.fields, stored, live=True)}
    named = {kind.own_name(name): value for name, value in sent.items()}
    return tuple(
        leaf.path
        for leaf in field_leaves(kind.fields, named, live=False)
        if not leaf.field.secret
        and leaf.field.toggle is None
        and not is_equal(leaf.field, leaf.value, values.get(leaf.path, MISSING))
    )


def body_of_altered(kind: Kind, sent: JSONObject, altered: Collection[Path]) -> dict[str, JSON]:
    """Return the top-level fields of a body that read back different, to send them again."""
    names = {path[0] for path in altered}
    return {name: value for name, value in sent.items() if kind.own_name(name) in names}


def lacks_fields(kind: Kind, stored: JSONObject, altered: Collection[Path]) -> bool:
    """Return whether a body lacks an altered field: then it is not the whole object."""
    if not altered:
        return False
    shown = {leaf.path for leaf in field_leaves(kind.fields, stored, live=True)}
    return any(path not in shown for path in altered)


async def search(
    lists: Lists, routes: Routes, sent: JSONObject, before: Collection[str]
) -> LiveObject | str:
    """Return the object of a create, or why it is unknown which one that is.

    It is the only new one of its name, and equals what was sent. `before` are the ids of the list
    that was read before the create.
    """
    problem = "it was not searched for"
    for seconds in SEARCH_PAUSES:
        try:
            await lists.transport.pause(seconds, "search for objects without a confirmed creation")
            result = await _look(lists, routes, sent, before)
        except Interrupted:
            return problem
        except ServiceError as error:
            result = f"it can't be searched for: {error.message}"
        if not isinstance(result, str):
            return result
        problem = result
    return problem


async def _look(
    lists: Lists, routes: Routes, sent: JSONObject, before: Collection[str]
) -> LiveObject | str:
    # Searches that wake up at the same time share a list.
    scope = Scope(routes.kind.name, routes.parent_id)
    listing = await lists.listing(scope, lists.transport.clock())
    named = listing.named(routes.parent_id, str(sent.get("name")))
    new = [item for item in named if item.id not in before and lists.is_foreign(item.identity)]
    full = await lists.living_of(new)
    if not full:
        return f"no object of this name appeared in {sum(SEARCH_PAUSES):g} s"
    ids = printable(", ".join(sorted(item.id for item in full)))
    if len(full) > 1:
        return f"there are {len(full)} new objects of this name (ids {ids})"
    if altered_paths(routes.kind, sent, full[0].body):
        return f"a new object of this name (id {ids}) differs from what was sent"
    return full[0]
