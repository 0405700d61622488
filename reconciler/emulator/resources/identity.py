"""Who the key belongs to: what clients ask to find their way around."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from reconciler.emulator.access import Call
from reconciler.emulator.answers import JSONAnswer, page
from reconciler.emulator.resources.project_fields import ProjectFields
from reconciler.emulator.world import World


class Identity:
    """Users and organizations, as far as keys may read them."""

    def __init__(self, world: World) -> None:
        self._store = world.store
        self._fields = ProjectFields(world)

    def _organization(self, identity: str) -> dict[str, Any]:
        body = self._store.organization(identity) or {}
        name = body.get("name", "")
        found = self._store.projects(identity)
        return {
            "id": identity,
            "name": name,
            "slug": "".join(each if each.isalnum() else "-" for each in name.lower()),
            "membership_level": 15,
            "teams": [self._fields.short(each) for each in found],
            "projects": [self._fields.short(each) for each in found],
        }

    async def me(self, call: Call) -> Response:
        """GET the key's user."""
        caller = call.caller
        current = caller.organizations[0]
        projects = self._store.projects(current, limit=1)
        return JSONAnswer(
            {
                "uuid": "018c0000-0000-0000-0000-000000000001",
                "first_name": "Demo",
                "email": "demo@example.com",
                "organization": self._organization(current),
                "organizations": [self._organization(each) for each in caller.organizations],
                "team": (
                    self._fields.short(projects[0]) if projects and caller.current_project else None
                ),
            }
        )

    async def organizations(self, call: Call) -> Response:
        """GET the organizations of the key's user."""
        caller = call.caller
        found = caller.organizations
        return page(
            call.request,
            len(found),
            lambda limit, offset: [
                self._organization(each) for each in found[offset : offset + limit]
            ],
        )

    async def organization(self, call: Call) -> Response:
        """GET one; `@current` is the first."""
        return JSONAnswer(self._organization(str(call.organization)))
