"""Projects of an organization: fields, merging, and operations (service.md, 4)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

from starlette.responses import Response

from reconciler.emulator import fields
from reconciler.emulator.access import Call, Caller, project_of
from reconciler.emulator.answers import JSONAnswer, body_of, page
from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.dialects import Dialect
from reconciler.emulator.refusal import Refusal, forbidden, invalid, not_found, server_error
from reconciler.emulator.store import StoredProject
from reconciler.emulator.world import World

_flag = fields.nullable(fields.boolean)
_open = fields.nullable(fields.anything)


CHECKS: Mapping[str, fields.Check] = {
    "app_urls": fields.texts(longest=200, dropped=(None, "")),
    "name": fields.text(longest=200),
    "slack_incoming_webhook": fields.nullable(fields.text(longest=500, blank=True)),
    "anonymize_ips": fields.boolean,
    "completed_snippet_onboarding": fields.boolean,
    "test_account_filters": fields.anything,
    "test_account_filters_default_checked": _flag,
    "path_cleaning_filters": _open,
    "is_demo": fields.boolean,
    "timezone": fields.zone,
    "data_attributes": fields.anything,
    "person_display_name_properties": fields.nullable(fields.texts(longest=400)),
    "correlation_config": _open,
    "autocapture_opt_out": _flag,
    "autocapture_exceptions_opt_in": _flag,
    "autocapture_web_vitals_opt_in": _flag,
    "autocapture_exceptions_errors_to_ignore": fields.errors_to_ignore,
    "capture_console_log_opt_in": _flag,
    "capture_performance_opt_in": _flag,
    "session_recording_opt_in": fields.boolean,
    "session_recording_sample_rate": fields.nullable(fields.rate),
    "session_recording_minimum_duration_milliseconds": fields.nullable(
        fields.integer(least=0, most=30000)
    ),
    "session_recording_linked_flag": fields.nullable(fields.linked_flag),
    "session_recording_network_payload_capture_config": fields.nullable(
        fields.only_keys(
            "recordHeaders", "recordBody", detail="'recordHeaders' and/or 'recordBody' keys"
        )
    ),
    "session_replay_config": fields.nullable(
        fields.only_keys(
            "record_canvas",
            "ai_config",
            detail="known keys. One or more of record_canvas, ai_config",
        )
    ),
    "access_control": fields.boolean,
    "week_start_day": fields.nullable(fields.week_start_day),
    "primary_dashboard": fields.nullable(fields.dashboard(())),
    "live_events_columns": fields.nullable(fields.texts()),
    "recording_domains": fields.nullable(fields.texts(longest=200, dropped=(None, ""))),
    "inject_web_apps": _flag,
    "extra_settings": _open,
    "modifiers": fields.nullable(fields.mapping),
    "has_completed_onboarding_for": _open,
    "surveys_opt_in": _flag,
    "heatmaps_opt_in": _flag,
}

_REAL: Mapping[str, fields.Check] = {
    "product_description": fields.nullable(fields.text(longest=1000, blank=True)),
    "session_recording_masking_config": fields.nullable(fields.masking),
}
"""Settings that the documented interface does not have."""

_urls = fields.texts(longest=200, blank=False, dropped=(None,))
_OLDER: Mapping[str, fields.Check] = {
    "app_urls": _urls,
    "recording_domains": fields.nullable(_urls),
    "survey_config": fields.nullable(fields.mapping_or_crash),
    "modifiers": fields.nullable(fields.mapping_or_crash),
}
_NEWER: Mapping[str, fields.Check] = {
    "onboarding_tasks": _open,
    "test_account_filters": fields.property_filters,
    "path_cleaning_filters": fields.nullable(fields.cleaning_rules),
    "session_recording_linked_flag": fields.nullable(fields.numbered_flag),
    "session_recording_trigger_groups": fields.nullable(fields.trigger_groups),
    "session_recording_retention_period": fields.choice("30d", "90d", "1y", "5y"),
    "survey_config": fields.nullable(fields.mapping),
    "conversations_enabled": _flag,
    "conversations_settings": fields.nullable(fields.mapping),
    "logs_settings": fields.nullable(fields.logs_settings),
    "default_data_theme": fields.nullable(fields.integer()),
    "modifiers": fields.nullable(fields.modifiers),
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
    """The rules of one server."""

    def __init__(self, dialect: Dialect) -> None:
        self._strict = dialect.newest
        self._older = dialect.older
        self._plain = not dialect.real
        self.checks = {**CHECKS, **({} if self._plain else _REAL)}
        if self._older:
            self.checks |= _OLDER
        if self._strict:
            self.checks |= _NEWER
            # Ignored without an error, the second unless it has a value (4.2).
            del self.checks["slack_incoming_webhook"], self.checks["access_control"]

    def checked(
        self, sent: Mapping[str, Any], stored: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the known fields of a body. Raise Refusal for the first that is wrong.

        `stored` is the project that changes, None for a new one.
        """
        if self._older and stored is not None and sent.get("primary_dashboard", 0) is None:
            raise server_error()
        if self._strict and sent.get("access_control") is not None:
            raise invalid("access_control", "This field is deprecated.")
        dashboard = fields.nullable(fields.dashboard(_dashboards(stored or {})))
        checks = self.checks | {"primary_dashboard": dashboard}
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
            if name in checked:
                result[name] = _merge(stored.get(name), checked[name], levels)
        enabled = bool(checked.get("conversations_enabled"))
        if "conversations_enabled" in checked and enabled != bool(
            stored.get("conversations_enabled")
        ):
            settings = result.get("conversations_settings", stored.get("conversations_settings"))
            token = secrets.token_urlsafe(32) if enabled else None
            result["conversations_settings"] = {**(settings or {}), "widget_public_token": token}
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
    """Return an object with the keys of both, to a depth of `levels`; null is a value as others."""
    if levels == 0 or not (isinstance(stored, dict) and isinstance(sent, dict)):
        return sent
    inner = {name: _merge(stored.get(name), value, levels - 1) for name, value in sent.items()}
    return {**stored, **inner}


