"""The schemas of runs, backfills, logs, activity, test steps, keys and organizations."""

from __future__ import annotations

from typing import Any

from reconciler.emulator.dialects import Dialect
from reconciler.emulator.openapi.parts import (
    ANY,
    FLAG,
    MOMENT,
    NUMBER,
    TEXT,
    UUID,
    Schema,
    closed,
    listed,
    or_null,
    page_of,
    ref,
    shape,
)
from reconciler.emulator.outcomes import STATUSES


def of_operations(dialect: Dialect) -> dict[str, Any]:
    """Return the schemas by name."""
    return {
        "Run": _run(dialect),
        "RunPage": page_of("Run", cursor=True),
        "Cancelled": closed({"cancelled": FLAG}),
        **_backfills(dialect),
        **_logs(dialect),
        **_activity(dialect),
        **_steps(),
        **_integrations(),
        **_identity(dialect),
    }


def _integrations() -> Schema:
    written: Schema = {"kind": TEXT, "config": {"type": "object"}}
    shown = {"id": NUMBER, "created_at": MOMENT, "created_by": ANY, "errors": TEXT}
    return {
        "Integration": closed({**written, **shown, "display_name": TEXT}),
        "IntegrationPage": page_of("Integration"),
        "IntegrationBody": shape(written, only=False),
    }


def _run(dialect: Dialect) -> Schema:
    fields: Schema = {
        "id": UUID,
        "status": {"type": "string", "enum": list(STATUSES)},
        "records_completed": or_null(NUMBER),
        "latest_error": or_null(TEXT),
        "data_interval_start": or_null(MOMENT),
        "data_interval_end": MOMENT,
        "cursor": or_null(TEXT),
        "created_at": MOMENT,
        "finished_at": or_null(MOMENT),
        "last_updated_at": MOMENT,
        "records_total_count": or_null(NUMBER),
        "batch_export": UUID,
    }
    if dialect.name != "interface":
        fields |= {"backfill": or_null(UUID), "bytes_exported": or_null(NUMBER)}
    if dialect.integrations:
        fields |= {"records_failed": or_null(NUMBER), "batch_export_on_demand": {"type": "null"}}
    return closed(fields)


def _backfills(dialect: Dialect) -> dict[str, Any]:
    bound = {"type": ["string", "null"], "description": "A moment with offset, or a date."}
    progress = closed(
        {
            "total_runs": or_null(NUMBER),
            "finished_runs": or_null(NUMBER),
            "progress": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        }
    )
    fields: Schema = {
        "id": UUID,
        "team": NUMBER,
        "batch_export": UUID,
        "start_at": or_null(MOMENT),
        "end_at": or_null(MOMENT),
        "status": {"type": "string", "enum": list(STATUSES)},
        "created_at": MOMENT,
        "finished_at": or_null(MOMENT),
        "last_updated_at": MOMENT,
        "progress": {"anyOf": [progress, {"type": "null"}]},
    }
    if dialect.integrations:
        fields |= {
            "total_records_count": or_null(NUMBER),
            "adjusted_start_at": or_null(MOMENT),
        }
    return {
        "Backfill": closed(fields),
        "BackfillPage": page_of("Backfill", cursor=True),
        "BackfillStarted": closed({"backfill_id": UUID if dialect.integrations else TEXT}),
        "RetryStarted": closed({"backfill_id": TEXT}),
        "BackfillBody": {"type": "object", "properties": {"start_at": bound, "end_at": bound}},
    }


def _logs(dialect: Dialect) -> dict[str, Any]:
    line = {"timestamp": MOMENT, "level": TEXT, "message": TEXT}
    place = (
        {"team_id": NUMBER, "batch_export_id": UUID, "run_id": UUID}
        if dialect.log_style == "old"
        else {"log_source_id": UUID, "instance_id": TEXT}
    )
    return {"LogEntry": closed({**place, **line}), "LogEntryPage": page_of("LogEntry")}


