"""Apply one change: check that it is not stale, send it, verify what the server stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.applying.recovery import create
from reconciler.applying.staleness import modifications
from reconciler.applying.verification import altered_paths, body_of_altered
from reconciler.client import Transport
from reconciler.errors import NotFound, ServiceError, StalePlan
from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.event import Done
from reconciler.model.kind import Kind
from reconciler.model.redaction import Mask
from reconciler.model.request import Repeat
from reconciler.model.routes import Routes
from reconciler.model.values import JSONObject, path_text
from reconciler.model.wording import printable


@dataclass(slots=True)
class Worker:
    """Applies single changes, and keeps the ids of created objects for their children."""

    transport: Transport
    organization: str
    kinds: Mapping[str, Kind]
    mask: Mask
    created: dict[Address, str] = field(default_factory=dict)

    async def apply(self, change: Change) -> Done:
        """Apply one change. Raises ServiceError, or StalePlan if its object was modified."""
        match change.action:
            case Action.CREATE:
                return await self._create(change)
            case Action.UPDATE | Action.PAUSE | Action.UNPAUSE:
                return await self._modify(change)
            case Action.DELETE:
                return await self._delete(change)
            case Action.REPLACE:
                return await self._replace(change)
            case Action.NO_OP:
                return Done(change, change.live_id)

    def _routes(self, change: Change) -> Routes:
        """Return the routes below the parent, which may have been created in this run."""
        kind = self.kinds[change.address.kind]
        parent_id = change.parent_id
        if parent_id is None and kind.parent and change.parent is not None and change.parent.key:
            parent_id = self.created.get(Address(kind.parent, change.parent.key))
            if parent_id is None:
                raise ServiceError(
                    f"the id of {kind.parent} '{change.parent.key}' is not known yet"
                )
        return Routes(kind, self.organization, parent_id)

    async def _create(self, change: Change) -> Done:
        routes, body = self._routes(change), change.body or {}
        live_id = await create(self.transport, change, routes.create(body))
        self.created[change.address] = live_id
        stored = await self._read(routes, live_id)
        patch = {**body_of_altered(routes.kind, body, stored), **(change.after_create or {})}
        if not patch:
            return Done(change, live_id)
        await self.transport.send(routes.patch(live_id, patch))
        stored = await self._read(routes, live_id)
        return Done(change, live_id, _notices(routes.kind, {**body, **patch}, stored))

    async def _modify(self, change: Change) -> Done:
        routes, live_id = self._routes(change), change.live_id or ""
        await self._check_fresh(change, routes)
        if change.action is not Action.UPDATE:
            # The answer may be the object or something small (docs/service.md, 15.21): not read.
            await self.transport.send(routes.action(live_id, change.action, repeat=Repeat.SAFE))
            return Done(change, live_id)
        body = change.body or {}
        answer = await self.transport.send(routes.patch(live_id, body))
        return Done(change, live_id, _notices(routes.kind, body, _object(answer.body)))

    async def _delete(self, change: Change) -> Done:
        routes, live_id = self._routes(change), change.live_id or ""
        try:
            await self._check_fresh(change, routes)
            await self.transport.send(routes.delete(live_id))
        except NotFound:
            return Done(change, live_id, ("already deleted",))
        return Done(change, live_id)

    async def _replace(self, change: Change) -> Done:
        """Create the new object first, so that no interval is lost; then delete the old one."""
        kind, old_id = self.kinds[change.address.kind], change.live_id or ""
        old = Routes(kind, self.organization, change.old_parent_id)
        await self._check_fresh(change, old)
        done = await self._create(change)
        try:
            await self.transport.send(old.delete(old_id))
        except NotFound:
            return Done(change, done.live_id, (*done.notices, "the old object is already deleted"))
        except ServiceError as error:
            error.hint = (
                f"both the new object (id {printable(str(done.live_id))}) and the old one "
                f"(id {printable(old_id)}) exist: delete one, or pin one by `id`, then plan again"
            )
            raise
        return done

    async def _read(self, routes: Routes, live_id: str) -> Mapping[str, Any]:
        return _object((await self.transport.send(routes.read(live_id))).body)

    async def _check_fresh(self, change: Change, routes: Routes) -> None:
        """Raise StalePlan if the object was modified since the plan was made."""
        body = await self._read(routes, change.live_id or "")
        modified = modifications(routes.kind, change, body, mask=self.mask)
        if modified:
            raise StalePlan(
                f"modified since the plan was made: {modified}",
                hint="make a new plan and have it reviewed",
            )


def _object(body: object) -> Mapping[str, Any]:
    return body if isinstance(body, Mapping) else {}


def _notices(kind: Kind, sent: JSONObject, stored: JSONObject) -> tuple[str, ...]:
    return tuple(
        f"the server ignored or altered {path_text(path)}: it reads back different"
        for path in altered_paths(kind, sent, stored)
    )
