"""Faults by other clients: an edit just before a write, a list that shifts between two pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from starlette.responses import Response

from reconciler.emulator.clock import iso
from reconciler.emulator.destinations import merged
from reconciler.emulator.faults.effect import Exchange, effect
from reconciler.emulator.inputs import BadInput
from reconciler.emulator.resources.project_fields import new_project
from reconciler.emulator.store import StoredExport
from reconciler.emulator.world import World


@effect("edit")
@dataclass(frozen=True, slots=True)
class Edit:
    """Just before the call, another client merges `set` into the object that the path names."""

    set: Mapping[str, Any] = field(default_factory=dict)

    async def answer(self, exchange: Exchange) -> Response:
        """Edit, then answer."""
        self._edit(exchange.world, str(exchange.request.path_params.get("id", "")))
        return await exchange.answer()

    def _edit(self, world: World, identity: str) -> None:
        store, now = world.store, iso(world.clock.now())
        change = dict(self.set)
        export = store.export(identity)
        if export is not None:
            body = {**merged(export.body, change), "last_updated_at": now}
            store.write_export(export.id, body)
            return
        project = store.project(int(identity)) if identity.isdigit() else None
        if project is not None:
            store.write_project(project.id, {**merged(project.body, change), "updated_at": now})


@effect("stale")
@dataclass(frozen=True, slots=True)
class Stale:
    """Before a page other than the first, an object is created at the head of the list, or deleted.

    In a list of projects, which is oldest first, one is added at the end or the first is deleted.
    """

    change: str = "create"

    def __post_init__(self) -> None:
        if self.change not in ("create", "delete"):
            raise BadInput("'change' must be 'create' or 'delete'")

    async def answer(self, exchange: Exchange) -> Response:
        """Shift the list, then answer."""
        request = exchange.request
        if request.query_params.get("offset") not in (None, "0"):
            if request.url.path.rstrip("/").endswith("projects"):
                self._shift_projects(exchange.world, request.path_params.get("organization", ""))
            else:
                self._shift_exports(exchange.world)
        return await exchange.answer()

    def _shift_projects(self, world: World, organization: str) -> None:
        if self.change == "create":
            name = f"Another project {uuid4().hex[:6]}"
            world.store.add_project(organization, new_project(name, iso(world.clock.now())))
        else:
            for project in world.store.projects(organization, limit=1):
                world.store.remove_project(project.id)

    def _shift_exports(self, world: World) -> None:
        store = world.store
        projects = [
            project
            for organization in store.organizations()
            for project in store.project_ids(organization)
        ]
        newest = store.exports(projects, limit=1)
        if self.change == "delete" and newest:
            store.remove_export(newest[0].id)
        elif self.change == "create" and projects:
            now = iso(world.clock.now())
            body = {
                "name": f"Another export {uuid4().hex[:6]}",
                "interval": "hour",
                "destination": {"type": "NoOp", "config": {}, "integration": None},
                "created_at": now,
                "last_updated_at": now,
            }
            store.add_exports([StoredExport(str(uuid4()), projects[0], body)])
