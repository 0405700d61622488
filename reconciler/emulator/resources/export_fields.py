"""The fields of a batch export: what a body may hold, and what an answer shows, by server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.emulator.destinations import Destinations
from reconciler.emulator.fields import (
    Check,
    anything,
    boolean,
    choice,
    integer,
    moment,
    nullable,
    text,
    texts,
    zone,
)
from reconciler.emulator.queries import BadQuery, rewritten
from reconciler.emulator.refusal import invalid
from reconciler.emulator.runs import SHOWN, Runs
from reconciler.emulator.store import StoredExport
from reconciler.emulator.world import World

_OFFSETS = {"offset_day": ("week",), "offset_hour": ("day", "week")}


class ExportFields:
    """The rules of one server."""

    def __init__(self, world: World, runs: Runs) -> None:
        self._world = world
        self._runs = runs
        self._checks = _checks(world)
        self.destinations = Destinations(world)

    def checked(
        self, sent: Mapping[str, Any], stored: StoredExport | None, *, on_organization: bool
    ) -> dict[str, Any]:
        """The plain fields of a body; what is unknown is dropped without a word."""
        found = {
            name: check(name, sent[name]) for name, check in self._checks.items() if name in sent
        }
        self._check_flags(found, creating=stored is None)
        if stored is not None and self._world.dialect.integrations:
            model = stored.body.get("model") or "events"
            if "model" in found and found["model"] != model:
                raise invalid("model", "invalid_input", "Changing the model is not allowed.")
        query = self._world.dialect.query_field
        if query in sent:
            found["query"] = self._query(sent[query], stored, on_organization=on_organization)
        if self._world.dialect.integrations:
            self._check_schedule(sent, found, stored)
        return found

    def _check_flags(self, found: Mapping[str, Any], *, creating: bool) -> None:
        if creating or self._world.dialect.integrations:
            self._world.need_flag(f"interval:{found.get('interval')}")
        self._world.need_flag(f"model:{found.get('model')}")

    def _query(self, value: Any, stored: StoredExport | None, *, on_organization: bool) -> Any:
        dialect = self._world.dialect
        if dialect.query_shown:
            return nullable(text(blank=True))(dialect.query_field, value)
        if on_organization and stored is not None:
            # The organization path has no project to parse the query for.
            raise AttributeError("team")
        query = text()(dialect.query_field, value)
        try:
            rewritten(query)
        except BadQuery as bad:
            raise invalid(dialect.query_field, "invalid_input", str(bad)) from None
        return query

    def _check_schedule(
        self, sent: Mapping[str, Any], found: dict[str, Any], stored: StoredExport | None
    ) -> None:
        """Offsets fit their interval only, and go back to null when the interval leaves them."""
        interval = found.get("interval", stored.body["interval"] if stored else None)
        if "interval" not in sent and set(_OFFSETS) & set(sent) and stored is not None:
            # A property without a setter (service-facts 1.2, trap 18).
            raise AttributeError("offset")
        for name, intervals in _OFFSETS.items():
            if found.get(name) is not None and interval not in intervals:
                raise invalid(
                    name, "invalid_input", f"{name} is not applicable for interval {interval}."
                )
            if "interval" in found and name not in found:
                found[name] = None
        if "timezone" in found:
            found["timezone"] = found["timezone"] or "UTC"

    def shown(self, export: StoredExport, *, reading: bool = True) -> dict[str, Any]:
        """The answer for an export, secrets left out."""
        body, dialect = export.body, self._world.dialect
        runs = self._world.store.runs(export.id, newest=SHOWN)
        answer: dict[str, Any] = {
            "id": export.id,
            "team_id": export.project,
            "name": body["name"],
            "model": body.get("model") or "events",
            "destination": self.destinations.shown(body["destination"], reading=reading),
            "interval": body["interval"],
            "paused": body.get("paused", False),
            "created_at": body["created_at"],
            "last_updated_at": body["last_updated_at"],
            "last_paused_at": body.get("last_paused_at"),
            "start_at": body.get("start_at"),
            "end_at": body.get("end_at"),
            "latest_runs": [self._runs.shown(run) for run in runs],
            "schema": self._schema(body.get("query")),
        }
        if dialect.query_shown:
            answer[dialect.query_field] = body.get("query")
        if dialect.name != "interface":
            answer["filters"] = body.get("filters")
        if dialect.integrations:
            answer |= self._computed(body)
        return answer

    def _schema(self, query: str | None) -> dict[str, Any] | None:
        if query is None or self._world.dialect.query_shown:
            return None
        text_of_it, fields = rewritten(query)
        return {"fields": fields, "values": {}, "hogql_query": text_of_it}

    def _computed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What the newest server computes on every read (service-facts 1.1)."""
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


def _checks(world: World) -> Mapping[str, Check]:
    dialect = world.dialect
    model = choice(*dialect.models)
    checks: dict[str, Check] = {
        "name": text(),
        "model": nullable(model) if dialect.null_model else model,
        "interval": choice(*dialect.intervals),
        "paused": boolean,
        "last_paused_at": nullable(moment),
        "start_at": nullable(moment),
        "end_at": nullable(moment),
    }
    if dialect.name != "interface":
        checks["filters"] = nullable(_filters if dialect.integrations else anything)
    if dialect.integrations:
        checks |= {
            "timezone": nullable(zone),
            "offset_day": nullable(integer(least=0, most=6)),
            "offset_hour": nullable(integer(least=0, most=23)),
            "hogql_modifiers": nullable(anything),
            "primary_key": nullable(texts()),
            "version_key": nullable(text()),
            "incremental_mode": choice("APPEND", "MERGE"),
        }
    return checks


def _filters(attr: str, value: Any) -> Any:
    if not isinstance(value, list):
        raise invalid(attr, "invalid_input", "filters must be a list.")
    for each in value:
        if not isinstance(each, dict) or each.get("type") not in ("event", "hogql", "person"):
            raise invalid(attr, "invalid_input", "Each filter needs a type: event, hogql, person.")
        if each.get("key") in ("data_interval_start", "data_interval_end"):
            raise invalid(attr, "invalid_input", "Filters may not use the data interval.")
    return value
