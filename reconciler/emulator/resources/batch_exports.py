"""Batch exports: the organization path and the project path (interface 2.1, 4.1, 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.access import Caller, caller_of, organization_of, project_of
from reconciler.emulator.answers import JSONAnswer, body_of, page
from reconciler.emulator.clock import Clock, iso
from reconciler.emulator.destinations import (
    DESTINATION_TYPES,
    checked_config,
    merged,
    visible_config,
)
from reconciler.emulator.fields import Check, anything, boolean, choice, moment, nullable, text
from reconciler.emulator.refusal import invalid, not_found
from reconciler.emulator.store import Store, StoredExport

INTERVALS = ("hour", "day", "week", "every 5 minutes", "every 15 minutes")
MODELS = ("events", "persons", "sessions")

CHECKS: Mapping[str, Check] = {
    "name": text(),
    "model": nullable(choice(*MODELS)),
    "interval": choice(*INTERVALS),
    "paused": boolean,
    "last_paused_at": nullable(moment),
    "start_at": nullable(moment),
    "end_at": nullable(moment),
    "sql_query": nullable(text(blank=True)),
    "filters": nullable(anything),
}
"""Writable fields but the destination. A field that is not here is dropped without a word."""

_REQUIRED = ("name", "destination", "interval")


def shown(export: StoredExport) -> dict[str, Any]:
    """The answer for an export: every field of the interface, secrets left out."""
    body = export.body
    destination = body["destination"]
    return {
        "id": export.id,
        "team_id": export.project,
        "name": body["name"],
        "model": body.get("model") or "events",
        "destination": {
            "type": destination["type"],
            "config": visible_config(destination["type"], destination["config"]),
        },
        "interval": body["interval"],
        "paused": body.get("paused", False),
        "created_at": body["created_at"],
        "last_updated_at": body["last_updated_at"],
        "last_paused_at": body.get("last_paused_at"),
        "start_at": body.get("start_at"),
        "end_at": body.get("end_at"),
        "latest_runs": [],
        "sql_query": body.get("sql_query"),
        "schema": None,
        "filters": body.get("filters"),
    }


class BatchExports:
    """The operations. Each takes the request and answers, or raises Refusal."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def _projects(self, request: Request, caller: Caller) -> list[int]:
        """The projects whose exports the path reaches."""
        if "organization" in request.path_params:
            organization = organization_of(request.path_params, caller, self._store)
            return [each.id for each in self._store.projects(organization)]
        return [project_of(request.path_params["project"], caller, self._store).id]

    def _found(self, request: Request, caller: Caller) -> StoredExport:
        projects = self._projects(request, caller)
        try:
            identity = str(UUID(request.path_params["id"]))
        except ValueError:
            raise not_found() from None
        export = self._store.export(identity)
        if export is None or export.project not in projects:
            raise not_found()
        return export

    async def listed(self, request: Request) -> Response:
        """GET the list, newest first."""
        caller = caller_of(request, self._store)
        caller.need("batch_export:read")
        projects = self._projects(request, caller)
        count = self._store.count_exports(projects)

        def read(limit: int, offset: int) -> list[dict[str, Any]]:
            return [
                shown(each) for each in self._store.exports(projects, limit=limit, offset=offset)
            ]

        return page(request, count, read)

    async def created(self, request: Request) -> Response:
        """POST a new one. On the organization path it goes to the first project."""
        caller = caller_of(request, self._store)
        caller.need("batch_export:write")
        projects = self._projects(request, caller)
        if not projects:
            raise not_found("Project not found.")
        sent = await body_of(request)
        for name in _REQUIRED:
            if name not in sent:
                raise invalid(name, "required", "This field is required.")
        body = self._checked(sent)
        body["destination"] = checked_destination(sent["destination"], partial=False, stored={})
        now = iso(self._clock.now())
        body |= {"created_at": now, "last_updated_at": now}
        export = StoredExport(str(uuid4()), projects[0], body)
        self._store.add_exports([export])
        return JSONAnswer(shown(export), status_code=201)

    async def retrieved(self, request: Request) -> Response:
        """GET one."""
        caller = caller_of(request, self._store)
        caller.need("batch_export:read")
        return JSONAnswer(shown(self._found(request, caller)))

    async def patched(self, request: Request) -> Response:
        """PATCH: absent fields stay; a config is merged into the stored one."""
        caller = caller_of(request, self._store)
        caller.need("batch_export:write")
        export = self._found(request, caller)
        sent = await body_of(request)
        return self._written(export, sent, partial=True)

    async def put(self, request: Request) -> Response:
        """PUT: name, destination and interval are needed; what is absent stays all the same."""
        caller = caller_of(request, self._store)
        caller.need("batch_export:write")
        export = self._found(request, caller)
        sent = await body_of(request)
        for name in _REQUIRED:
            if name not in sent:
                raise invalid(name, "required", "This field is required.")
        return self._written(export, sent, partial=False)

    def _written(self, export: StoredExport, sent: dict[str, Any], *, partial: bool) -> Response:
        body = {**export.body, **self._checked(sent)}
        if "destination" in sent:
            stored = export.body["destination"]
            change = checked_destination(sent["destination"], partial=partial, stored=stored)
            body["destination"] = {
                "type": change["type"],
                "config": merged(stored["config"], change["config"]),
            }
        body["last_updated_at"] = iso(self._clock.now())
        self._store.write_export(export.id, body)
        return JSONAnswer(shown(StoredExport(export.id, export.project, body)))

    async def deleted(self, request: Request) -> Response:
        """DELETE: gone at once."""
        caller = caller_of(request, self._store)
        caller.need("batch_export:write")
        self._store.remove_export(self._found(request, caller).id)
        return Response(status_code=204)

    async def paused(self, request: Request) -> Response:
        """POST pause: pausing a paused export changes nothing."""
        return await self._toggled(request, paused=True)

    async def unpaused(self, request: Request) -> Response:
        """POST unpause."""
        return await self._toggled(request, paused=False)

    async def _toggled(self, request: Request, *, paused: bool) -> Response:
        caller = caller_of(request, self._store)
        caller.need("batch_export:write")
        export = self._found(request, caller)
        await body_of(request)
        if export.body.get("paused", False) is paused:
            return JSONAnswer(shown(export))
        now = iso(self._clock.now())
        body = {**export.body, "paused": paused, "last_updated_at": now}
        if paused:
            body["last_paused_at"] = now
        self._store.write_export(export.id, body)
        return JSONAnswer(shown(StoredExport(export.id, export.project, body)))

    def _checked(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        return {name: check(name, sent[name]) for name, check in CHECKS.items() if name in sent}


def checked_destination(sent: Any, *, partial: bool, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Type and config, checked. Raises Refusal."""
    if sent is None:
        raise invalid("destination", "null", "This field may not be null.")
    if not isinstance(sent, dict):
        raise invalid(
            "destination__non_field_errors",
            "invalid_input",
            f"Invalid data. Expected a dictionary, but got {type(sent).__name__}.",
        )
    type_name = sent.get("type", stored.get("type") if partial else None)
    if type_name is None:
        raise invalid("destination__type", "required", "This field is required.")
    if type_name not in DESTINATION_TYPES:
        raise invalid(
            "destination__type", "invalid_choice", f'"{type_name}" is not a valid choice.'
        )
    same_type = stored.get("type") == type_name
    config = checked_config(
        type_name,
        sent.get("config") or {},
        partial=partial and same_type,
        stored=stored.get("config", {}) if same_type else {},
    )
    return {"type": type_name, "config": config}
