"""The activity log of batch exports: which writes make an entry, and what the entry holds.

Sources: service.md, 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from starlette.requests import Request

from reconciler.emulator.access import Caller
from reconciler.emulator.clock import iso
from reconciler.emulator.queries import BadQuery, rewritten
from reconciler.emulator.store import StoredExport
from reconciler.emulator.world import World

SCOPE = "BatchExport"
LONGEST_CLIENT = 32
_FIELDS = ("name", "model", "interval", "start_at", "end_at", "filters")


def pause_change(*, paused: bool) -> dict[str, Any]:
    """Return the change of a pause or an unpause.

    The field is `enabled`, with the values of `paused`: after true means paused.
    """
    return _change("enabled", not paused, paused)


class Activity:
    """Records entries in the dialect's form."""

    def __init__(self, world: World) -> None:
        self._world = world

    def record(
        self,
        export: StoredExport,
        activity: str,
        changes: Sequence[Mapping[str, Any]],
        caller: Caller | None,
        request: Request | None,
        at: datetime | None = None,
    ) -> None:
        """Record an entry: `created` without changes, or `updated` with at least one.

        A caller of None is the service itself. Before 2026 a write by key counts as the
        service's, too. `at` is the moment of the entry, now unless given.
        """
        if activity == "updated" and not changes:
            return
        store = self._world.store
        project = store.project(export.project)
        if project is None:
            return
        named = caller if self._world.dialect.newest_activity else None
        user = store.user(named.user) if named is not None else None
        client = request.headers.get("x-posthog-client") if request is not None else None
        entry = {
            "id": str(uuid4()),
            "user": user,
            "is_system": user is None,
            "activity": activity,
            "item_id": export.id,
            "scope": SCOPE,
            "name": f"'{export.body['name']}' ({export.body['destination']['type']})",
            "changes": [{"type": SCOPE, **change} for change in changes],
            "created_at": iso(at or self._world.clock.now()),
            "client": client[:LONGEST_CLIENT] if client else None,
            "ip_address": request.client.host if request is not None and request.client else None,
            "team_id": project.id,
            "organization_id": project.organization,
        }
        store.add_activity(project.organization, project.id, entry)

    def changes(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the logged changes between two bodies of an export.

        Edits of the destination are not logged: the export refers to the same row.
        """
        old, new = self._logged(before), self._logged(after)
        return [_change(name, old[name], new[name]) for name in old if old[name] != new[name]]

    def _logged(self, body: Mapping[str, Any]) -> dict[str, Any]:
        logged = {name: body.get(name) for name in _FIELDS}
        logged |= {
            "model": body.get("model") or "events",
            "schema": _schema(body.get("query")),
            "enabled": body.get("paused", False),
        }
        if self._world.dialect.integrations:
            logged |= {
                "timezone": body.get("timezone") or "UTC",
                "interval_offset": _offset(body),
            }
        return logged


def deletion_change() -> dict[str, Any]:
    """Return the change of a deletion, which is an update of `deleted`."""
    return _change("deleted", before=False, after=True)


def _change(field: str, before: Any, after: Any) -> dict[str, Any]:
    action = "created" if before is None else "deleted" if after is None else "changed"
    return {"action": action, "field": field, "before": before, "after": after}


def _schema(query: str | None) -> dict[str, Any] | None:
    if query is None:
        return None
    try:
        text, fields = rewritten(query)
    except BadQuery:
        return {"fields": [], "values": {}, "hogql_query": query}
    return {"fields": fields, "values": {}, "hogql_query": text}


def _offset(body: Mapping[str, Any]) -> int | None:
    """Return the seconds after the start of the interval, None if no offset is set."""
    day, hour = body.get("offset_day"), body.get("offset_hour")
    if day is None and hour is None:
        return None
    return (day or 0) * 86_400 + (hour or 0) * 3_600
