"""The activity log of batch exports: which writes make an entry, and its lists (service.md, 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias
from uuid import uuid4

import orjson
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.access import Call, Caller
from reconciler.emulator.answers import JSONAnswer, Mark, cursor_page, link
from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.fields import boolean, moment
from reconciler.emulator.queries import BadQuery, rewritten
from reconciler.emulator.refusal import Refusal, forbidden, not_found
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
_Test: TypeAlias = Callable[[_Entry], bool]


class ActivityLog:
    """The operations. Each takes a call and returns the answer, or raises Refusal."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._store = world.store
        self._newest = world.dialect.newest

    async def listed(self, call: Call) -> Response:
        """GET activity_log: by scope, item and user."""
        params = call.request.query_params
        scopes = [*_words(params, "scope"), *_words(params, "scopes")]
        return self._page(call, _words(params, "item_id"), scopes, _users(_words(params, "user")))

    async def advanced(self, call: Call) -> Response:
        """GET advanced_activity_logs: with more filters."""
        params = call.request.query_params
        items = [*_words(params, "item_id"), *_words(params, "item_ids")]
        scopes = [*_words(params, "scope"), *_words(params, "scopes")]
        return self._page(call, items, scopes, *_advanced(params))

    async def filters(self, call: Call) -> Response:
        """GET available_filters: the values that the entries have."""
        self._check_access(call)
        entries = self._entries(call, ())
        users = {entry["user"]["uuid"]: entry["user"] for entry in entries if entry["user"]}
        static = {
            "users": [
                {"value": uuid, "label": f"{user['first_name']} {user['last_name']}".strip()}
                for uuid, user in sorted(users.items())
            ],
            "scopes": _values(entry["scope"] for entry in entries),
            "activities": _values(entry["activity"] for entry in entries),
            "clients": _values(entry["client"] for entry in entries if entry["client"]),
        }
        return JSONAnswer({"static_filters": static, "detail_fields": {}})

    def _entries(self, call: Call, items: Sequence[str]) -> list[_Entry]:
        project = call.project.id if call.project is not None else None
        return self._store.activity(organization=call.organization, project=project, items=items)

    def _page(
        self, call: Call, items: Sequence[str], scopes: Sequence[str], *tests: _Test
    ) -> Response:
        self._check_access(call)
        request = call.request
        ascending = self._newest and request.query_params.get("ordering") == "created_at"
        entries = sorted(
            (
                entry
                for entry in self._entries(call, items)
                if (not scopes or entry["scope"] in scopes) and all(test(entry) for test in tests)
            ),
            key=_mark,
            reverse=not ascending,
        )
        size = _page_size(request)
        if "page" in request.query_params:
            return self._numbered(request, entries, size)
        shown = [self._shown(entry) for entry in entries]
        return cursor_page(request, shown, _mark, size=size, descending=not ascending)

    def _numbered(self, request: Request, entries: Sequence[_Entry], size: int) -> Response:
        """Return a page by its number, with a count. Raise Refusal (404) beyond the last one."""
        last = max(1, -(-len(entries) // size))
        number = _whole(request.query_params["page"]) or 0
        if not 1 <= number <= last:
            raise not_found("Invalid page.")
        links = {
            name: link(request, {**request.query_params, "page": str(there)})
            if 1 <= there <= last
            else None
            for name, there in (("next", number + 1), ("previous", number - 1))
        }
        results = [self._shown(entry) for entry in entries[(number - 1) * size : number * size]]
        return JSONAnswer({"count": len(entries), **links, "results": results})

    def _check_access(self, call: Call) -> None:
        """Raise Refusal (402) if the organization lacks the audit log.

        That of a whole organization is for its admins and owners (403).
        """
        if call.organization is not None and not call.caller.admin:
            raise forbidden("You must be an organization admin or owner to read its activity.")
        if not self._newest:
            return
        organization = call.organization or (call.project.organization if call.project else "")
        if AUDIT_LOGS not in self._world.features_of(organization):
            detail = "Audit logs are part of a paid plan that this organization does not have."
            raise Refusal(402, "server_error", "payment_required", detail)

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


def _advanced(params: QueryParams) -> list[_Test]:
    """Return the tests of the filters that only the advanced path takes. Raise Refusal (400)."""
    tests = [_users([*_words(params, "user"), *_words(params, "users")])]
    if "start_date" in params:
        start = parsed(moment("start_date", params["start_date"]))
        tests.append(lambda entry: parsed(entry["created_at"]) >= start)
    if "end_date" in params:
        end = parsed(moment("end_date", params["end_date"]))
        tests.append(lambda entry: parsed(entry["created_at"]) <= end)
    if activities := _words(params, "activities"):
        tests.append(lambda entry: entry["activity"] in activities)
    if clients := _words(params, "clients"):
        tests.append(lambda entry: entry["client"] in clients)
    if "is_system" in params:
        system = boolean("is_system", params["is_system"])
        tests.append(lambda entry: entry["is_system"] is system)
    if text := params.get("search_text", "").lower():
        tests.append(lambda entry: text in _searched(entry))
    return tests


def _searched(entry: _Entry) -> str:
    return orjson.dumps([entry["name"], entry["changes"]]).decode().lower()


def _users(wanted: Sequence[str]) -> _Test:
    """Return a test for entries of users, each named by id or uuid; no names mean all."""

    def test(entry: _Entry) -> bool:
        user = entry["user"] or {}
        return not wanted or str(user.get("id")) in wanted or user.get("uuid") in wanted

    return test


def _words(params: QueryParams, name: str) -> list[str]:
    """Return the values of a parameter that is repeated or has commas."""
    return [word for value in params.getlist(name) for word in value.split(",") if word]


def _values(words: Iterable[str]) -> list[dict[str, str]]:
    return [{"value": word} for word in sorted(set(words))]


def _mark(entry: _Entry) -> Mark:
    return parsed(entry["created_at"]).timestamp(), entry["id"]


def _page_size(request: Request) -> int:
    size = _whole(request.query_params.get("page_size", ""))
    return min(size, _LONGEST_PAGE) if size else _PAGE


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