def _activity(dialect: Dialect) -> dict[str, Any]:
    change = closed(
        {
            "type": TEXT,
            "action": {"type": "string", "enum": ["created", "changed", "deleted"]},
            "field": TEXT,
            "before": ANY,
            "after": ANY,
        }
    )
    detail = closed(
        {
            "name": TEXT,
            "short_id": or_null(TEXT),
            "type": or_null(TEXT),
            "changes": listed(change),
            "trigger": ANY,
            "context": ANY,
        }
    )
    fields: Schema = {
        "id": UUID,
        "user": {"type": ["object", "null"]},
        "unread": FLAG,
        "was_impersonated": FLAG,
        "is_system": FLAG,
        "organization_id": or_null(TEXT),
        "activity": TEXT,
        "item_id": TEXT,
        "scope": TEXT,
        "detail": detail,
        "created_at": MOMENT,
    }
    if dialect.newest_activity:
        fields |= {
            "client": or_null(TEXT),
            "ip_address": or_null(TEXT),
            "team_id": or_null(NUMBER),
        }
    # With `page` the answer has a count, with a cursor it has none.
    page = page_of("Activity", cursor=True)
    page["properties"] = {**page["properties"], "count": NUMBER}
    return {
        "Activity": closed(fields),
        "ActivityPage": page,
        "ActivityFilters": closed(
            {"static_filters": {"type": "object"}, "detail_fields": {"type": "object"}}
        ),
    }


def _steps() -> dict[str, Any]:
    result = closed(
        {
            "status": {"type": "string", "enum": ["Passed", "Failed", "Skipped"]},
            "message": or_null(TEXT),
        }
    )
    step: Schema = {"name": TEXT, "description": TEXT}
    return {
        "TestStep": closed({**step, "result": {"anyOf": [result, {"type": "null"}]}}),
        "TestSteps": closed({"steps": listed(ref("TestStep"))}),
        "TestStepBody": {
            "type": "object",
            "properties": {
                "name": TEXT,
                "interval": TEXT,
                "destination": ref("Destination"),
                "step": {"type": "integer", "minimum": 0},
            },
            "required": ["name", "interval", "destination"],
        },
    }


def _identity(dialect: Dialect) -> dict[str, Any]:
    key: Schema = {
        "id": TEXT,
        "label": TEXT,
        "value": {"type": "null"},
        "mask_value": TEXT,
        "created_at": MOMENT,
        "last_used_at": or_null(MOMENT),
        "last_rolled_at": or_null(MOMENT),
        "user_id": NUMBER,
        "scopes": listed(TEXT),
        "scoped_teams": {"type": ["array", "null"], "items": NUMBER},
        "scoped_organizations": {"type": ["array", "null"], "items": TEXT},
    }
    if dialect.newest_activity:
        key |= {
            "description": or_null(TEXT),
            "is_legacy_hashing": FLAG,
            "local_dev_value": {"type": "null"},
        }
    basics: Schema = {
        "id": TEXT,
        "name": TEXT,
        "slug": TEXT,
        "membership_level": NUMBER,
        "members_can_use_personal_api_keys": FLAG,
    }
    summaries = listed(ref("ProjectSummary"))
    user: Schema = {
        **dict.fromkeys(("first_name", "last_name", "email", "distinct_id"), or_null(TEXT)),
        "id": NUMBER,
        "uuid": or_null(UUID),
        "team": {"anyOf": [ref("ProjectSummary"), {"type": "null"}]},
        "organization": ref("Organization"),
        "organizations": listed(shape(basics, only=False)),
    }
    return {
        "PersonalAPIKey": closed(key),
        "User": closed(user),
        "Organization": closed(
            {
                **basics,
                "teams": summaries,
                "projects": summaries,
                "available_product_features": listed(closed({"key": TEXT, "name": TEXT})),
            }
        ),
        "OrganizationPage": page_of("Organization"),
    }
