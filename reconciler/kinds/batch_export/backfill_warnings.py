"""What backfills do at the destination, besides exporting a range (docs/service.md, 7.4)."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.change import Consequence, Severity
from reconciler.model.values import JSONObject, value_at

_TABLES = frozenset({"BigQuery", "Databricks", "Postgres", "Redshift", "Snowflake"})
_DEFAULT_MODEL = "events"


def backfill_warnings(body: JSONObject) -> tuple[Consequence, ...]:
    """Return the consequences of backfilling an export, whatever the range is."""
    return tuple(_warnings(body))


def _warnings(body: JSONObject) -> Iterator[Consequence]:
    if (body.get("model") or _DEFAULT_MODEL) != _DEFAULT_MODEL:
        return
    yield Consequence(
        "selects-by-event-time",
        Severity.WARNING,
        "a backfill selects events by their timestamp, and scheduled runs by arrival: events that "
        "arrived late can be exported twice or not at all, most of all at the ends of the range",
    )
    destination = str(value_at(body, ("destination", "type")))
    if destination in _TABLES:
        yield Consequence(
            "appends-rows",
            Severity.WARNING,
            f"{destination} appends: rows of this range that were exported before, also by runs "
            "that failed later, are in the table twice",
        )
    elif destination == "HTTP":
        yield Consequence(
            "sends-again",
            Severity.WARNING,
            "events of this range that were sent before are sent again",
        )
