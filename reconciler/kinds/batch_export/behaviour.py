"""The behaviour of batch exports: what planning and operations need besides their fields."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from reconciler.kinds.batch_export.consequences import RULES
from reconciler.kinds.batch_export.facts import moment
from reconciler.kinds.batch_export.refusals import REFUSALS
from reconciler.model.behaviour import Behaviour, Overlap
from reconciler.model.change import Consequence, Severity
from reconciler.model.kind import Dialect
from reconciler.model.request import Operation, Paging, Repeat
from reconciler.model.values import JSONObject, value_at

_READ, _WRITE = "batch_export:read", "batch_export:write"
_BY_SESSION = frozenset({Dialect.V2025})
"""Servers that refuse some operations to API keys."""
_reads = partial(Operation, method="GET", scope=_READ, below_parent=True)
_writes_since_2025 = partial(
    Operation, method="POST", scope=_WRITE, below_parent=True, since=Dialect.V2025
)

OPERATIONS = (
    Operation("pause", "POST", "pause/", _WRITE, source="1.7"),
    Operation("unpause", "POST", "unpause/", _WRITE, source="1.7"),
    _reads(name="runs", path="runs/", paging=Paging.CURSOR, source="7"),
    _reads(name="run", path="runs/{run}/", source="7"),
    _writes_since_2025(
        name="retry_run", path="runs/{run}/retry/", repeat=Repeat.AFTER_LOOKING, source="7.2"
    ),
    _writes_since_2025(name="cancel_run", path="runs/{run}/cancel/", source="7.2"),
    _reads(name="logs", path="logs/", paging=Paging.PAGES, refused_to_keys=_BY_SESSION, source="9"),
    _reads(name="run_logs", path="runs/{run}/logs/", paging=Paging.PAGES, source="9"),
    # Until autumn 2025 a backfill is created on the second path only (8.1).
    _writes_since_2025(
        name="backfill", path="backfills/", repeat=Repeat.AFTER_LOOKING, source="8.1"
    ),
    Operation(
        "backfill_of_old_servers",
        "POST",
        "backfill/",
        _WRITE,
        repeat=Repeat.AFTER_LOOKING,
        until=Dialect.V2025,
        source="8.1",
    ),
    _reads(
        name="backfills",
        path="backfills/",
        paging=Paging.CURSOR,
        since=Dialect.V2025,
        source="8.1",
    ),
    _reads(name="backfill_row", path="backfills/{backfill}/", since=Dialect.V2025, source="8.1"),
    _writes_since_2025(name="cancel_backfill", path="backfills/{backfill}/cancel/", source="8.1"),
    Operation(
        "activity",
        "GET",
        "/api/projects/{parent}/activity_log/",
        "activity_log:read",
        paging=Paging.CURSOR,
        below_parent=True,
        since=Dialect.V2025,
        query={"scope": "BatchExport"},
        source="10",
    ),
    _reads(
        name="test_steps",
        path="/api/projects/{parent}/batch_exports/test/",
        since=Dialect.V2025,
        refused_to_keys=_BY_SESSION,
        source="11",
    ),
    _writes_since_2025(
        name="run_test_step",
        path="run_test_step/",
        repeat=Repeat.AFTER_LOOKING,
        refused_to_keys=_BY_SESSION,
        source="11",
    ),
    _writes_since_2025(
        name="run_test_step_new",
        path="/api/projects/{parent}/batch_exports/run_test_step_new/",
        repeat=Repeat.AFTER_LOOKING,
        refused_to_keys=_BY_SESSION,
        source="11",
    ),
)
_TABLES = frozenset({"BigQuery", "Databricks", "Postgres", "Redshift", "Snowflake"})
_DEFAULT_MODEL = "events"
_EVENT_LISTS = ("include_events", "exclude_events")


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


def _has_ended(body: JSONObject, now: datetime) -> bool:
    """Return whether the last run was before an instant."""
    end = moment(body.get("end_at"))
    return end is not None and end <= now


_OVERLAP = Overlap(
    source=(("model",),),
    selection=(
        *(("sql_query",), ("filters",)),
        *(("destination", "config", name) for name in _EVENT_LISTS),
    ),
    has_ended=_has_ended,
)

BEHAVIOUR = Behaviour(
    operations=OPERATIONS,
    rules=tuple(RULES.consequences),
    refusals=tuple(REFUSALS.refusals),
    backfill_warnings=backfill_warnings,
    overlap=_OVERLAP,
)
