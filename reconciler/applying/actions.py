"""Make one change: look at what it relies on, send it, compare what was stored.

A write relies on looks that are at most `LONGEST_AGE` old. A create is sent once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from math import inf
from typing import TypeAlias

from msgspec import Struct, field

from reconciler.applying.check import (
    LONGEST_AGE,
    Listing,
    Lists,
    Scope,
    altered_paths,
    body_of_altered,
    lacks_fields,
    modifications,
    search,
)
from reconciler.errors import (
    AmbiguousOutcome,
    Conflict,
    Expired,
    Interrupted,
    Invalid,
    NotFound,
    ServiceError,
    StalePlan,
)
from reconciler.kinds import all_kinds, kinds_by_name
from reconciler.model.kind import Action, Kind
from reconciler.model.live import Answer, LiveObject, Repeat, Request, Routes, id_text
from reconciler.model.plan import Change
from reconciler.model.redaction import Mask
from reconciler.model.text import listed, printable, quoted
from reconciler.model.values import JSON, Address, JSONObject, Path, path_text, secret_refs
from reconciler.planning.compare import field_leaves, stamp_of
from reconciler.service.live import read_object
from reconciler.service.transport import Transport

_TRIES = 5
"""How often what a write relies on is read, if the write has to wait. Then it is sent late."""
_PAUSE = 2.0
"""Seconds before an object is read whose write had no clear answer."""
_SETTLED = "a request without a clear answer; the object reads back as requested"
_HINT = "make a new plan and have it reviewed"
_LATER = "plan again in some minutes: what exists by then is compared with the configuration"
Look: TypeAlias = Callable[[], Awaitable[float]]
"""Reads what a write relies on, and returns since when it is known, in seconds of the clock."""


class Work(Struct):
    """One change in a run."""

    change: Change
    live_id: str | None = None
    """The id of the new object, None without one."""
    unknown: tuple[AmbiguousOutcome, Collection[str]] | None = None
    """The error of a create, and the ids that its names were free of, until a search ended."""
    adopted: bool = False
    """Whether the new object was found by a search."""
    writing: bool = False
    """Whether a write was sent and its answer was not handled."""
    made: list[str] = field(default_factory=list)
    """What was done so far, for messages."""
    notices: list[str] = field(default_factory=list)


class _Gone(Exception):
    """The object to delete does not exist any more."""


class Actions(Struct):
    """Makes changes. Raises StalePlan, AmbiguousOutcome, another ServiceError, or Interrupted."""

    lists: Lists
    mask: Mask
    inside: Mapping[str, Sequence[Change]]
    """`Plan.deleted_inside`."""
    created: dict[Address, str] = field(default_factory=dict)
    """The ids of created objects, for their children."""
    hidden: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The fields that a list of a kind does not show, as far as is known."""

    @property
    def transport(self) -> Transport:
        """What sends the requests."""
        return self.lists.transport

    async def make(self, work: Work) -> None:
        """Make a change. A create whose outcome is unknown is left to `finish`."""
        match work.change.action:
            case Action.CREATE | Action.REPLACE:
                await self.create(work)
            case Action.UPDATE:
                await self.update(work)
            case Action.PAUSE | Action.UNPAUSE:
                await self.toggle(work)
            case Action.DELETE:
                await self.delete(work)

    async def finish(self, work: Work) -> None:
        """Search for the object of a create with an unknown outcome, and complete it."""
        if work.unknown is None:
            return
        error, before = work.unknown
        routes = self._routes(work.change)
        match = await search(self.lists, routes, work.change.body or {}, before)
        if isinstance(match, str):
            raise AmbiguousOutcome(f"{error.message}; {match}", hint=_LATER)
        work.unknown, work.adopted = None, True
        await self._complete(work, routes, match.id, match.body)

    async def update(self, work: Work) -> None:
        """Set fields of an object, and note those that the server did not keep."""
        change, routes = work.change, self._routes(work.change)
        live_id, body = change.live_id or "", change.body or {}

        async def is_done() -> bool:
            live = await self.lists.living(routes, live_id, change.id)
            return live is not None and not altered_paths(routes.kind, body, live.body)

        # The service does not return secrets: reading settles nothing.
        settles = None if secret_refs(body) else is_done
        request = routes.patch(live_id, body)
        answer = await self._settled(work, request, partial(self.fresh, work), settles)
        if answer is not None:
            work.made.append("updated")
            await self._note_altered(work, routes, live_id, answer, sent=body)

    async def toggle(self, work: Work) -> None:
        """Pause or unpause an object."""
        change, routes = work.change, self._routes(work.change)
        live_id, toggled = change.live_id or "", routes.kind.toggled(change.action)

        async def is_done() -> bool:
            live = await self.lists.living(routes, live_id, change.id)
            return (
                live is not None
                and toggled is not None
                and toggled[0].live_value(live.body) is toggled[1]
            )

        # The answer may be the object or something small (service.md, 15.21).
        request = routes.action(live_id, change.action)
        await self._settled(work, request, partial(self.fresh, work), is_done)

    async def delete(self, work: Work, what: str = "") -> None:
        """Delete an object, the old one of a replacement, too. It may be gone already."""
        change, routes = work.change, self.lists.routes(self._old_scope(work.change))
        live_id = change.live_id or ""

        async def look() -> float:
            now = self.transport.clock()
            if await self._check_inside(change, routes):
                # What is in it was just read: the plan's look at the parent itself is enough.
                seen_at = self.lists.live.seen_at(routes.kind.name, live_id)
                if seen_at >= now - LONGEST_AGE:
                    return seen_at
            live = await self.lists.living(routes, live_id, change.id)
            if live is None:
                raise _Gone
            self._check(routes.kind, change, live)
            return now

        async def is_done() -> bool:
            return await self.lists.living(routes, live_id, change.id) is None

        request = routes.delete(live_id, self.lists.live.dialect)
        is_gone = False
        try:
            await self._settled(work, request, look, is_done, plain=(NotFound, Invalid))
        except _Gone:
            is_gone = True
        except (NotFound, Invalid) as error:
            if isinstance(error, Invalid) and not await is_done():
                raise _as_unknown(error) from None
            # After an attempt of this run without an answer it was probably this run.
            is_gone = not error.unclear
        if is_gone:
            work.notices.append(f"{what}already deleted")

    async def create(self, work: Work) -> None:
        """Create an object once, complete it, and then delete the one that it replaces."""
        change, routes = work.change, self._routes(work.change)
        body, before = change.body or {}, frozenset[str]()

        async def look() -> float:
            nonlocal before
            listing = await self._free_names(change, routes)
            before = frozenset(listing.by_id)
            return min(listing.at, await self.fresh(work)) if change.live_id else listing.at

        request = routes.create(body)
        try:
            stored = (await self._timely(work, request, look)).body
            live_id = self._new_id(stored, request, routes, body, before)
        except Conflict as error:
            raise Conflict(
                f"the name is taken by a {routes.kind.name} made meanwhile, or one that this key "
                "can't see",
                hint="make a new plan, or choose another name",
                status=error.status,
            ) from None
        except AmbiguousOutcome as error:
            work.unknown = error, before
        else:
            await self._complete(work, routes, live_id, stored)

    async def _complete(self, work: Work, routes: Routes, live_id: str, stored: JSON) -> None:
        """Send what a create did not set; after a search its secrets, too."""
        change, kind, body = work.change, routes.kind, work.change.body or {}
        work.writing, work.live_id = False, live_id
        self.lists.created.add((kind.name, live_id))
        self.created[change.address] = live_id
        word = "adopted" if work.adopted else "created"
        work.made.append(f"{word} (id {printable(live_id)})")
        altered = await self._altered(work, routes, live_id, stored, sent=body)
        patch = {**body_of_altered(kind, body, altered), **(change.after_create or {})}
        if work.adopted:
            patch |= {name: value for name, value in body.items() if secret_refs(value)}
        if patch:
            answer = await self._send(work, routes.patch(live_id, patch))
            await self._note_altered(work, routes, live_id, answer, sent={**body, **patch})
        if change.action is Action.REPLACE:
            await self.delete(work, "the old object is ")

    async def fresh(self, work: Work) -> float:
        """Check that an object is as the plan expects it, by a look that is recent enough.

        That is the plan's own, a list that all changes in its scope share, or the object.
        """
        change, routes = work.change, self.lists.routes(self._old_scope(work.change))
        kind, live_id = routes.kind, change.live_id or ""
        now = self.transport.clock()
        seen_at = self.lists.live.seen_at(kind.name, live_id)
        if seen_at >= now - LONGEST_AGE:
            return seen_at
        seen, scope = set(change.seen or {}), self._old_scope(change)
        if self.hidden[kind.name].isdisjoint(seen) and self.lists.saves_calls(scope):
            with suppress(ServiceError):
                listing = await self.lists.listing(scope, now - LONGEST_AGE)
                item = listing.by_id.get(live_id)
                if item is not None and not self._hidden_in(item, kind, seen):
                    self._check(kind, change, item)
                    return listing.at
        live = await self.lists.living(routes, live_id, change.id)
        if live is None:
            gone = f"deleted since the plan was made (id {printable(live_id)})"
            raise StalePlan(gone, hint=_HINT)
        self._check(kind, change, live)
        return now

    def scope_of(self, change: Change) -> Scope:
        """Return the scope in which a change creates, modifies or deletes an object."""
        return Scope(change.address.kind, self._parent_id_in_paths(change))

    def _old_scope(self, change: Change) -> Scope:
        """Return the scope of the object that a change modifies, deletes or replaces."""
        if change.action is Action.REPLACE:
            return Scope(change.address.kind, change.old_parent_id)
        return self.scope_of(change)

    def _hidden_in(self, item: LiveObject, kind: Kind, seen: AbstractSet[str]) -> bool:
        """Return whether an item of a list lacks what a change depends on, and note the fields."""
        if item.complete:
            return False
        leaves = field_leaves(kind.fields, item.body, live=True)
        shown = {*(path_text(leaf.path) for leaf in leaves), *stamp_of(kind, item.body)}
        self.hidden[kind.name].update(seen - shown)
        return bool(seen - shown)

    async def _check_inside(self, change: Change, routes: Routes) -> bool:
        """Check that a parent to delete contains what the plan knows, unmodified.

        Return whether objects of the kind contain others.
        """
        if change.action is not Action.DELETE:
            return False
        inner = [kind for kind in all_kinds() if kind.parent == change.address.kind]
        planned = {item.live_id: item for item in self.inside.get(change.id, ())}
        for kind in inner:
            try:
                items = await self.lists.items(Scope(kind.name, change.live_id))
            except NotFound as error:
                if await self.lists.living(routes, change.live_id or "", change.id) is None:
                    raise _Gone from None
                raise ServiceError(error.message, hint=error.hint) from None
            if new := [item.name for item in items if item.id not in change.inside]:
                names = printable(listed(new, 5))
                raise StalePlan(f"created in it since the plan was made: {names}", hint=_HINT)
            for item in items:
                if item.id in planned:
                    self._check(kind, planned[item.id], item, f"{planned[item.id].address} was ")
        return bool(inner)

    def _check(self, kind: Kind, change: Change, live: LiveObject, who: str = "") -> None:
        if modified := modifications(kind, change, live.body, mask=self.mask):
            raise StalePlan(f"{who}modified since the plan was made: {modified}", hint=_HINT)

    async def _free_names(self, change: Change, routes: Routes) -> Listing:
        """Return the list that shows that the name is free.

        Raises StalePlan if another client created an object of the name since the plan was made.
        """
        scope = Scope(routes.kind.name, routes.parent_id)
        listing = await self.lists.listing(scope, self.transport.clock() - LONGEST_AGE)
        names = str((change.body or {}).get("name")), change.name
        for item in listing.named(scope.parent_id, *names):
            if item.id == change.live_id or not self.lists.is_foreign(item.identity):
                continue
            if item.complete or await self.lists.living_of([item]):
                raise StalePlan(
                    f"created by another client since the plan was made: {quoted(item.name)} "
                    f"(id {printable(item.id)})",
                    hint="make a new plan: it compares this object with the configuration",
                )
        return listing

    def _new_id(
        self,
        answer: JSON,
        request: Request,
        routes: Routes,
        sent: JSONObject,
        before: Collection[str],
    ) -> str:
        """Return the id of the answer to a create.

        Raises AmbiguousOutcome if the answer does not show the new object of the create: nothing
        is written to an object of another client.
        """
        live_id = id_text(answer.get("id")) if isinstance(answer, Mapping) else None
        if live_id is None or not isinstance(answer, Mapping):
            raise AmbiguousOutcome(f"{request.label}: the response contains no id")
        what = f"{request.label}: the response shows another object, {printable(live_id)}"
        if live_id in before or not self.lists.is_foreign((routes.kind.name, live_id)):
            raise AmbiguousOutcome(f"{what}, which existed before")
        if differing := _differing(answer, routes, sent):
            raise AmbiguousOutcome(f"{what}, whose {differing} is not the one that was sent")
        return live_id

    async def _note_altered(
        self, work: Work, routes: Routes, live_id: str, answer: Answer, *, sent: JSONObject
    ) -> None:
        """Note what the server did not keep of a PATCH, which was acknowledged."""
        try:
            altered = await self._altered(work, routes, live_id, answer.body, sent=sent)
        except (ServiceError, Interrupted) as error:
            work.notices.append(f"not compared with what was sent: {self.mask(error.message)}")
            return
        work.notices += [
            f"the server ignored or altered {path_text(path)}: it reads back different"
            for path in altered
        ]

    async def _altered(
        self, work: Work, routes: Routes, live_id: str, answer: JSON, *, sent: JSONObject
    ) -> Collection[Path]:
        """Return the paths of sent fields that the object has otherwise after a write.

        It is read if the answer lacks a field.
        """
        kind = routes.kind
        if isinstance(answer, Mapping) and id_text(answer.get("id")) == live_id:
            altered = altered_paths(kind, sent, answer)
            if not lacks_fields(kind, answer, altered):
                return altered
        live = await read_object(self.transport, routes, live_id, change_id=work.change.id)
        return altered_paths(kind, sent, live.body)

    async def _settled(
        self,
        work: Work,
        request: Request,
        look: Look,
        is_done: Callable[[], Awaitable[bool]] | None,
        *,
        plain: tuple[type[ServiceError], ...] = (),
    ) -> Answer | None:
        """Send a write that may be repeated. Return None if reading settles an unknown outcome."""
        try:
            return await self._timely(work, request, look, plain)
        except AmbiguousOutcome:
            try:
                await self.transport.pause(
                    _PAUSE, "a request without a clear answer", work.change.id
                )
                is_settled = is_done is not None and await is_done()
            except (ServiceError, Interrupted):
                is_settled = False
            if not is_settled:
                raise
        work.notices.append(_SETTLED)
        return None

    async def _timely(
        self,
        work: Work,
        request: Request,
        look: Look,
        plain: tuple[type[ServiceError], ...] = (),
    ) -> Answer:
        """Send a write after a look; look again if it has to wait."""
        for _ in range(_TRIES - 1):
            not_after = await look() + LONGEST_AGE
            with suppress(Expired):
                return await self._send(work, request, not_after, plain)
        await look()
        return await self._send(work, request, inf, plain)

    async def _send(
        self,
        work: Work,
        request: Request,
        not_after: float = inf,
        plain: tuple[type[ServiceError], ...] = (),
    ) -> Answer:
        """Send a write.

        A refusal after an attempt that may have taken effect is no clear answer. Errors of the
        types in `plain` are raised as they are.
        """
        work.writing = True
        try:
            answer = await self.transport.send(
                request, change_id=work.change.id, not_after=not_after
            )
        except ServiceError as error:
            raise (error if isinstance(error, plain) else _as_unknown(error)) from None
        # An answer to a create is handled when it shows the new object.
        work.writing = request.repeat is Repeat.AFTER_LOOKING
        return answer

    def _routes(self, change: Change) -> Routes:
        routes = self.lists.routes(self.scope_of(change))
        if change.parent is not None and self._parent_id(change) is None:
            raise ServiceError(f"the id of {routes.kind.parent} '{change.parent}' is not known")
        return routes

    def _parent_id_in_paths(self, change: Change) -> str | None:
        """Return the id of the parent in paths, None for those of the organization."""
        below_parent = change.parent is not None or not self.lists.live.serves_organization
        return self._parent_id(change) if below_parent else None

    def _parent_id(self, change: Change) -> str | None:
        """Return the id of the parent, which may have been created in this run."""
        kind = kinds_by_name()[change.address.kind]
        if change.parent_id is None and kind.parent and change.parent and change.parent.key:
            return self.created.get(Address(kind.parent, change.parent.key))
        return change.parent_id


def _as_unknown(error: ServiceError) -> ServiceError:
    """Return an unknown outcome if an attempt before the last may have taken effect."""
    if not error.unclear or isinstance(error, AmbiguousOutcome):
        return error
    return AmbiguousOutcome.after(
        error, f"{error.message}; outcome unknown, an attempt before may have taken effect"
    )


def _differing(answer: JSONObject, routes: Routes, sent: JSONObject) -> str | None:
    """Return the field in which an answer differs from this create: its name, or its parent."""
    name, kind = answer.get("name"), routes.kind
    if not isinstance(name, str) or name.strip() != str(sent.get("name")).strip():
        return "name"
    if kind.parent_field is None or routes.parent_id is None:
        return None
    return kind.parent if id_text(answer.get(kind.parent_field)) != routes.parent_id else None
