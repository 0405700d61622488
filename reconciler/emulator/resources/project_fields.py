"""The fields of a project: what a body may hold, how it is merged, and what an answer shows."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from reconciler.emulator.fields import (
    Check,
    anything,
    boolean,
    choice,
    integer,
    nullable,
    rate,
    text,
    texts,
    zone,
)
from reconciler.emulator.refusal import invalid
from reconciler.emulator.store import StoredProject
from reconciler.emulator.world import World

_flag = nullable(boolean)
_open = nullable(anything)


def _object(attr: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise invalid(attr, "invalid_input", "Must provide a dictionary or None.")
    return value


def _linked_flag(attr: str, value: Any) -> dict[str, Any]:
    """Exactly {id, key} or {id, key, variant}."""
    found = _object(attr, value)
    if not {"id", "key"} <= set(found) <= {"id", "key", "variant"}:
        raise invalid(attr, "invalid_input", "Must provide id and key, and variant at most.")
    return found


def _payload_capture(attr: str, value: Any) -> dict[str, Any]:
    found = _object(attr, value)
    if not set(found) <= {"recordHeaders", "recordBody"}:
        raise invalid(attr, "invalid_input", "Must provide recordHeaders and recordBody only.")
    return found


def _errors_to_ignore(attr: str, value: Any) -> list[str]:
    found: list[str] = texts()(attr, value)
    if len(str(found)) > 300:
        raise invalid(attr, "invalid_input", "Field must be less than 300 characters.")
    return found


CHECKS: Mapping[str, Check] = {
    "app_urls": texts(longest=200, drop_blank=True),
    "name": text(longest=200),
    "slack_incoming_webhook": nullable(text(longest=500, blank=True)),
    "anonymize_ips": boolean,
    "completed_snippet_onboarding": boolean,
    "test_account_filters": anything,
    "test_account_filters_default_checked": _flag,
    "path_cleaning_filters": _open,
    "is_demo": boolean,
    "timezone": zone,
    "data_attributes": anything,
    "person_display_name_properties": nullable(texts(longest=400)),
    "correlation_config": _open,
    "autocapture_opt_out": _flag,
    "autocapture_exceptions_opt_in": _flag,
    "autocapture_web_vitals_opt_in": _flag,
    "autocapture_exceptions_errors_to_ignore": _errors_to_ignore,
    "capture_console_log_opt_in": _flag,
    "capture_performance_opt_in": _flag,
    "session_recording_opt_in": boolean,
    "session_recording_sample_rate": nullable(rate),
    "session_recording_minimum_duration_milliseconds": nullable(integer(least=0, most=30000)),
    "session_recording_linked_flag": nullable(_linked_flag),
    "session_recording_network_payload_capture_config": nullable(_payload_capture),
    "session_replay_config": nullable(_object),
    "access_control": boolean,
    "week_start_day": nullable(integer(least=0, most=1)),
    "primary_dashboard": nullable(integer()),
    "live_events_columns": nullable(texts()),
    "recording_domains": nullable(texts(longest=200, drop_blank=True)),
    "inject_web_apps": _flag,
    "extra_settings": _open,
    "modifiers": nullable(_object),
    "has_completed_onboarding_for": _open,
    "surveys_opt_in": _flag,
    "heatmaps_opt_in": _flag,
}

_NEWER: Mapping[str, Check] = {
    "onboarding_tasks": _open,
    "session_recording_masking_config": nullable(_object),
    "session_recording_trigger_groups": nullable(_object),
    "session_recording_retention_period": choice("30d", "90d", "1y", "5y"),
    "survey_config": nullable(_object),
    "conversations_settings": nullable(_object),
    "logs_settings": nullable(_object),
    "cookieless_server_hash_mode": nullable(integer(least=0, most=2)),
    "default_data_theme": nullable(integer()),
}

_DEFAULTS: Mapping[str, Any] = {
    **dict.fromkeys(CHECKS),
    "app_urls": [],
    "anonymize_ips": False,
    "completed_snippet_onboarding": False,
    "test_account_filters": [],
    "is_demo": False,
    "timezone": "UTC",
    "data_attributes": ["data-attr"],
    "session_recording_opt_in": False,
    "access_control": False,
    "ingested_event": False,
}

_MERGED_LEVELS = {
    "session_replay_config": 2,
    "modifiers": 1,
    "survey_config": 1,
    "conversations_settings": 1,
}

_LIST_FIELDS = (
    *("id", "uuid", "organization", "api_token", "name", "completed_snippet_onboarding"),
    *("has_completed_onboarding_for", "ingested_event", "is_demo", "timezone", "access_control"),
)

OPEN_TO_MEMBERS = frozenset(
    {"completed_snippet_onboarding", "has_completed_onboarding_for", "onboarding_tasks"}
    | {"session_recording_opt_in", "autocapture_exceptions_opt_in", "surveys_opt_in"}
    | {"autocapture_web_vitals_opt_in", "primary_dashboard"}
)
"""What a member may change; any other field refuses the whole request (4.2)."""


class ProjectFields:
    """The rules of one server."""

    def __init__(self, world: World) -> None:
        self._strict = world.dialect.strict_projects
        self._plain = world.dialect.name == "interface"
        self.checks = dict(CHECKS)
        if self._strict:
            self.checks |= _NEWER
            # Gone from the newest serializer: ignored without a word (4.2).
            del self.checks["slack_incoming_webhook"]

    def checked(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """The known fields of a body. Raises Refusal for the first that is wrong."""
        if self._strict and sent.get("access_control") is not None:
            raise invalid("access_control", "invalid_input", "This field is deprecated.")
        return {
            name: check(name, sent[name]) for name, check in self.checks.items() if name in sent
        }

    def merged(self, stored: Mapping[str, Any], checked: Mapping[str, Any]) -> dict[str, Any]:
        """Merged fields keep the keys that were not sent, down to their depth (4.2)."""
        result = dict(checked)
        for name, levels in _MERGED_LEVELS.items():
            if isinstance(checked.get(name), dict):
                result[name] = _merge(stored.get(name), checked[name], levels)
        return result

    def shown(self, project: StoredProject) -> dict[str, Any]:
        """The full answer."""
        body = {**_DEFAULTS, **project.body}
        answer = {
            "id": project.id,
            "uuid": body["uuid"],
            "organization": project.organization,
            "api_token": body["api_token"],
            **{name: body.get(name) for name in self.checks},
            "access_control": body["access_control"],
            "created_at": body["created_at"],
            "updated_at": body["updated_at"],
            "ingested_event": body["ingested_event"],
            "effective_membership_level": 15,
            "has_group_types": False,
            "person_on_events_querying_enabled": True,
            "default_modifiers": {"personsOnEventsMode": "person_id_override_properties_joined"},
            "live_events_token": f"live.{body['api_token'][-12:]}",
        }
        if not self._plain:
            answer |= {
                "project_id": project.id,
                "group_types": [],
                "product_intents": [],
                "user_access_level": "admin",
                "secret_api_token": body.get("secret_api_token"),
            }
        if self._strict:
            answer["is_pending_deletion"] = body.get("is_pending_deletion", False)
        return answer

    def short(self, project: StoredProject) -> dict[str, Any]:
        """The answer in a list."""
        full = self.shown(project)
        names = (*_LIST_FIELDS, "project_id") if "project_id" in full else _LIST_FIELDS
        return {name: full[name] for name in names}


def new_project(name: str, now: str) -> dict[str, Any]:
    """What the server makes up for a new project."""
    return {
        "name": name,
        "uuid": str(uuid4()),
        "api_token": new_token(),
        "created_at": now,
        "updated_at": now,
    }


def new_token() -> str:
    """A token that nobody has yet."""
    return f"phc_{secrets.token_urlsafe(32)}"


def _merge(stored: Any, sent: Any, levels: int) -> Any:
    if levels == 0 or not isinstance(sent, dict):
        return sent
    kept = dict(stored) if isinstance(stored, dict) else {}
    for key, value in sent.items():
        if value is None and levels == 1:
            kept.pop(key, None)
        else:
            kept[key] = _merge(kept.get(key), value, levels - 1)
    return kept
