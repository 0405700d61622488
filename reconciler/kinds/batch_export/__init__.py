"""Batch exports (interface 2.1, 4.1 and 4.2; rules of the real servers: service-facts 1)."""

from __future__ import annotations

from reconciler.kinds.batch_export.consequences import CONSEQUENCES, RULES
from reconciler.kinds.batch_export.destinations import DESTINATIONS
from reconciler.kinds.batch_export.query import QueryText
from reconciler.model.change import Action
from reconciler.model.kind import Backfill, Field, Kind, Paths, Tagged, Toggle
from reconciler.model.live import Dialect
from reconciler.model.shape import Boolean, Instant, Integer, ListOf, OpenObject, Text
from reconciler.model.values import JSONObject

_NEWEST = frozenset({Dialect.V2026})

_SCHEDULE = ("interval", "timezone", "offset_day", "offset_hour")
"""An offset without the interval in the same body is a 500 (service-facts 1.2, trap 18)."""


def _scheduled(name: str) -> tuple[str, ...]:
    return tuple(each for each in _SCHEDULE if each != name)


FIELDS: tuple[Field, ...] = (
    Field("name", Text(trimmed=True), required=True, summary=True),
    Field("model", Text(), default="events", fixed_in=_NEWEST),
    Field("interval", Text(), required=True, brings=_scheduled("interval")),
    Field("timezone", Text(), default="UTC", clearable=True, brings=_scheduled("timezone")),
    # The server computes 0 for what it was not sent (service-facts 1.1).
    Field("offset_day", Integer(), default=0, clearable=True, brings=_scheduled("offset_day")),
    Field("offset_hour", Integer(), default=0, clearable=True, brings=_scheduled("offset_hour")),
    Field("paused", Boolean(), default=False, toggle=Toggle(on=Action.PAUSE, off=Action.UNPAUSE)),
    Field("start_at", Instant(), clearable=True),
    Field("end_at", Instant(), clearable=True),
    Field(
        "destination",
        Tagged(
            tag="type",
            body="config",
            variants=DESTINATIONS,
            extras=(Field("integration", Integer(), clearable=True),),
            fixed_in=_NEWEST,
            # Hidden in lists, and readable by id only (service-facts 1.3).
            unlisted=frozenset({"Workflows"}),
        ),
        required=True,
    ),
    Field(
        "sql_query",
        QueryText(),
        clearable=True,
        verbatim=True,
        aliases=("hogql_query",),
        names={
            Dialect.INTERFACE: "sql_query",
            Dialect.V2025: "hogql_query",
            Dialect.V2026: "hogql_query",
        },
        # Servers up to 2025 show the query in the schema only, rewritten (service-facts 1.9).
        read_at=(("schema", "hogql_query"),),
    ),
    Field("filters", OpenObject(), clearable=True),
    Field("hogql_modifiers", OpenObject(), clearable=True),
    Field("primary_key", ListOf(Text()), clearable=True),
    Field("version_key", ListOf(Text()), clearable=True),
    Field("incremental_mode", Text(), default="APPEND"),
)


def _dialect_of(body: JSONObject) -> Dialect | None:
    """Which server answered this export (trap 46).

    The newest computes a time zone, the interface knows `sql_query`, and the one between has
    neither.
    """
    if "timezone" in body or "incremental_mode" in body:
        return Dialect.V2026
    if "sql_query" in body:
        return Dialect.INTERFACE
    return Dialect.V2025 if "schema" in body or "interval" in body else None


def _backfilled_by_date(body: JSONObject, dialect: Dialect | None) -> bool:
    """The newest servers want dates for days and weeks, and refuse a time (trap 28)."""
    return dialect is Dialect.V2026 and body.get("interval") in ("day", "week")


KIND = Kind(
    name="batch_export",
    collection="batch_exports",
    parent="project",
    parent_key="project",
    parent_field="team_id",
    paths=Paths(
        "/api/projects/{parent}/batch_exports/",
        survey="/api/organizations/{organization}/batch_exports/",
    ),
    fields=FIELDS,
    dialect_of=_dialect_of,
    last_changed="last_updated_at",
    activity=("latest_runs", 0, "created_at"),
    rules=RULES,
    consequences=CONSEQUENCES,
    backfill=Backfill(paths=("backfills", "backfill"), by_date=_backfilled_by_date),
)
