"""The fields of a project: checks, merging and answers."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from reconciler.emulator.access import Caller
from reconciler.emulator.dialects import Dialect
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
from reconciler.emulator.refusal import invalid, server_error
from reconciler.emulator.resources.project_checks import (
    cleaning_rules,
    dashboard,
    errors_to_ignore,
    linked_flag,
    logs_settings,
    mapping,
    mapping_or_crash,
    masking,
    modifiers,
    numbered_flag,
    only_keys,
    property_filters,
    trigger_groups,
    week_start_day,
)
from reconciler.emulator.store import StoredProject

_flag = nullable(boolean)
_open = nullable(anything)


CHECKS: Mapping[str, Check] = {
    "app_urls": texts(longest=200, dropped=(None, "")),
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
    "autocapture_exceptions_errors_to_ignore": errors_to_ignore,
    "capture_console_log_opt_in": _flag,
    "capture_performance_opt_in": _flag,
    "session_recording_opt_in": boolean,
    "session_recording_sample_rate": nullable(rate),
    "session_recording_minimum_duration_milliseconds": nullable(integer(least=0, most=30000)),
    "session_recording_linked_flag": nullable(linked_flag),
    "session_recording_network_payload_capture_config": nullable(
        only_keys("recordHeaders", "recordBody", detail="'recordHeaders' and/or 'recordBody' keys")
    ),
    "session_replay_config": nullable(
        only_keys(
            "record_canvas",
            "ai_config",
            detail="known keys. One or more of record_canvas, ai_config",
        )
    ),
    "access_control": boolean,
    "week_start_day": nullable(week_start_day),
    "primary_dashboard": nullable(dashboard(())),
    "live_events_columns": nullable(texts()),
    "recording_domains": nullable(texts(longest=200, dropped=(None, ""))),
    "inject_web_apps": _flag,
    "extra_settings": _open,
    "modifiers": nullable(mapping),
    "has_completed_onboarding_for": _open,
    "surveys_opt_in": _flag,
    "heatmaps_opt_in": _flag,
}

_REAL: Mapping[str, Check] = {
    "product_description": nullable(text(longest=1000, blank=True)),
    "session_recording_masking_config": nullable(masking),
}
"""Settings that the documented interface does not have."""

_urls = texts(longest=200, blank=False, dropped=(None,))
_OLDER: Mapping[str, Check] = {
    "app_urls": _urls,
    "recording_domains": nullable(_urls),
    "survey_config": nullable(mapping_or_crash),
    "modifiers": nullable(mapping_or_crash),
}
_NEWER: Mapping[str, Check] = {
    "onboarding_tasks": _open,
    "test_account_filters": property_filters,
    "path_cleaning_filters": nullable(cleaning_rules),
    "session_recording_linked_flag": nullable(numbered_flag),
    "session_recording_trigger_groups": nullable(trigger_groups),
    "session_recording_retention_period": choice("30d", "90d", "1y", "5y"),
    "survey_config": nullable(mapping),
    "conversations_settings": nullable(mapping),
    "logs_settings": nullable(logs_settings),
    "default_data_theme": nullable(integer()),
    "modifiers": nullable(modifiers),
}

_OF_ENVIRONMENTS: Mapping[str, Check] = {
    "cookieless_server_hash_mode": nullable(integer(least=0, most=2)),
}
"""Before 2026 only `environments/` shows and takes these (service.md, 4.3)."""

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

_MADE: Mapping[str, Any] = {
    "capture_console_log_opt_in": True,
    "capture_performance_opt_in": True,
    "path_cleaning_filters": [],
    "correlation_config": {},
}
"""What real servers fill in on create (service.md, 4.1)."""

_WITH_WRITE_SCOPE = {"name", "product_description", "access_control"}

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
    """The rules of one server, for the paths below `environments/` or for the others."""

    def __init__(self, dialect: Dialect, *, environments: bool = False) -> None:
        self._strict = dialect.strict_projects
        self._older = dialect.older_projects
        self._plain = dialect.name == "interface"
        self.checks = {**CHECKS, **({} if self._plain else _REAL)}
        if self._older:
            self.checks |= _OLDER
        if self._strict:
            self.checks |= _NEWER
            # Gone from the newest serializer: ignored without an error (4.2).
            del self.checks["slack_incoming_webhook"]
        if self._strict or environments:
            self.checks |= _OF_ENVIRONMENTS

    def checked(
        self, sent: Mapping[str, Any], stored: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the known fields of a body. Raise Refusal for the first that is wrong.

        `stored` is the project that changes, None for a new one.
        """
        if self._strict and sent.get("access_control") is not None:
            raise invalid("access_control", "This field is deprecated.")
        if self._older and stored is not None and sent.get("primary_dashboard", 0) is None:
            raise server_error()
        checks = self.checks | {"primary_dashboard": nullable(dashboard(_dashboards(stored or {})))}
        return {name: check(name, sent[name]) for name, check in checks.items() if name in sent}

    def need_scope(self, sent: Mapping[str, Any], caller: Caller) -> None:
        """Raise Refusal (403) unless the scopes of a key are enough for a PATCH of these settings.

        In 2025 a read scope is enough for most (service.md, 4.2).
        """
        if self._older and set(sent) - (set(self.checks) - _WITH_WRITE_SCOPE):
            caller.need("project:write")

    def made(self, dashboard: int) -> dict[str, Any]:
        """Return what the server fills in where a create does not say otherwise."""
        if self._plain:
            return {}
        return {**_MADE, "primary_dashboard": dashboard, "dashboards": [dashboard]}

    def merged(self, stored: Mapping[str, Any], checked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields to store. Merged ones keep the keys that were not sent (4.2)."""
        result = dict(checked)
        for name, levels in _MERGED_LEVELS.items():
            if isinstance(checked.get(name), dict):
                result[name] = _merge(stored.get(name), checked[name], levels)
        return result

    def shown(self, project: StoredProject, *, level: int = 15) -> dict[str, Any]:
        """Return the full answer. `level` is the membership level of the key's user."""
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
            "effective_membership_level": level,
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
        """Return the answer in a list."""
        answer = {name: project.body.get(name, _DEFAULTS.get(name)) for name in _LIST_FIELDS}
        answer |= {"id": project.id, "organization": project.organization}
        return answer if self._plain else {**answer, "project_id": project.id}


def _dashboards(stored: Mapping[str, Any]) -> set[int]:
    """Return the ids of a project's dashboards: those of the seed, and the one that it shows."""
    return {*stored.get("dashboards", ()), stored.get("primary_dashboard")} - {None}


def new_project(name: str, now: str) -> dict[str, Any]:
    """Return the values that the server makes for a new project."""
    return {
        "name": name,
        "uuid": str(uuid4()),
        "api_token": new_token(),
        "created_at": now,
        "updated_at": now,
    }


def new_token() -> str:
    """Return a random project token."""
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
