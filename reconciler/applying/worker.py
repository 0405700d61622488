"""One change to its calls: look, act, compare the answer with what was sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.applying.recovery import create_carefully
from reconciler.applying.staleness import modifications_text, modified_fields
from reconciler.applying.verification import altered_fields, body_of_altered
from reconciler.client import Service
from reconciler.errors import NotFound, ServiceError, StalePlan
from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.event import Done
from reconciler.model.kind import Kind
from reconciler.model.values import JSONObject
from reconciler.model.wording import printable
from reconciler.planning.masking import Mask
from reconciler.planning.requests import (
    Place,
    create_request,
    delete_request,
    patch_request,
    read_request,
    toggle_request,
)


class Worker:
    """Carries out single changes, and remembers the ids of what it created for their children."""

    def __init__(self, service: Service, kinds: Sequence[Kind], *, mask: Mask) -> None:
        self._service = service
        self._mask = mask
        self._kinds = {kind.name: kind for kind in kinds}
        self._created: dict[Address, str] = {}

    async def carry_out(self, change: Change) -> Done:
        """Make one change. Raises ServiceError, or StalePlan if somebody else was faster."""
        match change.action:
            case Action.CREATE:
                return await self._create(change)
            case Action.UPDATE:
                return await self._update(change)
            case Action.PAUSE | Action.UNPAUSE:
                return await self._toggle(change)
            case Action.DELETE:
                return await self._delete(change)
            case Action.REPLACE:
                return await self._replace(change)
            case Action.NO_OP:
                return Done(change, change.live_id)

    def _place(self, change: Change, *, old: bool = False) -> Place:
        parent_id = change.old_parent_id if old else change.parent_id
        kind = self._kinds[change.address.kind]
        ref = change.parent
        if not old and parent_id is None and ref is not None and ref.key and kind.parent:
            parent_id = self._created.get(Address(kind.parent, ref.key))
            if parent_id is None:
                raise ServiceError(f"{change.address}: its {kind.parent} '{ref.key}' has no id yet")
        return Place(self._service.organization, parent_id)

    async def _create(self, change: Change) -> Done:
        kind = self._kinds[change.address.kind]
        place = self._place(change)
        body = change.body or {}
        created = await create_carefully(
            self._service, kind, change, create_request(kind, place, body)
        )
        live_id = str(created["id"])
        self._created[change.address] = live_id
        notices = await self._settle(change, kind, place, live_id, sent=body)
        return Done(change, live_id, notices)

    async def _settle(
        self, change: Change, kind: Kind, place: Place, live_id: str, *, sent: JSONObject
    ) -> tuple[str, ...]:
        """Re-read what was created, patch once what did not stick, and tell what still did not."""
        answer = await self._read(kind, place, live_id)
        patch = {**body_of_altered(kind, sent, answer), **(change.after_create or {})}
        if not patch:
            return ()
        await self._service.send(patch_request(kind, place, live_id, patch))
        answer = await self._read(kind, place, live_id)
        return _notices(altered_fields(kind, {**sent, **patch}, answer))

    async def _update(self, change: Change) -> Done:
        kind, place, live_id = self._target(change)
        await self._check_fresh(change, kind, place, live_id)
        body = change.body or {}
        answer = await self._service.send(patch_request(kind, place, live_id, body))
        answered = answer.body if isinstance(answer.body, Mapping) else {}
        return Done(change, live_id, _notices(altered_fields(kind, body, answered)))

    async def _toggle(self, change: Change) -> Done:
        kind, place, live_id = self._target(change)
        await self._check_fresh(change, kind, place, live_id)
        # The answer may be the object or something small (trap 21): it is not looked at.
        await self._service.send(toggle_request(kind, place, live_id, change.action))
        return Done(change, live_id)

    async def _delete(self, change: Change) -> Done:
        kind, place, live_id = self._target(change)
        try:
            await self._check_fresh(change, kind, place, live_id)
            await self._service.send(delete_request(kind, place, live_id))
        except NotFound:
            return Done(change, live_id, ("it was gone already",))
        return Done(change, live_id)

    async def _replace(self, change: Change) -> Done:
        """The new one first, so that no interval is lost; then the old one goes."""
        kind = self._kinds[change.address.kind]
        old_id = change.live_id or ""
        old_place = self._place(change, old=True)
        await self._check_fresh(change, kind, old_place, old_id)
        done = await self._create(change)
        try:
            await self._service.send(delete_request(kind, old_place, old_id))
        except NotFound:
            return Done(change, done.live_id, (*done.notices, "the old one was gone already"))
        except ServiceError as error:
            error.hint = (
                f"the new one exists (id {printable(str(done.live_id))}), and so does the old one "
                f"(id {printable(old_id)}): delete the one that is not meant, or pin one by `id`, "
                "and plan again"
            )
            raise
        return done

    def _target(self, change: Change) -> tuple[Kind, Place, str]:
        return self._kinds[change.address.kind], self._place(change), change.live_id or ""

    async def _read(self, kind: Kind, place: Place, live_id: str) -> Mapping[str, Any]:
        answer = await self._service.send(read_request(kind, place, live_id))
        return answer.body if isinstance(answer.body, Mapping) else {}

    async def _check_fresh(self, change: Change, kind: Kind, place: Place, live_id: str) -> None:
        """Raises StalePlan if the object is no longer what the plan saw."""
        body = await self._read(kind, place, live_id)
        fields = modified_fields(kind, change, body, mask=self._mask)
        if fields:
            raise StalePlan(
                f"somebody else changed it since the plan was made: {modifications_text(fields)}",
                hint="plan again, and have the new plan reviewed",
            )


def _notices(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        f"the server ignored or altered {path}: it reads back different from what was sent"
        for path in paths
    )
