"""Batch exports: fields by dialect, and operations of the organization and project paths.

Sources: service.md, 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator import fields
from reconciler.emulator.access import Call, Caller, export_of
from reconciler.emulator.activity import Activity, deletion_change, pause_change
from reconciler.emulator.answers import JSONAnswer, body_of, page
from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.destinations import Destinations
from reconciler.emulator.queries import BadQuery, check_on_events, check_parsable, rewritten
from reconciler.emulator.refusal import Refusal, invalid, not_authenticated, not_found, server_error
from reconciler.emulator.runs import Runs
from reconciler.emulator.store import StoredExport
from reconciler.emulator.timeline import Timeline
from reconciler.emulator.world import DATA_PIPELINES, World

_REQUIRED = ("name", "destination", "interval")
_OFFSETS = {
    "offset_day": (("week",), "non-weekly"),
    "offset_hour": (("day", "week"), "non-daily/weekly"),
}
"""The intervals that take an offset, and the others as their refusal names them."""
_FOR_MODEL = {
    "filters": "events",
    "hogql_modifiers": "hogql",
    "primary_key": "hogql",
    "version_key": "hogql",
}
_FILTER_TYPES = ("event", "hogql", "person")


@dataclass(frozen=True, slots=True)
class Write:
    """A write of an export.

    project
        The id of the project that the export is in.
    stored
        The export as it is before the write; None for a create.
    partial
        True for a PATCH, which needs no required fields.
    on_organization
        Whether the organization path is used, which has no project to validate with.
    planted
        Whether the export comes from the seed. It may be older than the rules of a create.
    """

    project: int
    stored: StoredExport | None = None
    partial: bool = False
    on_organization: bool = False
    planted: bool = False


class ExportFields:
    """The rules of one server."""

    def __init__(self, world: World, runs: Runs) -> None:
        self._world = world
        self._runs = runs
        self._checks = _checks(world)
        self.destinations = Destinations(world)

    def checked(self, sent: Mapping[str, Any], write: Write) -> dict[str, Any]:
        """Return the fields to store, those of the body only. Raise Refusal.

        Unknown and read-only fields are dropped. A destination is returned whole.
        """
        if write.on_organization and write.stored is not None and self._crashes(sent):
            raise server_error()
        dialect = self._world.dialect
        checked = self._each_checked(sent, write)
        if write.stored is None or dialect.newest:
            for name in ("interval", "model"):
                self._world.need_flag(f"{name}:{checked.get(name)}")
        if dialect.query_field in sent:
            checked["query"] = self._query(sent[dialect.query_field])
        if dialect.newest:
            self._check_schedule(sent, checked, write)
            self._check_model(checked, write)
        _check_http(checked)
        if dialect.older and not write.planted:
            self._check_addon(write.project)
        return checked

    def _each_checked(self, sent: Mapping[str, Any], write: Write) -> dict[str, Any]:
        checked: dict[str, Any] = {}
        for name, check in self._checks.items():
            if name not in sent:
                if name in _REQUIRED and not write.partial:
                    raise invalid(name, "This field is required.", "required")
            elif check is None:
                checked[name] = self._destination(sent[name], write)
            else:
                checked[name] = check(name, sent[name])
        return checked

    def _check_addon(self, project: int) -> None:
        """Raise Refusal where the organization lacks the paid feature of batch exports (1.1)."""
        stored = self._world.store.project(project)
        if stored is not None and DATA_PIPELINES not in self._world.features_of(
            stored.organization
        ):
            raise invalid(None, "The Data Pipelines addon is required for batch exports.")

    def _destination(self, sent: Any, write: Write) -> dict[str, Any]:
        if write.stored is None:
            return self.destinations.created(sent, project=write.project, planted=write.planted)
        return self.destinations.changed(
            sent,
            write.stored.body["destination"],
            project=None if write.on_organization else write.project,
            partial=write.partial,
        )

    def _crashes(self, sent: Mapping[str, Any]) -> bool:
        """Return whether a change needs a project where the path has none (inferred, 1.10)."""
        dialect = self._world.dialect
        if dialect.older:
            return True
        gated = f"interval:{sent.get('interval')}" in dialect.flags
        return dialect.real and (gated or sent.get(dialect.query_field) is not None)

    def _query(self, value: Any) -> Any:
        dialect = self._world.dialect
        if dialect.query_shown:
            return fields.nullable(fields.text(blank=not dialect.real))(dialect.query_field, value)
        query = fields.text()(dialect.query_field, value)
        self._parse(rewritten, query)
        return query

    def _parse(self, parser: Callable[[str], object], query: str) -> None:
        try:
            parser(query)
        except BadQuery as bad:
            raise invalid(self._world.dialect.query_field, str(bad)) from None

    def _check_schedule(
        self, sent: Mapping[str, Any], checked: dict[str, Any], write: Write
    ) -> None:
        """Check that offsets fit the interval, and reset those that do not stay (1.2).

        A PATCH keeps the offsets that the interval takes; a PUT resets those not sent (1.6). Of a
        week, one offset that is sent resets the other.
        """
        stored = write.stored
        interval = checked.get("interval", stored.body["interval"] if stored else None)
        for name, (intervals, others) in _OFFSETS.items():
            if checked.get(name) is not None and interval not in intervals:
                raise invalid(name, f"{name} is not applicable for {others} intervals")
        if stored is not None and "interval" not in sent and set(_OFFSETS) & set(sent):
            # The server sets a property that has no setter.
            raise server_error()
        either = interval == "week" and bool(set(_OFFSETS) & set(sent))
        for name, (intervals, _) in _OFFSETS.items():
            if "interval" in checked and (either or not write.partial or interval not in intervals):
                checked.setdefault(name, None)
        if "timezone" in checked:
            checked["timezone"] = checked["timezone"] or "UTC"

    def _check_model(self, checked: Mapping[str, Any], write: Write) -> None:
        """Check the fields that depend on the model, with what is stored merged in (1.1)."""
        stored = write.stored.body if write.stored is not None else {}
        body = {**stored, **checked}
        model = _model(body)
        if write.stored is not None and model != _model(stored):
            detail = "Changing models is not supported. Create a new batch export instead."
            raise invalid("model", detail)
        for name, only in _FOR_MODEL.items():
            if checked.get(name) is not None and model != only:
                raise _for_model(name, only, model)
        if model == "hogql":
            self._check_hogql(body)
        elif checked.get("query") is not None and not write.planted:
            self._check_older_query(checked["query"], model, write.project)

    def _check_hogql(self, body: Mapping[str, Any]) -> None:
        if body.get("query") is None:
            raise invalid("hogql_query", "'hogql_query' is required when 'model' is 'hogql'")
        self._parse(check_parsable, body["query"])
        if body.get("incremental_mode") == "MERGE" and not body.get("primary_key"):
            detail = "'primary_key' is required when 'incremental_mode' is 'MERGE'"
            raise invalid("primary_key", detail)

    def _check_older_query(self, query: str, model: str, project: int) -> None:
        """Check a query on another model: events, in a project that already has one (1.9)."""
        exports = self._world.store.exports([project])
        if model != "events" or not any(
            export.body.get("query") and export.body.get("model") != "hogql" for export in exports
        ):
            raise _for_model("hogql_query", "hogql", model)
        self._parse(check_on_events, query)

    def shown_all(self, exports: Sequence[StoredExport]) -> list[dict[str, Any]]:
        """Return the answers for a page of exports; their latest runs cost one query."""
        latest = self._runs.latest([export.id for export in exports])
        return [self.shown(export, latest=latest[export.id]) for export in exports]

    def shown(
        self,
        export: StoredExport,
        *,
        reading: bool = True,
        latest: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Return the answer for an export, without its secrets."""
        body, dialect = export.body, self._world.dialect
        if latest is None:
            latest = self._runs.latest([export.id])[export.id]
        answer: dict[str, Any] = {
            "id": export.id,
            "team_id": export.project,
            "name": body["name"],
            # A model that was set to null or blank stays so in 2025.
            "model": body.get("model", "events") if dialect.real else _model(body),
            "destination": self.destinations.shown(body["destination"], reading=reading),
            "interval": body["interval"],
            "paused": body.get("paused", False),
            "created_at": body["created_at"],
            "last_updated_at": body["last_updated_at"],
            "last_paused_at": body.get("last_paused_at"),
            "start_at": body.get("start_at"),
            "end_at": body.get("end_at"),
            "latest_runs": latest,
            "schema": self._schema(body.get("query")),
        }
        if dialect.query_shown:
            answer[dialect.query_field] = body.get("query")
        if dialect.real:
            answer["filters"] = body.get("filters")
        if dialect.newest:
            answer |= self._computed(body)
        return answer

    def _schema(self, query: str | None) -> dict[str, Any] | None:
        if query is None or self._world.dialect.query_shown:
            return None
        printed, columns = rewritten(query)
        return {"fields": columns, "values": {}, "hogql_query": printed}

    def _computed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that the newest server computes on every read (1.1)."""
        interval = body["interval"]
        return {
            "timezone": body.get("timezone") or "UTC",
            "offset_day": (body.get("offset_day") or 0) if interval == "week" else None,
            "offset_hour": (body.get("offset_hour") or 0) if interval in ("day", "week") else None,
            "hogql_modifiers": body.get("hogql_modifiers"),
            "primary_key": body.get("primary_key"),
            "version_key": body.get("version_key"),
            "incremental_mode": body.get("incremental_mode") or "APPEND",
        }


def _checks(world: World) -> Mapping[str, fields.Check | None]:
    """Return the checks in the order in which the service reports problems.

    The destination is None: `Destinations` checks it against the stored one.
    """
    dialect = world.dialect
    blank = ("",) if not dialect.newest and dialect.real else ()
    model = fields.choice(*dialect.models, *blank)
    keys = fields.nullable(fields.texts(blank=False))
    checks: dict[str, fields.Check | None] = {
        "name": fields.text(),
        "model": fields.nullable(model) if not dialect.newest else model,
        "destination": None,
        "interval": fields.choice(*dialect.intervals),
        "paused": fields.boolean,
        "last_paused_at": fields.nullable(fields.moment),
        "start_at": fields.nullable(fields.moment),
        "end_at": fields.nullable(fields.moment),
    }
    if dialect.real:
        checks["filters"] = fields.nullable(_filters if dialect.newest else fields.anything)
    if dialect.newest:
        checks |= {
            "timezone": fields.nullable(fields.zone),
            "offset_day": fields.nullable(fields.integer(least=0, most=6)),
            "offset_hour": fields.nullable(fields.integer(least=0, most=23)),
            "hogql_modifiers": fields.nullable(fields.anything),
            "primary_key": keys,
            "version_key": keys,
            "incremental_mode": fields.choice("APPEND", "MERGE"),
        }
    return checks


def _model(body: Mapping[str, Any]) -> str:
    return str(body.get("model") or "events")


def _check_http(checked: Mapping[str, Any]) -> None:
    """Check type against model where a body has both; the service names no field (1.3)."""
    destination = checked.get("destination")
    if destination is None or destination["type"] != "HTTP":
        return
    if _model(checked) != "events":
        raise invalid(None, "HTTP batch exports only support the events model")


def _for_model(name: str, only: str, model: str) -> Refusal:
    """Return the refusal of a field that another model takes."""
    return invalid(name, f"'{name}' is only supported for '{only}' not '{model}' model")


def _filters(attr: str, value: Any) -> Any:
    if not isinstance(value, list):
        raise invalid(attr, "'filters' should be an array of filters")
    for entry in value:
        if not isinstance(entry, dict):
            raise invalid(attr, "Each filter must be an object")
        if {"data_interval_start", "data_interval_end"} & set(entry):
            detail = (
                "'data_interval_start' and 'data_interval_end' are run attributes and not "
                "'filters'. Trigger a backfill if you wish to manually control which periods to "
                "batch export."
            )
            raise invalid(attr, detail)
        if entry.get("type") not in _FILTER_TYPES:
            listed = ", ".join(repr(name) for name in _FILTER_TYPES)
            raise invalid(attr, f"Each filter must have a 'type' of one of: {listed}")
    return value


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
        if on_organization and self._world.dialect.real:
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
        backfill = (await body_of(call.request)).get("backfill", False)
        if self._world.dialect.newest:
            backfill = fields.boolean("backfill", backfill)
        since = export.body.get("last_paused_at")
        answer = self._toggled(call, export, paused=False)
        if backfill and since is not None and export.body.get("paused", False):
            now = self._world.clock.now()
            self._timeline.backfills.begin(export, parsed(since), now)
        return answer

    def _toggled(self, call: Call, export: StoredExport, *, paused: bool) -> Response:
        small = self._world.dialect.real
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
