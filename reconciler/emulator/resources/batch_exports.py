"""Batch exports: the organization path and the project path (service.md, 1)."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.access import Call, Caller, export_of
from reconciler.emulator.activity import Activity, deletion_change, pause_change
from reconciler.emulator.answers import JSONAnswer, body_of, page
from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.fields import boolean
from reconciler.emulator.refusal import not_authenticated, not_found, server_error
from reconciler.emulator.resources.export_fields import ExportFields, Write
from reconciler.emulator.store import StoredExport
from reconciler.emulator.timeline import Timeline
from reconciler.emulator.world import World


class BatchExports:
    """The operations. Each takes a call and returns the answer, or raises Refusal."""

    def __init__(self, world: World, timeline: Timeline) -> None:
        self._world = world
        self._store = world.store
        self._timeline = timeline
        self._activity = Activity(world)
        self.fields = ExportFields(world, timeline.runs)

    def _projects_of(self, call: Call) -> list[int]:
        """Return the ids of the projects whose exports the path reaches."""
        if call.project is not None:
            return [call.project.id]
        return self._store.project_ids(str(call.organization))

    def _writable(self, call: Call) -> StoredExport:
        """Return the export that the path names, after making all runs that are due."""
        export = export_of(call, self._store)
        self._timeline.catch_up(export)
        return export

    async def listed(self, call: Call) -> Response:
        """GET the list, newest first. Workflows exports are hidden in it (1.3)."""
        projects = self._projects_of(call)

        def read(limit: int, offset: int) -> list[dict[str, Any]]:
            exports = self._store.listed_exports(projects, limit=limit, offset=offset)
            return self.fields.shown_all(exports)

        return page(call.request, self._store.count_listed_exports(projects), read)

    async def created(self, call: Call) -> Response:
        """POST a new one. On the organization path it goes to the first project, or fails."""
        projects = self._projects_of(call)
        on_organization = call.organization is not None
        sent = await body_of(call.request)
        if not projects:
            raise not_found("Project not found.")
        write = Write(projects[0], on_organization=on_organization)
        body = self.fields.checked(sent, write)
        if on_organization and not self._world.dialect.creates_for_organization:
            # The serializer asks for a team that this path does not have (1.10, 15.5).
            raise server_error()
        moment = self._world.clock.now()
        body |= {"created_at": iso(moment), "last_updated_at": iso(moment)}
        export = StoredExport(str(uuid4()), projects[0], body)
        with self._store.transaction():
            self._store.add_exports([export])
            self._timeline.begin(export, moment)
            self._activity.record(export, "created", [], call.caller, call.request)
        return JSONAnswer(self.fields.shown(export, reading=False), status_code=201)

    async def retrieved(self, call: Call) -> Response:
        """GET one."""
        return JSONAnswer(self.fields.shown(export_of(call, self._store)))

    async def patched(self, call: Call) -> Response:
        """PATCH: absent fields stay; a config is merged into the stored one."""
        export = self._writable(call)
        return self._written(call, export, await body_of(call.request), partial=True)

    async def put(self, call: Call) -> Response:
        """PUT: name, destination and interval are required; other absent fields stay."""
        export = self._writable(call)
        return self._written(call, export, await body_of(call.request), partial=False)

    def _written(
        self, call: Call, export: StoredExport, sent: dict[str, Any], *, partial: bool
    ) -> Response:
        on_organization = call.organization is not None
        write = Write(export.project, export, partial=partial, on_organization=on_organization)
        body = {**export.body, **self.fields.checked(sent, write)}
        moment = self._world.clock.now()
        body["last_updated_at"] = iso(moment)
        changed = StoredExport(export.id, export.project, body)
        changes = self._activity.changes(export.body, body)
        self._store_change(changed, changes, moment, call.caller, call.request)
        return JSONAnswer(self.fields.shown(changed, reading=False))

    def _store_change(
        self,
        export: StoredExport,
        changes: list[dict[str, Any]],
        moment: datetime,
        caller: Caller,
        request: Request | None,
    ) -> None:
        with self._store.transaction():
            self._store.write_export(export.id, export.body)
            self._timeline.begin(export, moment)
            self._activity.record(export, "updated", changes, caller, request)

    async def deleted(self, call: Call) -> Response:
        """DELETE: gone at once, and its running backfills are cancelled."""
        export = self._writable(call)
        with self._store.transaction():
            self._store.remove_export(export.id)
            self._activity.record(export, "updated", [deletion_change()], call.caller, call.request)
        return Response(status_code=204)

    async def paused(self, call: Call) -> Response:
        """POST pause: the body is not read; pausing a paused export changes nothing."""
        return self._toggled(call, self._writable(call), paused=True)

    async def unpaused(self, call: Call) -> Response:
        """POST unpause; with `backfill`, also backfill what the pause missed."""
        export = self._writable(call)
        if not call.caller.current_project:
            raise not_authenticated()
        wanted = (await body_of(call.request)).get("backfill", False)
        backfill = boolean("backfill", wanted) if self._world.dialect.integrations else bool(wanted)
        since = export.body.get("last_paused_at")
        answer = self._toggled(call, export, paused=False)
        if backfill and since is not None and export.body.get("paused", False):
            now = self._world.clock.now()
            self._timeline.backfills.begin(export, parsed(since), now)
        return answer

    def _toggled(self, call: Call, export: StoredExport, *, paused: bool) -> Response:
        small = self._world.dialect.small_answers
        export = self.toggle(export, call.caller, call.request, paused=paused)
        return JSONAnswer({"paused": paused} if small else self.fields.shown(export))

    def toggle(
        self, export: StoredExport, caller: Caller, request: Request | None, *, paused: bool
    ) -> StoredExport:
        """Pause or unpause an export, unless it is, and return it."""
        if export.body.get("paused", False) is not paused:
            moment = self._world.clock.now()
            body = {**export.body, "paused": paused, "last_updated_at": iso(moment)}
            if paused:
                body["last_paused_at"] = iso(moment)
            export = StoredExport(export.id, export.project, body)
            changes = [pause_change(paused=paused)]
            self._store_change(export, changes, moment, caller, request)
        return export
