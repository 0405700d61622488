"""The differences between servers, as data (numbers are sections of service.md).

`interface` is the documented interface: the 2025 server, unless the document says otherwise, and
without that server's crashes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_LONG_INTERVALS = ("hour", "day", "week")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The switches of one server.

    query_field
        The name under which a query is taken.
    query_shown
        Whether it is answered under that name; otherwise it is in `schema`, rewritten.
    small_answers
        Pause, unpause and backfill answer something small instead of the export (1.7, 1.8).
    creates_for_organization, changes_for_organization
        Whether the organization path can create, and PATCH anything; else 500 (1.10).
    organization_list
        Whether the organization path of exports exists.
    scalars_as_text
        Config scalars are stored as text (1.5). The newest server converts those it knows.
    integrations
        Credentials are in integrations; types and models are fixed; schedules have a time
        zone and offsets; the server adds keys of its own (1.1 to 1.6).
    crashes
        500 where the real server crashes: a destination PATCH without type or config, a config
        that is no object (1.4).
    session_actions
        Three project actions refuse API keys (4.3).
    backfill_paths
        Which of the paths `backfill` and `backfills` exist (1.8).
    window_days
        How far back runs are visible unless asked otherwise, None for all (2).
    log_style
        "old": the fields of the interface; "new": log_source_id and instance_id (3).
    logs_for_keys
        Whether a key may read an export's logs.
    run_logs
        Whether the logs of a run can be read; else 500 (3).
    strict_projects
        Unique names, deletion later, values that don't stick, retired fields (4).
    older_projects
        The projects of 2025: a read scope changes settings, a deletion stumbles over exports that
        were deleted before, and some values crash (4).
    root_projects
        Whether `/api/projects/` lists and creates (4.3).
    addon
        Whether writes of exports need the paid feature `data_pipelines` (1.1).
    keys_api
        Whether a key can read itself (12).
    activity_log
        Whether the activity log is served (10).
    newest_activity
        Entries name the user of the key that wrote, else the system. The advanced log serves keys,
        and the log needs a paid feature (10).
    old_keys
        A key with an empty list of scopes may do everything, and keys show fewer fields (12).
    weekly_runs
        Whether weekly exports run; in 2025 each of their runs fails before it is recorded (7.3).
    failures_to_pause, pause_window
        How many of the last runs must fail before the service pauses an export. A window of None
        depends on the interval (14).
    """

    name: str
    query_field: str = "hogql_query"
    query_shown: bool = False
    small_answers: bool = True
    creates_for_organization: bool = False
    changes_for_organization: bool = True
    organization_list: bool = True
    scalars_as_text: bool = False
    integrations: bool = False
    crashes: bool = True
    session_actions: bool = True
    backfill_paths: tuple[str, ...] = ("backfill", "backfills")
    window_days: int | None = 7
    log_style: str = "new"
    logs_for_keys: bool = True
    run_logs: bool = True
    strict_projects: bool = False
    older_projects: bool = False
    root_projects: bool = True
    addon: bool = False
    keys_api: bool = True
    activity_log: bool = True
    newest_activity: bool = False
    old_keys: bool = True
    weekly_runs: bool = True
    failures_to_pause: int = 10
    pause_window: int | None = 50
    models: tuple[str, ...] = ("events", "persons", "sessions")
    intervals: tuple[str, ...] = (*_LONG_INTERVALS, "every 5 minutes", "every 15 minutes")
    null_model: bool = True


INTERFACE = Dialect(
    name="interface",
    query_field="sql_query",
    query_shown=True,
    small_answers=False,
    creates_for_organization=True,
    crashes=False,
    session_actions=False,
    root_projects=False,
    backfill_paths=("backfill",),
    window_days=None,
    log_style="old",
    keys_api=False,
    activity_log=False,
)
V2025 = Dialect(
    name="2025",
    scalars_as_text=True,
    changes_for_organization=False,
    logs_for_keys=False,
    older_projects=True,
    addon=True,
    weekly_runs=False,
    intervals=(*_LONG_INTERVALS, "every 5 minutes"),
)
V2026 = Dialect(
    name="2026",
    query_shown=True,
    scalars_as_text=True,
    integrations=True,
    backfill_paths=("backfills",),
    run_logs=False,
    strict_projects=True,
    newest_activity=True,
    old_keys=False,
    failures_to_pause=3,
    pause_window=None,
    models=("events", "persons", "sessions", "hogql"),
    null_model=False,
)

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (INTERFACE, V2025, V2026)}

_HIGH_FREQUENCY = ("high-frequency-batch-exports", "Higher frequency batch exports are not enabled")
_INLINE_FLAGS = {
    "interval:every 5 minutes": _HIGH_FREQUENCY,
    "interval:every 15 minutes": _HIGH_FREQUENCY,
    "model:sessions": ("sessions-batch-exports", "Sessions batch exports are not enabled"),
    "destination:Databricks": (
        "databricks-batch-exports",
        "The Databricks destination is not enabled",
    ),
}
FLAGS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "interface": _INLINE_FLAGS,
    "2025": _INLINE_FLAGS,
    "2026": {
        "interval:every 5 minutes": _HIGH_FREQUENCY,
        "interval:every 15 minutes": _HIGH_FREQUENCY,
        "model:hogql": ("hogql-batch-exports", "HogQL batch exports are not enabled"),
        "destination:Workflows": (
            "backfill-workflows-destination",
            "Backfilling Workflows is not enabled",
        ),
    },
}
"""Values that need a feature flag, by dialect, with the flag and the refusal.

A seed lists the flags that are on; by default all are.
"""
