"""The shapes of the document: what bodies may hold and what answers hold."""

from __future__ import annotations

from typing import Any

from reconciler.emulator.destination_types import types_of
from reconciler.emulator.dialects import Dialect
from reconciler.emulator.resources.project_fields import CHECKS

_MOMENT = {"type": "string", "format": "date-time"}
_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
_FLAG = {"type": "boolean"}
_ANY: dict[str, Any] = {}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]}


def _object(properties: dict[str, Any], *, closed: bool = True) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
    }
    return {**shape, "additionalProperties": False} if closed else shape


_PROJECT_TYPES: dict[str, dict[str, Any]] = {
    "app_urls": {"type": "array", "items": {"type": "string", "maxLength": 200}},
    "name": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": r"\S"},
    "timezone": _TEXT,
    "anonymize_ips": _FLAG,
    "completed_snippet_onboarding": _FLAG,
    "is_demo": _FLAG,
    "session_recording_opt_in": _FLAG,
    "access_control": _FLAG,
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
    """All shapes by name."""
    export = _export(dialect)
    return {
        "Destination": _destination(dialect),
        "BatchExport": _object(export),
        "BatchExportBody": _export_body(dialect),
        "BatchExportPatch": {**_export_body(dialect), "required": []},
        "Run": _run(dialect),
        "LogEntry": _log_entry(dialect),
        "Project": _object(_project(), closed=dialect.name == "interface"),
        "ProjectSummary": _object(_summary(), closed=dialect.name == "interface"),
        "ProjectBody": {
            "type": "object",
            "properties": {name: _PROJECT_TYPES.get(name, _ANY) for name in CHECKS},
        },
        "Error": _object(
            {
                "type": {**_TEXT, "description": "Not a reliable class: decide by the status."},
                "code": _TEXT,
                "detail": _TEXT,
                "attr": _or_null(_TEXT),
            }
        ),
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
        "team_id": _NUMBER,
        "name": _TEXT,
        "model": {"type": "string", "enum": list(dialect.models)},
        "destination": {"$ref": "#/components/schemas/Destination"},
        "interval": {"type": "string", "enum": list(dialect.intervals)},
        "paused": _FLAG,
        "created_at": _MOMENT,
        "last_updated_at": _MOMENT,
        "last_paused_at": _or_null(_MOMENT),
        "start_at": _or_null(_MOMENT),
        "end_at": _or_null(_MOMENT),
        "latest_runs": {"type": "array", "items": {"$ref": "#/components/schemas/Run"}},
        "schema": {"type": ["object", "null"]},
    }
    if dialect.query_shown:
        fields[dialect.query_field] = _or_null(_TEXT)
    if dialect.name != "interface":
        fields["filters"] = _ANY
    if dialect.integrations:
        fields |= {
            "timezone": _TEXT,
            "offset_day": _or_null(_NUMBER),
            "offset_hour": _or_null(_NUMBER),
            "hogql_modifiers": _ANY,
            "primary_key": _ANY,
            "version_key": _or_null(_TEXT),
            "incremental_mode": _TEXT,
        }
    return fields


def _export_body(dialect: Dialect) -> dict[str, Any]:
    """Fields of a request body. What else is sent is dropped without a word."""
    model: dict[str, Any] = {"type": ["string", "null"], "enum": [*dialect.models, None]}
    return {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "pattern": r"\S"},
            "model": model,
            "destination": {"$ref": "#/components/schemas/Destination"},
            "interval": {"type": "string", "enum": list(dialect.intervals)},
            "paused": _FLAG,
            "last_paused_at": _or_null(_MOMENT),
            "start_at": _or_null(_MOMENT),
            "end_at": _or_null(_MOMENT),
            dialect.query_field: _or_null(_TEXT),
        },
        "required": ["name", "destination", "interval"],
    }


def _run(dialect: Dialect) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": {"type": "string", "format": "uuid"},
        "status": {
            "type": "string",
            "enum": ["Starting", "Running", "Completed", "Failed", "Cancelled"],
        },
        "records_completed": _or_null(_NUMBER),
        "latest_error": _or_null(_TEXT),
        "data_interval_start": _MOMENT,
        "data_interval_end": _MOMENT,
        "cursor": _or_null(_TEXT),
        "created_at": _MOMENT,
        "finished_at": _or_null(_MOMENT),
        "last_updated_at": _MOMENT,
        "records_total_count": _or_null(_NUMBER),
        "batch_export": {"type": "string", "format": "uuid"},
    }
    return _object(fields, closed=dialect.name == "interface")


def _log_entry(dialect: Dialect) -> dict[str, Any]:
    line = {"timestamp": _MOMENT, "level": _TEXT, "message": _TEXT}
    if dialect.log_style == "old":
        return _object({"team_id": _NUMBER, "batch_export_id": _TEXT, "run_id": _TEXT, **line})
    return _object({"log_source_id": _TEXT, "instance_id": _TEXT, **line})


def _summary() -> dict[str, Any]:
    return {
        "id": _NUMBER,
        "uuid": {"type": "string", "format": "uuid"},
        "organization": _TEXT,
        "api_token": _TEXT,
        "name": _TEXT,
        "completed_snippet_onboarding": _FLAG,
        "has_completed_onboarding_for": _ANY,
        "ingested_event": _FLAG,
        "is_demo": _FLAG,
        "timezone": _TEXT,
        "access_control": _FLAG,
    }


def _project() -> dict[str, Any]:
    settings = {name: _PROJECT_TYPES.get(name, _ANY) for name in CHECKS}
    return {
        **settings,
        **_summary(),
        "created_at": _MOMENT,
        "updated_at": _MOMENT,
        "effective_membership_level": _NUMBER,
        "has_group_types": _FLAG,
        "person_on_events_querying_enabled": _FLAG,
        "default_modifiers": {"type": "object"},
        "live_events_token": _TEXT,
    }