def _organization(call: Call) -> str:
    """Return the organization of a list: that of the path, else the user's current one."""
    if call.organization is None:
        call.caller.need_organization(call.caller.organizations[0])
    return call.organization or call.caller.organizations[0]


_COHORT_FILTER = {"key": "id", "type": "cohort", "value": 1, "operator": "not_in"}


class Projects:
    """The operations. Each takes a call and returns the answer, or raises Refusal."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._store = world.store
        self.fields = ProjectFields(world.dialect)

    def _answer(self, call: Call, project: StoredProject, status_code: int = 200) -> Response:
        shown = self.fields.shown(project, level=call.caller.level)
        return JSONAnswer(shown, status_code=status_code)

    def _changed(self, call: Call, project: StoredProject, body: dict[str, Any]) -> Response:
        self._store.write_project(project.id, body)
        return self._answer(call, StoredProject(project.id, project.organization, body))

    def _named(self, call: Call) -> StoredProject:
        """Return the project that the path names. Raise Refusal (404, or 403 by the key's limits).

        A project of another organization is 404 here, unlike in the paths below a project
        (service.md, 4.3).
        """
        project = project_of(call.request.path_params["id"], call.caller, self._store)
        within = (call.organization,) if call.organization else call.caller.organizations
        if project.organization not in within:
            raise not_found()
        call.caller.need_project(project)
        return project

    async def listed(self, call: Call) -> Response:
        """GET the list, in its short shape; `search` filters by name."""
        organization = _organization(call)
        wanted = call.request.query_params.get("search", "").lower()
        if wanted:
            matches = [
                project
                for project in self._store.projects(organization)
                if wanted in str(project.body["name"]).lower()
            ]
            return page(
                call.request,
                len(matches),
                lambda limit, offset: [
                    self.fields.short(project) for project in matches[offset : offset + limit]
                ],
            )

        def read(limit: int, offset: int) -> list[dict[str, Any]]:
            some = self._store.projects(organization, limit=limit, offset=offset)
            return [self.fields.short(project) for project in some]

        return page(call.request, self._store.count_projects(organization), read)

    async def created(self, call: Call) -> Response:
        """POST a new one. The newest server overwrites some of what was sent (4.1)."""
        organization = _organization(call)
        if not call.caller.admin:
            raise forbidden("Your organization access level is insufficient.")
        sent = await body_of(call.request)
        if "primary_dashboard" in sent:
            detail = "Primary dashboard cannot be set on project creation."
            raise invalid("primary_dashboard", detail)
        checked = self.fields.checked(sent)
        self._check_name(organization, checked.get("name"), besides=None)
        now = iso(self._world.clock.now())
        name = checked.get("name") or self._free_name(organization)
        made = self.fields.made(1000 + self._store.count_all_projects())
        body = {**new_project(name, now), **made, **self.fields.merged({}, checked), "name": name}
        if self._world.dialect.newest:
            body |= self._overwritten(checked)
        identity = self._store.add_project(organization, body)
        project = StoredProject(identity, organization, body)
        return self._answer(call, project, status_code=201)

    def _overwritten(self, checked: dict[str, Any]) -> dict[str, Any]:
        extra = checked.get("extra_settings")
        return {
            "test_account_filters": [_COHORT_FILTER],
            "extra_settings": {
                **(extra if isinstance(extra, dict) else {}),
                "recorder_script": "posthog-recorder",
            },
            "week_start_day": checked.get("week_start_day", 1),
            "session_recording_retention_period": "30d",
        }

    def _check_name(self, organization: str, name: str | None, *, besides: int | None) -> None:
        """Raise Refusal (409) if another project has the name (4.1).

        Case and surrounding whitespace do not count, nor do projects pending deletion.
        """
        if name is None or not self._world.dialect.newest:
            return
        wanted = name.strip().casefold()
        for identity, taken in self._store.project_names(organization):
            if identity != besides and taken.strip().casefold() == wanted:
                detail = "A project with this name already exists in the organization."
                raise Refusal(409, "server_error", "conflict", detail)

    def _free_name(self, organization: str) -> str:
        if not self._world.dialect.newest:
            return "Default project"
        taken = {name for _, name in self._store.project_names(organization)}
        name, number = "Default project", 1
        while name in taken:
            number += 1
            name = f"Default project {number}"
        return name

    async def retrieved(self, call: Call) -> Response:
        """GET one, or activity or is_generating_demo_data as the interface documents them."""
        return self._answer(call, self._named(call))

    async def patched(self, call: Call) -> Response:
        """PATCH (and PUT): absent fields stay; some objects are merged, others replaced."""
        project = self._named(call)
        sent = await body_of(call.request)
        if call.request.method == "PATCH":
            self.fields.need_scope(sent, call.caller)
        locked = sorted(set(sent) & set(self.fields.checks) - OPEN_TO_MEMBERS)
        if locked and not call.caller.admin:
            raise forbidden("You must be a project admin to change these settings.")
        checked = self.fields.checked(sent, project.body)
        self._check_name(project.organization, checked.get("name"), besides=project.id)
        self._limit_retention(project.body.get("logs_settings"), checked.get("logs_settings"))
        body = {**project.body, **self.fields.merged(project.body, checked)}
        body["updated_at"] = iso(self._world.clock.now())
        return self._changed(call, project, body)

    def _limit_retention(self, stored: dict[str, Any] | None, sent: dict[str, Any] | None) -> None:
        """Record a change of the days that logs are kept. Raise Refusal for a second one in a day.

        The first value is no change (4.2).
        """
        days = (sent or {}).get("retention_days")
        if not stored or sent is None or days in (None, stored.get("retention_days")):
            return
        now, last = self._world.clock.now(), stored.get("retention_last_updated")
        if last is not None and now - parsed(last) < timedelta(hours=24):
            detail = "You can only update retention settings once per 24 hours."
            raise invalid("logs_settings", detail)
        sent["retention_last_updated"] = iso(now)

    async def deleted(self, call: Call) -> Response:
        """DELETE. In 2026 the work runs later: until then it is read and listed (4.3).

        The server of 2025 deletes the exports first, and fails at each that was deleted before,
        whose schedule is gone. What it deleted until then stays deleted.
        """
        project = self._named(call)
        if not call.caller.admin:
            raise forbidden("You must be a project admin to delete it.")
        if self._world.dialect.older and self._store.erase_exports(project.id):
            raise server_error()
        if not self._world.dialect.newest:
            self._store.remove_project(project.id)
            return Response(status_code=204)
        if project.body.get("is_pending_deletion", False):
            raise invalid(None, "The project is being deleted already.")
        self._store.write_project(project.id, {**project.body, "is_pending_deletion": True})
        return Response(status_code=204)

    # Actions

    async def token_reset(self, call: Call) -> Response:
        """PATCH reset_token: a new api_token replaces the old one."""
        project = self._named(call)
        await body_of(call.request)
        now = iso(self._world.clock.now())
        body = {**project.body, "api_token": new_token(), "updated_at": now}
        return self._changed(call, project, body)
