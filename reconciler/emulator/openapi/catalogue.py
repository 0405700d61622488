"""The description of every operation, by its handler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.emulator.dialects import Dialect
from reconciler.emulator.openapi.parts import Schema


@dataclass(frozen=True, slots=True)
class Doc:
    """The description of an operation.

    answer
        The name of the schema of its answer, or None for an answer without a body.
    status
        The status of that answer.
    body
        The name of the schema of its body, if it takes one; `body_required` says whether a
        request without a body is refused.
    query
        The names of its query parameters.
    refusals
        Statuses beside those that follow from keys, limits, path and body.
    empty
        Statuses that are answered without a body.
    """

    summary: str
    answer: str | None = None
    status: int = 200
    body: str | None = None
    body_required: bool = True
    query: tuple[str, ...] = ()
    refusals: tuple[int, ...] = ()
    empty: tuple[int, ...] = field(default=())


TAGS: Mapping[str, str] = {
    "BatchExports": "batch exports",
    "ExportRuns": "runs",
    "ExportLogs": "runs",
    "ExportBackfills": "backfills",
    "DestinationTests": "destination test steps",
    "Projects": "projects",
    "Identity": "keys",
    "ActivityLog": "activity",
    "Integrations": "integrations",
}
"""The tags of operations, by the class of their handlers."""

_TEXTS = "cursor ordering search status instance_id destination scope scopes item_id user users"
_MORE_TEXTS = "activities clients search_text item_ids kind"
_MOMENTS = "after before start end start_date end_date"
_LEVEL = {"type": "string", "enum": ["DEBUG", "LOG", "INFO", "WARNING", "ERROR"]}

PARAMETERS: Mapping[str, Schema] = {
    **{name: {"type": "string"} for name in (*_TEXTS.split(), *_MORE_TEXTS.split())},
    **{name: {"type": "string", "format": "date-time"} for name in _MOMENTS.split()},
    "limit": {"type": "integer", "minimum": 1},
    "offset": {"type": "integer", "minimum": 0},
    "level": _LEVEL,
    "level_filter": _LEVEL,
    "log_limit": {"type": "integer", "minimum": 1, "maximum": 500},
    "page": {"type": "integer", "minimum": 1},
    "page_size": {"type": "integer", "minimum": 1, "maximum": 1000},
    "is_system": {"type": "boolean"},
}
"""Schemas of query parameters. `log_limit` is sent as `limit`."""

_PAGE = ("limit", "offset")
_WINDOW = ("after", "before", "start", "end")
_ENTRIES = ("scope", "scopes", "item_id", "user", "page", "page_size", "cursor", "ordering")
_ADVANCED = (
    *("start_date", "end_date", "users", "activities", "clients", "search_text", "item_ids"),
    "is_system",
)


def docs_of(dialect: Dialect) -> Mapping[str, Doc]:
    """Return the description of every operation, by the qualified name of its handler."""
    return {
        **_exports(dialect),
        **_runs(dialect),
        **_backfills(dialect),
        **_projects(dialect),
        **_identity(),
        **_activity(dialect),
        **_steps(dialect),
        **_integrations(),
    }


def _crash(dialect: Dialect) -> tuple[int, ...]:
    """Return 500 where the real server crashes (service.md, 1.4, 1.8, 1.10)."""
    return (500,) if dialect.crashes else ()


def _exports(dialect: Dialect) -> dict[str, Doc]:
    crash = _crash(dialect)
    toggled = "Paused" if dialect.small_answers else "BatchExport"
    return {
        "BatchExports.listed": Doc(
            "List batch exports, newest first", "BatchExportPage", query=_PAGE
        ),
        "BatchExports.created": Doc(
            "Create a batch export", "BatchExport", 201, "BatchExportBody", refusals=crash
        ),
        "BatchExports.retrieved": Doc("Read a batch export", "BatchExport"),
        "BatchExports.patched": Doc(
            "Change fields. A config is merged into the stored one",
            "BatchExport",
            body="BatchExportPatch",
            body_required=False,
            refusals=crash,
        ),
        "BatchExports.put": Doc(
            "Write all required fields. Absent fields stay",
            "BatchExport",
            body="BatchExportBody",
            refusals=crash,
        ),
        "BatchExports.deleted": Doc("Delete a batch export", status=204),
        "BatchExports.paused": Doc(
            "Pause a batch export", toggled, body="Anything", body_required=False
        ),
        "BatchExports.unpaused": Doc(
            "Unpause a batch export. `backfill` exports what the pause missed",
            toggled,
            body="UnpauseBody",
            body_required=False,
            refusals=crash,
        ),
    }


def _runs(dialect: Dialect) -> dict[str, Doc]:
    crash = _crash(dialect)
    old = dialect.log_style == "old"
    logs = (
        *(("limit", "level_filter") if old else ("log_limit", "level", "instance_id")),
        *("offset", "after", "before", "search"),
    )
    return {
        "ExportRuns.listed": Doc(
            "List runs",
            "RunPage",
            query=("cursor", "ordering", *_WINDOW, *(("status",) if dialect.integrations else ())),
            refusals=(*crash, *((400,) if dialect.integrations else ())),
        ),
        "ExportRuns.retrieved": Doc("Read a run", "Run", query=_WINDOW, refusals=crash),
        "ExportRuns.retried": Doc(
            "Export the interval of a run again",
            "RetryStarted",
            201 if dialect.integrations else 200,
            query=_WINDOW,
            refusals=crash,
        ),
        "ExportRuns.cancelled": Doc(
            "Cancel a run", "Cancelled", query=_WINDOW, refusals=(400, *crash)
        ),
        "ExportLogs.of_export": Doc(
            "List the logs of an export, newest first",
            "LogEntryPage",
            query=logs,
            refusals=(400, *crash),
        ),
        "ExportLogs.of_run": Doc(
            "List the logs of a run", "LogEntryPage", query=logs, refusals=(400, *crash)
        ),
    }


def _backfills(dialect: Dialect) -> dict[str, Doc]:
    crash = _crash(dialect)
    return {
        "ExportBackfills.created": Doc(
            "Export a past range",
            "BackfillStarted" if dialect.small_answers else "BatchExport",
            201 if dialect.integrations else 200,
            "BackfillBody",
            body_required=False,
            refusals=crash,
        ),
        "ExportBackfills.listed": Doc(
            "List backfills", "BackfillPage", query=("cursor", "ordering"), refusals=crash
        ),
        "ExportBackfills.retrieved": Doc("Read a backfill", "Backfill", refusals=crash),
        "ExportBackfills.cancelled": Doc("Cancel a backfill", "Cancelled", refusals=(400, *crash)),
    }


def _projects(dialect: Dialect) -> dict[str, Doc]:
    conflict = (409,) if dialect.strict_projects else ()
    return {
        "Projects.listed": Doc("List projects", "ProjectSummaryPage", query=(*_PAGE, "search")),
        "Projects.created": Doc(
            "Create a project",
            "Project",
            201,
            "ProjectBody",
            body_required=False,
            refusals=conflict,
        ),
        "Projects.retrieved": Doc("Read a project", "Project"),
        "Projects.patched": Doc(
            "Change settings", "Project", body="ProjectBody", body_required=False, refusals=conflict
        ),
        "Projects.deleted": Doc(
            "Delete a project and its data",
            status=204,
            refusals=(400,) if dialect.strict_projects else (),
        ),
        "Projects.activity": Doc("Read a project and its activity", "Project"),
        "Projects.demo_data": Doc("Read whether demo data is being made", "Project"),
        "Projects.token_reset": Doc(
            "Replace the api_token", "Project", body="ProjectBody", body_required=False
        ),
    }


def _identity() -> dict[str, Doc]:
    return {
        "Identity.key": Doc("Read the key of the request", "PersonalAPIKey"),
        "Identity.me": Doc("Read the user of the key", "User"),
        "Identity.organizations": Doc(
            "List the organizations of the user", "OrganizationPage", query=_PAGE
        ),
        "Identity.organization": Doc("Read an organization", "Organization"),
    }


def _activity(dialect: Dialect) -> dict[str, Doc]:
    paid = (402,) if dialect.newest_activity else ()
    return {
        "ActivityLog.listed": Doc(
            "List the activity of a project", "ActivityPage", query=_ENTRIES, refusals=paid
        ),
        "ActivityLog.advanced": Doc(
            "List the activity of a project, with more filters",
            "ActivityPage",
            query=(*_ENTRIES, *_ADVANCED),
            refusals=(400, *paid),
        ),
        "ActivityLog.of_organization": Doc(
            "List the activity of an organization",
            "ActivityPage",
            query=(*_ENTRIES, *_ADVANCED),
            refusals=(400, *paid),
        ),
        "ActivityLog.filters": Doc(
            "List the values to filter by", "ActivityFilters", refusals=paid
        ),
        "ActivityLog.filters_of_organization": Doc(
            "List the values to filter by", "ActivityFilters", refusals=paid
        ),
    }


def _integrations() -> dict[str, Doc]:
    return {
        "Integrations.listed": Doc(
            "List integrations, oldest first", "IntegrationPage", query=(*_PAGE, "kind")
        ),
        "Integrations.retrieved": Doc("Read an integration", "Integration"),
        "Integrations.created": Doc("Create an integration", "Integration", 201, "IntegrationBody"),
        "Integrations.destroyed": Doc(
            "Delete an integration that no export uses", status=204, refusals=(400,)
        ),
    }


def _steps(dialect: Dialect) -> dict[str, Doc]:
    crash = _crash(dialect)
    return {
        "DestinationTests.listed": Doc(
            "List the test steps of a destination type",
            "TestSteps",
            query=("destination",),
            empty=(400, 404),
        ),
        "DestinationTests.ran_for_new": Doc(
            "Run a test step for a body", "TestStep", body="TestStepBody", refusals=crash
        ),
        "DestinationTests.ran_for_existing": Doc(
            "Run a test step for an export", "TestStep", body="TestStepBody", refusals=crash
        ),
    }
