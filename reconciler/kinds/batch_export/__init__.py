"""Batch exports (service.md 1). Their fields are in `schemas/batch_export.schema.json`."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.kinds.batch_export.destinations import DESTINATION, integration_of
from reconciler.kinds.batch_export.query import QueryText
from reconciler.model.kind import Action, Dialect, Field, Toggle, kind_of
from reconciler.model.schemas import Text
from reconciler.model.values import JSONObject

_SCHEDULE = ("interval", "timezone", "offset_day", "offset_hour")
"""Sent together: an offset without the interval is a 500 (service.md 1.2)."""

_RESETS = {
    "offset_day": {"offset_hour": "interval"},
    "offset_hour": {"offset_day": "interval"},
}

_SPECIAL = (
    *(
        Field(
            name,
            sent_with=tuple(other for other in _SCHEDULE if other != name),
            resets=_RESETS.get(name, {}),
        )
        for name in _SCHEDULE
    ),
    Field("name", Text(trimmed=True)),
    Field("model", fixed_since=Dialect.V2026),
    Field("paused", toggle=Toggle(on=Action.PAUSE, off=Action.UNPAUSE)),
    Field("destination", DESTINATION),
    Field(
        "sql_query",
        QueryText(),
        verbatim=True,
        aliases=("hogql_query",),
        renamed_since={Dialect.V2025: "hogql_query"},
        # Servers of 2025 return the query in the schema only, rewritten (service.md 1.9).
        read_at=(("schema", "hogql_query"),),
    ),
)


def _dialect_of(body: JSONObject) -> Dialect | None:
    """Return the dialect of the server that returned an export, None if unknown.

    Servers of 2026 compute a time zone, the interface has `sql_query`, and 2025 has neither.
    """
    if "timezone" in body or "incremental_mode" in body:
        return Dialect.V2026
    if "sql_query" in body:
        return Dialect.INTERFACE
    return Dialect.V2025 if "schema" in body or "interval" in body else None


KIND = replace(
    kind_of("batch_export", _SPECIAL),
    dialect_of=_dialect_of,
    integration_of=integration_of,
    activity=("latest_runs", 0, "created_at"),
    # service.md 13
    page="/project/{parent}/pipeline/batch-exports/{id}",
)
