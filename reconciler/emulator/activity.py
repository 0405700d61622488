"""The activity log of batch exports: which writes make an entry, and its list (service.md, 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias
from uuid import uuid4

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.access import Call, Caller, project_in
from reconciler.emulator.answers import Mark, cursor_page
from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.queries import BadQuery, rewritten
from reconciler.emulator.refusal import Refusal
from reconciler.emulator.store import StoredExport
from reconciler.emulator.world import AUDIT_LOGS, World

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
        named = caller if self._world.dialect.newest else None
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
        if self._world.dialect.newest:
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


_PAGE = 100
_LONGEST_PAGE = 1000
_Entry: TypeAlias = dict[str, Any]


class ActivityLog:
    """The operations. Each takes a call and returns the answer, or raises Refusal."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._newest = world.dialect.newest

    async def listed(self, call: Call) -> Response:
        """GET activity_log by scope, item and user: cursor pages, newest first."""
        project, params = project_in(call), call.request.query_params
        if self._newest and AUDIT_LOGS not in self._world.features_of(project.organization):
            detail = "Audit logs are part of a paid plan that this organization does not have."
            raise Refusal(402, "server_error", "payment_required", detail)
        scopes = [*_words(params, "scope"), *_words(params, "scopes")]
        users = _words(params, "user")
        entries = sorted(
            (
                self._shown(entry)
                for entry in self._world.store.activity(project.id, _words(params, "item_id"))
                if (not scopes or entry["scope"] in scopes) and _is_of(entry, users)
            ),
            key=_mark,
            reverse=True,
        )
        return cursor_page(call.request, entries, _mark, size=_page_size(params), descending=True)

    def _shown(self, entry: _Entry) -> dict[str, Any]:
        answer = {
            **{name: entry[name] for name in ("id", "user", "activity", "item_id", "scope")},
            "unread": False,
            "was_impersonated": False,
            "is_system": entry["is_system"],
            "organization_id": entry["organization_id"],
            "detail": {
                "name": entry["name"],
                "short_id": None,
                "type": None,
                "changes": entry["changes"],
                "trigger": None,
                "context": None,
            },
            "created_at": entry["created_at"],
        }
        if self._newest:
            answer |= {name: entry[name] for name in ("client", "ip_address", "team_id")}
        return answer


def _is_of(entry: _Entry, users: Sequence[str]) -> bool:
    """Return whether an entry is of one of these users, each named by id or uuid; none mean all."""
    user = entry["user"] or {}
    return not users or str(user.get("id")) in users or user.get("uuid") in users


def _words(params: QueryParams, name: str) -> list[str]:
    """Return the values of a parameter that is repeated or has commas."""
    return [word for value in params.getlist(name) for word in value.split(",") if word]


def _mark(entry: _Entry) -> Mark:
    return parsed(entry["created_at"]).timestamp(), entry["id"]


def _page_size(params: QueryParams) -> int:
    text = params.get("page_size", "")
    size = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    return min(size, _LONGEST_PAGE) if size else _PAGE
