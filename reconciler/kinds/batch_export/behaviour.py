"""The behaviour of batch exports: what planning and operations need besides their fields."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from msgspec.structs import replace

from reconciler.kinds.batch_export.consequences import RULES
from reconciler.kinds.batch_export.query import tables_of
from reconciler.kinds.batch_export.refusals import REFUSALS
from reconciler.kinds.behaviour import Behaviour, Overlap
from reconciler.model.kind import Dialect
from reconciler.model.live import Operation, Paging, Repeat
from reconciler.model.plan import Consequence, Severity
from reconciler.model.schemas import moment
from reconciler.model.values import JSONObject, value_at

_READ, _WRITE = "batch_export:read", "batch_export:write"
_BY_SESSION = frozenset({Dialect.V2025})
"""Servers that refuse some operations to API keys."""
_reads = partial(Operation, method="GET", scope=_READ, below_parent=True)
_reads_since_2025 = partial(_reads, since=Dialect.V2025)
_writes = partial(Operation, method="POST", scope=_WRITE, below_parent=True, since=Dialect.V2025)
_creates = partial(_writes, repeat=Repeat.AFTER_LOOKING)
_ACTIVITY, _TEST = "/api/projects/{parent}/activity_log/", "/api/projects/{parent}/batch_exports/"

OPERATIONS = (
    Operation("pause", "POST", "pause/", _WRITE, source="1.7"),
    Operation("unpause", "POST", "unpause/", _WRITE, source="1.7"),
    _reads("runs", path="runs/", paging=Paging.CURSOR, source="7"),
    _reads("run", path="runs/{run}/", source="7"),
    _reads("logs", path="logs/", paging=Paging.PAGES, refused_to_keys=_BY_SESSION, source="9"),
    _reads("run_logs", path="runs/{run}/logs/", paging=Paging.PAGES, source="9"),
    # Until autumn 2025 a backfill is created on the second path only (8.1).
    _creates("backfill", path="backfills/", source="8.1"),
    replace(
        Operation("backfill_of_old_servers", "POST", "backfill/", _WRITE, source="8.1"),
        repeat=Repeat.AFTER_LOOKING,
        until=Dialect.V2025,
    ),
    _reads_since_2025("backfills", path="backfills/", paging=Paging.CURSOR, source="8.1"),
    _reads_since_2025("backfill_row", path="backfills/{backfill}/", source="8.1"),
    _writes("cancel_backfill", path="backfills/{backfill}/cancel/", source="8.1"),
    replace(
        _reads_since_2025("activity", path=_ACTIVITY, paging=Paging.CURSOR, source="10"),
        scope="activity_log:read",
        query={"scope": "BatchExport"},
    ),
    _reads_since_2025("test_steps", path=f"{_TEST}test/", refused_to_keys=_BY_SESSION, source="11"),
    _creates("run_test_step", path="run_test_step/", refused_to_keys=_BY_SESSION, source="11"),
    _creates(
        "run_test_step_new",
        path=f"{_TEST}run_test_step_new/",
        refused_to_keys=_BY_SESSION,
        source="11",
    ),
)
_TABLES = frozenset({"BigQuery", "Databricks", "Postgres", "Redshift", "Snowflake"})
_DEFAULT_MODEL = "events"
_EVENT_LISTS = ("include_events", "exclude_events")


def backfill_warnings(body: JSONObject) -> Iterator[Consequence]:
    """Yield the consequences of backfilling an export, whatever the range is."""
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
        *(("sql_query",), ("filters",), ("hogql_modifiers",)),
        *(("destination", "config", name) for name in _EVENT_LISTS),
    ),
    has_ended=_has_ended,
    tables=tables_of,
)

BEHAVIOUR = Behaviour(
    operations=OPERATIONS,
    rules=tuple(RULES.consequences),
    refusals=tuple(REFUSALS.refusals),
    backfill_warnings=backfill_warnings,
    overlap=_OVERLAP,
)
