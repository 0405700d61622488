"""The differences between servers, as data (numbers are sections of service.md).

`interface` is the documented interface: the 2025 server, unless the document says otherwise, and
without that server's crashes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_LONG_INTERVALS = ("hour", "day", "week")

_HIGH_FREQUENCY = ("high-frequency-batch-exports", "Higher frequency batch exports are not enabled")
_FREQUENT = {f"interval:every {minutes} minutes": _HIGH_FREQUENCY for minutes in (5, 15)}
_OLDER_FLAGS = {
    **_FREQUENT,
    "model:sessions": ("sessions-batch-exports", "Sessions batch exports are not enabled"),
    "destination:Databricks": (
        "databricks-batch-exports",
        "The Databricks destination is not enabled",
    ),
}
_NEWEST_FLAGS = {
    **_FREQUENT,
    "model:hogql": ("hogql-batch-exports", "HogQL batch exports are not enabled"),
    "destination:Workflows": (
        "backfill-workflows-destination",
        "Backfilling Workflows is not enabled",
    ),
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What distinguishes a server.

    real
        A server that exists. It has paths that are not documented, and lacks documented ones. It
        answers 500 where its code crashes: a destination PATCH without type or config (1.4), a
        create for an organization (1.10). It answers pauses and backfills with something small
        (1.7, 1.8), stores config scalars as text (1.5), refuses keys three project actions (4.3),
        and its logs have log_source_id and instance_id (3).
    older
        The server of 2025. A read scope changes settings of projects, a deletion stumbles over
        exports that were deleted before, and some values crash (4). The organization path changes
        nothing (1.10), logs refuse keys (3), writes of exports need the paid feature
        `data_pipelines` (1.1), and runs of weekly exports fail before they are recorded (7.3).
    newest
        The server of 2026. Credentials are in integrations; types and models are fixed; schedules
        have a time zone and offsets; the server adds keys of its own (1.1 to 1.6). Names of
        projects are unique, their deletion is later, some values do not stick (4). The activity
        log names the user of a key and needs a paid feature (10). A key without scopes may do
        nothing (12), and the logs of a run cannot be read (3).
    query_field
        The name under which a query is taken.
    query_shown
        Whether it is answered under that name; otherwise it is in `schema`, rewritten.
    organization_list
        Whether the organization path of exports exists.
    organization_paths
        Paths inside an export below the organization path; real servers crash there (1.10).
    backfill_paths
        Which of the paths `backfill` and `backfills` exist (1.8).
    window_days
        How far back runs are visible unless asked otherwise, None for all (2).
    failures_to_pause, pause_window
        How many of the last runs must fail before the service pauses an export. A window of None
        depends on the interval (14).
    flags
        Values that need a feature flag, with the flag and the refusal. A seed lists the flags that
        are on; by default all are.
    """

    name: str
    real: bool = True
    older: bool = False
    newest: bool = False
    query_field: str = "hogql_query"
    query_shown: bool = False
    organization_list: bool = True
    organization_paths: tuple[str, ...] = ("{id}/logs/",)
    backfill_paths: tuple[str, ...] = ("backfill", "backfills")
    window_days: int | None = 7
    failures_to_pause: int = 10
    pause_window: int | None = 50
    flags: Mapping[str, tuple[str, str]] = field(default_factory=lambda: _OLDER_FLAGS)
    models: tuple[str, ...] = ("events", "persons", "sessions")
    intervals: tuple[str, ...] = (*_LONG_INTERVALS, "every 5 minutes", "every 15 minutes")


INTERFACE = Dialect(
    name="interface",
    real=False,
    query_field="sql_query",
    query_shown=True,
    organization_paths=("{id}/backfill/",),
    backfill_paths=("backfill",),
    window_days=None,
)
V2025 = Dialect(
    name="2025",
    older=True,
    organization_paths=("{id}/backfill/", "{id}/logs/"),
    intervals=(*_LONG_INTERVALS, "every 5 minutes"),
)
V2026 = Dialect(
    name="2026",
    newest=True,
    query_shown=True,
    backfill_paths=("backfills",),
    failures_to_pause=3,
    pause_window=None,
    flags=_NEWEST_FLAGS,
    models=("events", "persons", "sessions", "hogql"),
)

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (INTERFACE, V2025, V2026)}
