"""Create an object at most once: look at the names first, and never repeat an unknown outcome."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from reconciler.applying.change_run import ChangeRun, Creation
from reconciler.applying.scopes import Listing, Scope, Scopes
from reconciler.applying.steps import Create
from reconciler.client import Permit, Transport
from reconciler.errors import AmbiguousOutcome, Conflict, Expired, StalePlan
from reconciler.model.live import id_text
from reconciler.model.request import Request
from reconciler.model.routes import Routes
from reconciler.model.values import JSON, JSONObject
from reconciler.model.wording import printable, quoted


class Creator(Struct, frozen=True):
    """Sends creates."""

    transport: Transport
    scopes: Scopes

    async def check_name(self, run: ChangeRun, step: Create, routes: Routes) -> Listing:
        """Return the list that shows that the name is free.

        Raises:
            StalePlan: another client created an object of the name since the plan was made.
            ServiceError: the list can't be read.

        """
        listing = await self.scopes.latest(_scope(routes))
        for item in listing.named(*_names(run, step)):
            if not self.scopes.is_foreign(item.kind, item.id):
                continue
            if item.complete or await self.scopes.full(item) is not None:
                raise StalePlan(
                    f"created by another client since the plan was made: {quoted(item.name)} "
                    f"(id {printable(item.id)})",
                    hint="make a new plan: it compares this object with the configuration",
                )
        return listing

    async def send(
        self, run: ChangeRun, step: Create, routes: Routes, listing: Listing, permit: Permit
    ) -> None:
        """Send a create once. `listing` is the list that was read before.

        Raises:
            AmbiguousOutcome: it is unknown whether, or which, object was created.
            ServiceError: it was not created.

        """
        request, now = routes.create(step.body), self.transport.clock()
        creation = Creation(
            _scope(routes), routes, step.body, _names(run, step), listing.ids, sent_at=now
        )
        run.creation = creation
        try:
            answer = await self.transport.send(request, change_id=run.change.id, permit=permit)
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
        self.note(run, live_id)

    def note(self, run: ChangeRun, live_id: str) -> None:
        """Note the id of an object that this run created."""
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


def _differing(body: JSONObject, creation: Creation) -> str | None:
    """Return the field in which an answer differs from this create: its name, or its parent."""
    name, kind = body.get("name"), creation.routes.kind
    if not isinstance(name, str) or name.strip() != creation.names[0].strip():
        return "name"
    parent_id = id_text(body.get(kind.parent_field)) if kind.parent_field else None
    return kind.parent if parent_id != creation.scope.parent_id else None


def _scope(routes: Routes) -> Scope:
    return Scope(routes.kind.name, routes.parent_id)


def _names(run: ChangeRun, step: Create) -> tuple[str, ...]:
    return tuple(dict.fromkeys((str(step.body.get("name")), run.change.name)))
