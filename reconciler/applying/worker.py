"""Take the steps of one change: check that it is not stale, send it, compare what was stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from math import inf

from msgspec import Struct, field

from reconciler.applying.change_run import (
    ChangeRun,
    Check,
    Complete,
    Create,
    Creation,
    Delete,
    Patch,
    Step,
    Toggle,
    unit_of,
)
from reconciler.applying.checks import (
    Checks,
    altered_paths,
    body_of_altered,
    lacks_fields,
)
from reconciler.applying.scopes import LONGEST_AGE as LONGEST_AGE_OF_LISTS
from reconciler.applying.scopes import Listing, Scope, Scopes
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
from reconciler.kinds import kinds_by_name
from reconciler.model.address import Address
from reconciler.model.kind import Action
from reconciler.model.live import id_text
from reconciler.model.plan import Change
from reconciler.model.redaction import Mask
from reconciler.model.request import Answer, Request, Routes
from reconciler.model.text import printable, quoted
from reconciler.model.values import JSON, JSONObject, Path, path_text, secret_refs

_TRIES = 5
"""How often what a write relies on is read, if the write has to wait. Then it is sent late."""
_PAUSE = 2.0
"""Seconds before an object is read whose write had no clear answer."""
_SETTLED = "a request without a clear answer; the object reads back as requested"


class Worker(Struct):
    """Takes steps. `created` are the ids of created objects, for their children."""

    scopes: Scopes
    mask: Mask
    checks: Checks
    created: dict[Address, str] = field(default_factory=dict)

    async def advance(self, run: ChangeRun) -> None:
        """Take the steps that are left.

        Raises:
            StalePlan: the object was modified; nothing was sent.
            AmbiguousOutcome: the outcome of a write is unknown.
            ServiceError: the service refused.

        """
        while run.steps:
            unit = unit_of(run.steps)
            # A step is taken off before it is sent, so that nothing can send a create twice.
            run.steps = run.steps[len(unit) :]
            if isinstance(unit[0], Complete):
                await self._complete(run, unit[0])
            else:
                await self._take(run, unit)
                if isinstance(unit[0], Check):
                    self.scopes.checks[self.scope_of_checked(run.change)] -= 1

    def scope_of(self, change: Change) -> Scope | None:
        """Return the scope in which a change creates an object, None without its parent."""
        parent_id = self._parent_id(change)
        if change.parent is not None and parent_id is None:
            return None
        return Scope(change.address.kind, parent_id)

    def scope_of_checked(self, change: Change) -> Scope:
        """Return the scope of the object that a change modifies or deletes in place."""
        return Scope(change.address.kind, self._parent_id_in_paths(change))

    def _parent_id_in_paths(self, change: Change) -> str | None:
        """Return the id of the parent in paths, None for those of the organization."""
        below_parent = change.parent is not None or not self.scopes.live.serves_organization
        return self._parent_id(change) if below_parent else None

    def _parent_id(self, change: Change) -> str | None:
        """Return the id of the parent, which may have been created in this run."""
        kind = kinds_by_name()[change.address.kind]
        if change.parent_id is None and kind.parent and change.parent and change.parent.key:
            return self.created.get(Address(kind.parent, change.parent.key))
        return change.parent_id

    def _routes(self, change: Change) -> Routes:
        kind = kinds_by_name()[change.address.kind]
        if change.parent is not None and self._parent_id(change) is None:
            raise ServiceError(f"the id of {kind.parent} '{change.parent}' is not known")
        return Routes(kind, self.scopes.organization, self._parent_id_in_paths(change))

    def _old_routes(self, change: Change) -> Routes:
        """Return the routes of the object that is modified or deleted."""
        if change.action is Action.REPLACE:
            kind = kinds_by_name()[change.address.kind]
            return Routes(kind, self.scopes.organization, change.old_parent_id)
        return self._routes(change)

    async def _take(self, run: ChangeRun, unit: tuple[Step, ...]) -> None:
        """Check what the writes rely on and send them; read it again if they have to wait."""
        for tries_left in reversed(range(_TRIES)):
            listing = await self._listing(run, unit)
            await self._check(run, unit)
            not_after = self._expiry(run, unit, listing) if tries_left else inf
            with suppress(Expired):
                await self._send_all(run, unit, listing, not_after)
                return

    async def _listing(self, run: ChangeRun, unit: tuple[Step, ...]) -> Listing | None:
        """Return the list of names on which a create relies; check what a deletion relies on."""
        for step in unit:
            if isinstance(step, Check):
                await self._check_in_list(run)
            if isinstance(step, Create):
                return await self._check_name(run, step, self._routes(run.change))
            if isinstance(step, Delete):
                run.inside_at = self.scopes.transport.clock()
                await self.checks.inside_as_planned(run, self._old_routes(run.change))
        return None

    async def _check_in_list(self, run: ChangeRun) -> None:
        """Check the object to modify by a list of its scope, where that saves calls."""
        change = run.change
        if self.checks.is_recent(run) or change.action is Action.REPLACE:
            return
        if not self.scopes.hidden[change.address.kind].isdisjoint(change.seen or ()):
            return
        listing = await self.scopes.for_check(self.scope_of_checked(change))
        if listing is not None:
            self.checks.unmodified_in(run, self._old_routes(change), listing)

    def _expiry(self, run: ChangeRun, unit: tuple[Step, ...], listing: Listing | None) -> float:
        """Return until when what the writes rely on is recent enough."""
        ends = [run.inside_at + LONGEST_AGE_OF_LISTS]
        if isinstance(unit[0], Check) and not run.gone:
            ends.append(self.checks.expiry(run))
        if listing is not None:
            ends.append(listing.at + LONGEST_AGE_OF_LISTS)
        return min(ends)

    async def _send_all(
        self,
        run: ChangeRun,
        unit: tuple[Step, ...],
        listing: Listing | None,
        not_after: float,
    ) -> None:
        """Send the writes of some steps. Only the first may expire: the others complete it."""
        for step in unit:
            if isinstance(step, Check):
                continue
            try:
                await self._send(run, step, listing, not_after)
            except AmbiguousOutcome:
                if isinstance(step, Create) or not await self._took_effect(run, step):
                    raise
                run.notices.append(_SETTLED)
            not_after = inf

    async def _check(self, run: ChangeRun, unit: tuple[Step, ...]) -> None:
        """Read the objects that the writes rely on. Raise StalePlan if one was modified."""
        for step in unit:
            if isinstance(step, Check) and not self.checks.is_recent(run):
                await self.checks.unmodified(run, self._old_routes(run.change))

    async def _send(
        self, run: ChangeRun, step: Step, listing: Listing | None, not_after: float
    ) -> None:
        """Send the write of a step."""
        change = run.change
        match step:
            case Create() if listing is not None:
                run.writing = True
                await self._create(run, step, self._routes(change), listing, not_after)
                run.writing = False
            case Patch():
                await self._patch(run, step, not_after)
            case Toggle():
                request = self._routes(change).action(change.live_id or "", step.action)
                # The answer may be the object or something small (service.md, 15.21).
                await self._write(run, request, not_after)
                run.made.append(f"{step.action}d")
            case Delete():
                await self._delete(run, not_after)

    async def _delete(self, run: ChangeRun, not_after: float) -> None:
        """Delete the object of the change, unless it is gone."""
        what = "" if run.change.action is Action.DELETE else "the old object is "
        routes, live_id = self._old_routes(run.change), run.change.live_id or ""
        if not run.gone:
            try:
                await self._write(
                    run, routes.delete(live_id, self.scopes.live.dialect), not_after, deletes=True
                )
            except (NotFound, Invalid) as error:
                # After an attempt of this run without an answer it was probably this run.
                run.gone = not error.unclear
                if isinstance(error, Invalid) and not await self.checks.is_gone(
                    run, self._old_routes(run.change)
                ):
                    raise _as_unknown(error) from None
        if run.gone:
            run.notices.append(f"{what}already deleted")
        else:
            run.made.append(f"deleted (id {printable(live_id)})")

    async def _patch(self, run: ChangeRun, step: Patch, not_after: float) -> None:
        """Set fields, and report those that the server did not keep."""
        routes, live_id = self._routes(run.change), run.live_id or ""
        answer = await self._write(run, routes.patch(live_id, step.body), not_after)
        run.made.append("updated")
        await self._note_altered(run, routes, answer, sent=step.body)

    async def _complete(self, run: ChangeRun, step: Complete) -> None:
        """Send what the create did not set; after a search the secrets, too."""
        creation = run.creation
        if creation is None or creation.live_id is None:
            return
        kind, live_id = creation.routes.kind, creation.live_id
        altered = await self._altered(run, creation.routes, creation.stored, sent=step.sent)
        patch = {**body_of_altered(kind, step.sent, altered), **step.more}
        if run.adopted:
            patch |= {name: value for name, value in step.sent.items() if secret_refs(value)}
        if patch:
            answer = await self._write(run, creation.routes.patch(live_id, patch), inf)
            await self._note_altered(run, creation.routes, answer, sent={**step.sent, **patch})
        self.created[run.change.address] = live_id

    async def _note_altered(
        self, run: ChangeRun, routes: Routes, answer: Answer, *, sent: JSONObject
    ) -> None:
        """Note what the server did not keep of a PATCH, which was acknowledged."""
        try:
            altered = await self._altered(run, routes, answer.body, sent=sent)
        except (ServiceError, Interrupted) as error:
            run.notices.append(f"not compared with what was sent: {self.mask(error.message)}")
            return
        run.notices += [
            f"the server ignored or altered {path_text(path)}: it reads back different"
            for path in altered
        ]

    async def _altered(
        self, run: ChangeRun, routes: Routes, answer: JSON, *, sent: JSONObject
    ) -> Collection[Path]:
        """Return the paths of sent fields that the object has otherwise after a write.

        It is read if the answer lacks a field. Raises ServiceError.
        """
        kind, live_id = routes.kind, run.live_id or ""
        if isinstance(answer, Mapping) and id_text(answer.get("id")) == live_id:
            altered = altered_paths(kind, sent, answer)
            if not lacks_fields(kind, answer, altered):
                return altered
        return altered_paths(kind, sent, (await self.checks.read(run, routes, live_id)).body)

    async def _took_effect(self, run: ChangeRun, step: Step) -> bool:
        """Return whether a write without a clear answer reads back as done.

        A write with secrets is never settled by reading: the service does not return them.
        """
        change, kind = run.change, kinds_by_name()[run.change.address.kind]
        if isinstance(step, Patch) and secret_refs(step.body):
            return False
        try:
            await self.scopes.transport.pause(_PAUSE, "a request without a clear answer", change.id)
            if isinstance(step, Delete):
                return await self.checks.is_gone(run, self._old_routes(run.change))
            live = await self.checks.read(run, self._routes(change), run.live_id or "")
        except (ServiceError, Interrupted):
            return False
        if isinstance(step, Patch):
            return not altered_paths(kind, step.body, live.body)
        toggled = kind.toggled(step.action) if isinstance(step, Toggle) else None
        return toggled is not None and toggled[0].live_value(live.body) is toggled[1]

    async def _write(
        self, run: ChangeRun, request: Request, not_after: float, *, deletes: bool = False
    ) -> Answer:
        """Send a write that may be repeated.

        A refusal after an attempt that may have taken effect is no clear answer. That of a deletion
        is returned as it is where the object may just be gone.
        """
        run.writing = True
        try:
            answer = await self.scopes.transport.send(
                request, change_id=run.change.id, not_after=not_after
            )
        except ServiceError as error:
            if deletes and isinstance(error, (NotFound, Invalid)):
                raise
            raise _as_unknown(error) from None
        run.writing = False
        return answer

    async def _check_name(self, run: ChangeRun, step: Create, routes: Routes) -> Listing:
        """Return the list that shows that the name is free.

        Raises:
            StalePlan: another client created an object of the name since the plan was made.
            ServiceError: the list can't be read.

        """
        listing = await self.scopes.latest(_scope(routes))
        for item in listing.named(*_names(run, step)):
            is_replaced = item.id == run.change.live_id
            if is_replaced or not self.scopes.is_foreign(item.kind, item.id):
                continue
            if item.complete or await self.scopes.full(item) is not None:
                raise StalePlan(
                    f"created by another client since the plan was made: {quoted(item.name)} "
                    f"(id {printable(item.id)})",
                    hint="make a new plan: it compares this object with the configuration",
                )
        return listing

    async def _create(
        self, run: ChangeRun, step: Create, routes: Routes, listing: Listing, not_after: float
    ) -> None:
        """Send a create once. `listing` is the list that was read before.

        Raises:
            AmbiguousOutcome: it is unknown whether, or which, object was created.
            ServiceError: it was not created.

        """
        request = routes.create(step.body)
        name = str(step.body.get("name"))
        run.creation = creation = Creation(_scope(routes), routes, step.body, name, listing.ids)
        try:
            answer = await self.scopes.transport.send(
                request, change_id=run.change.id, not_after=not_after
            )
        except Expired:
            run.creation = None
            raise
        except Conflict as error:
            raise Conflict(
                f"the name is taken by a {routes.kind.name} made meanwhile, or one that this key "
                "can't see",
                hint="make a new plan, or choose another name",
                status=error.status,
            ) from None
        finally:
            self.scopes.pending[creation.scope] -= run.creation is not None
        live_id = self._new_id(answer.body, request, creation)
        creation.stored = answer.body
        creation.confirmed = True
        run.created(live_id)
        self.scopes.created[run.change.address.kind].add(live_id)

    def _new_id(self, body: JSON, request: Request, creation: Creation) -> str:
        """Return the id of the answer to a create.

        Raises AmbiguousOutcome if the answer does not show the new object of the create: nothing
        is written to an object of another client.
        """
        live_id = id_text(body.get("id")) if isinstance(body, Mapping) else None
        if live_id is None or not isinstance(body, Mapping):
            raise AmbiguousOutcome(f"{request.label}: the response contains no id")
        what = f"{request.label}: the response shows another object, {printable(live_id)}"
        if live_id in creation.before or not self.scopes.is_foreign(creation.scope.kind, live_id):
            raise AmbiguousOutcome(f"{what}, which existed before")
        if differing := _differing(body, creation):
            raise AmbiguousOutcome(f"{what}, whose {differing} is not the one that was sent")
        return live_id


def _as_unknown(error: ServiceError) -> ServiceError:
    """Return an unknown outcome if an attempt before the last may have taken effect."""
    if not error.unclear or isinstance(error, AmbiguousOutcome):
        return error
    return AmbiguousOutcome.after(
        error, f"{error.message}; outcome unknown, an attempt before may have taken effect"
    )


def _differing(body: JSONObject, creation: Creation) -> str | None:
    """Return the field in which an answer differs from this create: its name, or its parent."""
    name, kind = body.get("name"), creation.routes.kind
    if not isinstance(name, str) or name.strip() != creation.name.strip():
        return "name"
    if kind.parent_field is None or creation.scope.parent_id is None:
        return None
    parent_id = id_text(body.get(kind.parent_field))
    return kind.parent if parent_id != creation.scope.parent_id else None


def _scope(routes: Routes) -> Scope:
    return Scope(routes.kind.name, routes.parent_id)


def _names(run: ChangeRun, step: Create) -> tuple[str, ...]:
    return tuple(dict.fromkeys((str(step.body.get("name")), run.change.name)))
