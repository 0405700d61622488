"""Projects of an organization (interface 2.4, 4.3; service-facts, section 4)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.access import caller_of, organization_of
from reconciler.emulator.answers import JSONAnswer, body_of, page
from reconciler.emulator.clock import Clock, iso
from reconciler.emulator.fields import (
    Check,
    anything,
    boolean,
    integer,
    nullable,
    rate,
    text,
    texts,
    zone,
)
from reconciler.emulator.refusal import invalid, not_found
from reconciler.emulator.store import Store, StoredProject

_flag = nullable(boolean)
_open = nullable(anything)

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
    "autocapture_exceptions_errors_to_ignore": anything,
    "capture_console_log_opt_in": _flag,
    "capture_performance_opt_in": _flag,
    "session_recording_opt_in": boolean,
    "session_recording_sample_rate": nullable(rate),
    "session_recording_minimum_duration_milliseconds": nullable(integer(least=0, most=30000)),
    "session_recording_linked_flag": _open,
    "session_recording_network_payload_capture_config": _open,
    "session_replay_config": _open,
    "access_control": boolean,
    "week_start_day": nullable(integer(least=0, most=1)),
    "primary_dashboard": nullable(integer()),
    "live_events_columns": nullable(texts()),
    "recording_domains": nullable(texts(longest=200, drop_blank=True)),
    "inject_web_apps": _flag,
    "extra_settings": _open,
    "modifiers": _open,
    "has_completed_onboarding_for": _open,
    "surveys_opt_in": _flag,
    "heatmaps_opt_in": _flag,
}

DEFAULTS: Mapping[str, Any] = {
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

_MERGED_LEVELS = {"session_replay_config": 2, "modifiers": 1}

_LIST_FIELDS = (
    "id",
    "uuid",
    "organization",
    "api_token",
    "name",
    "completed_snippet_onboarding",
    "has_completed_onboarding_for",
    "ingested_event",
    "is_demo",
    "timezone",
    "access_control",
)


def shown(project: StoredProject) -> dict[str, Any]:
    """The full answer for a project."""
    body = {**DEFAULTS, **project.body}
    return {
        "id": project.id,
        "uuid": body["uuid"],
        "organization": project.organization,
        "api_token": body["api_token"],
        **{name: body[name] for name in CHECKS},
        "created_at": body["created_at"],
        "updated_at": body["updated_at"],
        "ingested_event": body["ingested_event"],
        "effective_membership_level": 15,
        "has_group_types": False,
        "person_on_events_querying_enabled": True,
        "default_modifiers": {"personsOnEventsMode": "person_id_override_properties_joined"},
        "live_events_token": f"live.{body['api_token'][-12:]}",
    }


def new_project(name: str, now: str) -> dict[str, Any]:
    """What the server makes up for a new project."""
    return {
        "name": name,
        "uuid": str(uuid4()),
        "api_token": f"phc_{secrets.token_urlsafe(32)}",
        "created_at": now,
        "updated_at": now,
    }


class Projects:
    """The operations. Each takes the request and answers, or raises Refusal."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def _found(self, request: Request, organization: str) -> StoredProject:
        identity = request.path_params["id"]
        if identity == "@current":
            found = self._store.projects(organization, limit=1)
            project = found[0] if found else None
        elif identity.isascii() and identity.isdigit():
            project = self._store.project(int(identity))
        else:
            project = None
        if project is None or project.organization != organization:
            raise not_found()
        return project

    def _reached(self, request: Request, scope: str) -> str:
        caller = caller_of(request, self._store)
        caller.need(scope)
        return organization_of(request.path_params, caller, self._store)

    async def listed(self, request: Request) -> Response:
        """GET the list, in its short shape."""
        organization = self._reached(request, "project:read")

        def read(limit: int, offset: int) -> list[dict[str, Any]]:
            found = self._store.projects(organization, limit=limit, offset=offset)
            return [_short(each) for each in found]

        return page(request, self._store.count_projects(organization), read)

    async def created(self, request: Request) -> Response:
        """POST a new one."""
        organization = self._reached(request, "project:write")
        sent = await body_of(request)
        if sent.get("primary_dashboard") is not None:
            raise invalid(
                "primary_dashboard",
                "invalid_input",
                "Primary dashboard cannot be set on project creation.",
            )
        checked = _checked(sent)
        now = iso(self._clock.now())
        name = checked.get("name", "Default project")
        body = {**new_project(name, now), **_merged({}, checked)}
        identity = self._store.add_project(organization, body)
        return JSONAnswer(shown(StoredProject(identity, organization, body)), status_code=201)

    async def retrieved(self, request: Request) -> Response:
        """GET one."""
        organization = self._reached(request, "project:read")
        return JSONAnswer(shown(self._found(request, organization)))

    async def patched(self, request: Request) -> Response:
        """PATCH: absent fields stay; some objects are merged, others replaced."""
        organization = self._reached(request, "project:write")
        project = self._found(request, organization)
        checked = _checked(await body_of(request))
        body = {**project.body, **_merged(project.body, checked)}
        body["updated_at"] = iso(self._clock.now())
        self._store.write_project(project.id, body)
        return JSONAnswer(shown(StoredProject(project.id, organization, body)))

    async def deleted(self, request: Request) -> Response:
        """DELETE: its exports go with it."""
        organization = self._reached(request, "project:write")
        self._store.remove_project(self._found(request, organization).id)
        return Response(status_code=204)


def _short(project: StoredProject) -> dict[str, Any]:
    full = shown(project)
    return {name: full[name] for name in _LIST_FIELDS}


def _checked(sent: Mapping[str, Any]) -> dict[str, Any]:
    return {name: check(name, sent[name]) for name, check in CHECKS.items() if name in sent}


def _merged(stored: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, Any]:
    """Merged fields keep the keys that were not sent, down to their depth (service-facts 4.2)."""
    result = dict(sent)
    for name, levels in _MERGED_LEVELS.items():
        if isinstance(sent.get(name), dict):
            result[name] = _merge(stored.get(name), sent[name], levels)
    return result


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
