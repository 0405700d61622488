"""Keys, users and organizations (service.md, 12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from reconciler.emulator.access import Call, Caller
from reconciler.emulator.answers import JSONAnswer, page
from reconciler.emulator.clock import iso
from reconciler.emulator.projects import ProjectFields
from reconciler.emulator.world import World

_LONG_VALUE = 16
_USER = ("id", "uuid", "distinct_id", "first_name", "last_name", "email")


class Identity:
    """Keys, users and organizations, as far as keys may read them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._store = world.store
        self._fields = ProjectFields(world.dialect)

    async def key(self, call: Call) -> Response:
        """GET the key itself, whatever its scopes and limits are. Its value is not shown."""
        caller = call.caller
        record = caller.record
        now = self._world.clock.now()
        answer = {
            "id": record.get("id"),
            "label": record.get("label"),
            "value": None,
            "mask_value": _masked(call.request.headers["authorization"].partition(" ")[2]),
            "created_at": record.get("created_at"),
            "last_used_at": iso(now.replace(minute=0, second=0, microsecond=0)),
            "last_rolled_at": record.get("last_rolled_at"),
            "user_id": caller.user,
            "scopes": record.get("scopes", []),
            "scoped_teams": sorted(caller.only_projects) or None,
            "scoped_organizations": sorted(caller.only_organizations) or None,
        }
        if self._world.dialect.newest:
            answer |= {
                "description": record.get("description"),
                "is_legacy_hashing": False,
                "local_dev_value": None,
            }
        return JSONAnswer(answer)

    async def me(self, call: Call) -> Response:
        """GET the key's user. Limits of the key do not apply.

        The team is the user's current project, whatever projects the key is limited to.
        """
        caller = call.caller
        user: Mapping[str, Any] = self._store.user(caller.user) or {"id": caller.user}
        current = caller.organizations[0]
        projects = self._store.projects(current, limit=1) if caller.current_project else []
        return JSONAnswer(
            {
                **{name: user.get(name) for name in _USER},
                "team": self._fields.short(projects[0]) if projects else None,
                "organization": self._organization(current, caller),
                "organizations": [
                    self._basics(identity, caller) for identity in caller.organizations
                ],
            }
        )

    async def organizations(self, call: Call) -> Response:
        """GET the organizations of the key's user, within the limits of the key."""
        caller = call.caller
        reached = [identity for identity in caller.organizations if caller.reaches(identity)]
        return page(
            call.request,
            len(reached),
            lambda limit, offset: [
                self._organization(identity, caller)
                for identity in reached[offset : offset + limit]
            ],
        )

    async def organization(self, call: Call) -> Response:
        """GET one; `@current` is the first of the key's user."""
        return JSONAnswer(self._organization(str(call.organization), call.caller))

    def _basics(self, identity: str, caller: Caller) -> dict[str, Any]:
        name = (self._store.organization(identity) or {}).get("name", "")
        return {
            "id": identity,
            "name": name,
            "slug": "".join(letter if letter.isalnum() else "-" for letter in name.lower()),
            "membership_level": caller.level,
            "members_can_use_personal_api_keys": True,
        }

    def _organization(self, identity: str, caller: Caller) -> dict[str, Any]:
        projects = [self._fields.short(project) for project in self._store.projects(identity)]
        return {
            **self._basics(identity, caller),
            "teams": projects,
            "projects": projects,
            "available_product_features": [
                {"key": name, "name": name} for name in self._world.features_of(identity)
            ],
        }


def _masked(value: str) -> str:
    """Return the ends of a key, or nothing of a short one."""
    return f"{value[:4]}...{value[-4:]}" if len(value) >= _LONG_VALUE else "********"
