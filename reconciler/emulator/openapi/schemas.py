"""The schemas of exports and projects, in requests and answers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from reconciler.emulator.destination_types import types_of
from reconciler.emulator.dialects import Dialect
from reconciler.emulator.openapi.operation_schemas import of_operations
from reconciler.emulator.openapi.parts import (
    ANY,
    FLAG,
    MOMENT,
    NUMBER,
    TEXT,
    closed,
    or_null,
    page_of,
    shape,
)
from reconciler.emulator.resources.project_fields import ProjectFields

_PROJECT_TYPES: dict[str, dict[str, Any]] = {
    "app_urls": {"type": "array", "items": {"type": "string", "maxLength": 200}},
    "name": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": r"\S"},
    "timezone": TEXT,
    "anonymize_ips": FLAG,
    "completed_snippet_onboarding": FLAG,
    "is_demo": FLAG,
    "session_recording_opt_in": FLAG,
    "access_control": FLAG,
    "week_start_day": {"type": ["integer", "null"], "minimum": 0, "maximum": 1},
    "primary_dashboard": {"type": ["integer", "null"]},
    "session_recording_minimum_duration_milliseconds": {
        "type": ["integer", "null"],
        "minimum": 0,
        "maximum": 30000,
    },
    "session_recording_sample_rate": {
        "type": ["string", "null"],
        "pattern": r"^(0(\.\d{1,2})?|1(\.0{1,2})?)$",
        "description": "A decimal from 0 to 1, as text with two places.",
    },
    "session_replay_config": {"type": ["object", "null"]},
    "modifiers": {"type": ["object", "null"]},
}


def schemas_of(dialect: Dialect) -> dict[str, Any]:
    """Return all schemas by name."""
    return {
        **_of_exports(dialect),
        **_of_projects(dialect),
        **of_operations(dialect),
        "Anything": {"type": "object"},
        "Error": closed(
            {
                "type": {**TEXT, "description": "Not a reliable class: decide by the status."},
                "code": TEXT,
                "detail": TEXT,
                "attr": or_null(TEXT),
            }
        ),
    }


def _of_exports(dialect: Dialect) -> dict[str, Any]:
    return {
        "Destination": _destination(dialect),
        "BatchExport": closed(_export(dialect)),
        "BatchExportPage": page_of("BatchExport"),
        "BatchExportBody": _export_body(dialect),
        "BatchExportPatch": {**_export_body(dialect), "required": []},
        "Paused": closed({"paused": FLAG}),
        "UnpauseBody": {"type": "object", "properties": {"backfill": FLAG}},
    }


def _of_projects(dialect: Dialect) -> dict[str, Any]:
    only = dialect.name == "interface"
    settings = ProjectFields(dialect).checks
    environment = ProjectFields(dialect, environments=True).checks
    return {
        "Project": shape(_project(settings), only=only),
        "ProjectOfEnvironment": shape(_project(environment), only=only),
        "ProjectSummary": shape(_summary(), only=only),
        "ProjectSummaryPage": page_of("ProjectSummary"),
        "ProjectBody": {
            "type": "object",
            "properties": {name: _PROJECT_TYPES.get(name, ANY) for name in environment},
        },
    }


def _destination(dialect: Dialect) -> dict[str, Any]:
    names = sorted(types_of(integrations=dialect.integrations))
    return {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": names},
            "config": {"type": "object", "description": "Secrets are taken and never shown."},
            "integration": {"type": ["integer", "null"]},
        },
        "required": ["type", "config"],
    }


def _export(dialect: Dialect) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": {"type": "string", "format": "uuid"},
        "team_id": NUMBER,
        "name": TEXT,
        "model": {"enum": _models(dialect)},
        "destination": {"$ref": "#/components/schemas/Destination"},
        "interval": {"type": "string", "enum": list(dialect.intervals)},
        "paused": FLAG,
        "created_at": MOMENT,
        "last_updated_at": MOMENT,
        "last_paused_at": or_null(MOMENT),
        "start_at": or_null(MOMENT),
        "end_at": or_null(MOMENT),
        "latest_runs": {"type": "array", "items": {"$ref": "#/components/schemas/Run"}},
        "schema": {"type": ["object", "null"]},
    }
    if dialect.query_shown:
        fields[dialect.query_field] = or_null(TEXT)
    if dialect.name != "interface":
        fields["filters"] = ANY
    if dialect.integrations:
        fields |= {
            "timezone": TEXT,
            "offset_day": or_null(NUMBER),
            "offset_hour": or_null(NUMBER),
            "hogql_modifiers": ANY,
            "primary_key": {"type": ["array", "null"], "items": TEXT},
            "version_key": {"type": ["array", "null"], "items": TEXT},
            "incremental_mode": TEXT,
        }
    return fields


def _models(dialect: Dialect) -> list[str | None]:
    """Return the models that an answer shows; 2025 shows null and blank as they were sent."""
    blank: list[str | None] = [None, ""] if dialect.null_model and dialect.crashes else []
    return [*dialect.models, *blank]


def _export_body(dialect: Dialect) -> dict[str, Any]:
    """Return the fields of a request body. Other fields are ignored without an error."""
    return {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "pattern": r"\S"},
            "model": {"enum": [*dialect.models, None]},
            "destination": {"$ref": "#/components/schemas/Destination"},
            "interval": {"type": "string", "enum": list(dialect.intervals)},
            "paused": FLAG,
            "last_paused_at": or_null(MOMENT),
            "start_at": or_null(MOMENT),
            "end_at": or_null(MOMENT),
            dialect.query_field: or_null(TEXT),
        },
        "required": ["name", "destination", "interval"],
    }


def _summary() -> dict[str, Any]:
    return {
        "id": NUMBER,
        "uuid": {"type": "string", "format": "uuid"},
        "organization": TEXT,
        "api_token": TEXT,
        "name": TEXT,
        "completed_snippet_onboarding": FLAG,
        "has_completed_onboarding_for": ANY,
        "ingested_event": FLAG,
        "is_demo": FLAG,
        "timezone": TEXT,
        "access_control": FLAG,
    }


def _project(settings: Collection[str]) -> dict[str, Any]:
    return {
        **{name: _PROJECT_TYPES.get(name, ANY) for name in settings},
        **_summary(),
        "created_at": MOMENT,
        "updated_at": MOMENT,
        "effective_membership_level": NUMBER,
        "has_group_types": FLAG,
        "person_on_events_querying_enabled": FLAG,
        "default_modifiers": {"type": "object"},
        "live_events_token": TEXT,
    }
