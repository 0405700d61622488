"""Projects of an organization (service.md, 4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from starlette.responses import Response

from reconciler.emulator.access import Call, project_of
from reconciler.emulator.answers import JSONAnswer, body_of, page
from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.refusal import Refusal, forbidden, invalid, not_found, server_error
from reconciler.emulator.resources.project_fields import (
    OPEN_TO_MEMBERS,
    ProjectFields,
    new_project,
    new_token,
)
from reconciler.emulator.store import StoredProject
from reconciler.emulator.world import World


def _organization(call: Call) -> str:
    """Return the organization of a list: that of the path, else the user's current one."""
    if call.organization is None:
        call.caller.need_organization(call.caller.organizations[0])
    return call.organization or call.caller.organizations[0]


_COHORT_FILTER = {"key": "id", "type": "cohort", "value": 1, "operator": "not_in"}


class Projects:
    """The operations. Each takes a call and returns the answer, or raises Refusal."""

    def __init__(self, world: World, *, environments: bool = False) -> None:
        self._world = world
        self._store = world.store
        self.fields = ProjectFields(world.dialect, environments=environments)

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
            raise invalid(
                "primary_dashboard", "Primary dashboard cannot be set on project creation."
            )
        checked = self.fields.checked(sent)
        self._check_name(organization, checked.get("name"), besides=None)
        now = iso(self._world.clock.now())
        name = checked.get("name") or self._free_name(organization)
        made = self.fields.made(1000 + self._store.count_all_projects())
        body = {**new_project(name, now), **made, **self.fields.merged({}, checked), "name": name}
        if self._world.dialect.strict_projects:
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
        if name is None or not self._world.dialect.strict_projects:
            return
        wanted = name.strip().casefold()
        for identity, taken in self._store.project_names(organization):
            if identity != besides and taken.strip().casefold() == wanted:
                raise Refusal(
                    409,
                    "server_error",
                    "conflict",
                    "A project with this name already exists in the organization.",
                )

    def _free_name(self, organization: str) -> str:
        if not self._world.dialect.strict_projects:
            return "Default project"
        taken = {name for _, name in self._store.project_names(organization)}
        name, number = "Default project", 1
        while name in taken:
            number += 1
            name = f"Default project {number}"
        return name

    async def retrieved(self, call: Call) -> Response:
        """GET one."""
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
        if self._world.dialect.older_projects and self._store.erase_exports(project.id):
            raise server_error()
        if not self._world.dialect.strict_projects:
            self._store.remove_project(project.id)
            return Response(status_code=204)
        if project.body.get("is_pending_deletion", False):
            raise invalid(None, "The project is being deleted already.")
        self._store.write_project(project.id, {**project.body, "is_pending_deletion": True})
        return Response(status_code=204)

    # Actions

    async def activity(self, call: Call) -> Response:
        """GET activity: the project itself, as the interface documents it."""
        return self._answer(call, self._named(call))

    async def demo_data(self, call: Call) -> Response:
        """GET is_generating_demo_data: the project itself."""
        return await self.activity(call)

    async def token_reset(self, call: Call) -> Response:
        """PATCH reset_token: a new api_token replaces the old one."""
        project = self._named(call)
        await body_of(call.request)
        now = iso(self._world.clock.now())
        body = {**project.body, "api_token": new_token(), "updated_at": now}
        return self._changed(call, project, body)
