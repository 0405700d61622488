"""What somebody else does at the worst moment: edits just before a write, lists that shift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from starlette.requests import Request

from reconciler.emulator.clock import iso
from reconciler.emulator.destinations import merged
from reconciler.emulator.store import StoredExport
from reconciler.emulator.world import World


class Disturbance:
    """Changes the store behind the back of a call."""

    def __init__(self, world: World) -> None:
        self._world = world

    def edit(self, request: Request, change: Mapping[str, Any]) -> None:
        """Merge a change over the object that the call names, whatever it is."""
        store = self._world.store
        now = iso(self._world.clock.now())
        identity = str(request.path_params.get("id", ""))
        export = store.export(identity)
        if export is not None:
            body = {**merged(export.body, dict(change)), "last_updated_at": now}
            store.write_export(export.id, body)
            return
        project = store.project(int(identity)) if identity.isdigit() else None
        if project is not None:
            store.write_project(
                project.id, {**merged(project.body, dict(change)), "updated_at": now}
            )

    def shift(self, request: Request, change: str) -> None:
        """Put an object at the head of the list, or take the newest away, between two pages."""
        if request.query_params.get("offset") in (None, "0"):
            return
        store = self._world.store
        projects = [
            each.id
            for organization in store.organizations()
            for each in store.projects(organization)
        ]
        newest = store.exports(projects, limit=1)
        if change == "delete" and newest:
            store.remove_export(newest[0].id)
        elif projects:
            now = iso(self._world.clock.now())
            body = {
                "name": f"Somebody else's {uuid4().hex[:6]}",
                "interval": "hour",
                "destination": {"type": "NoOp", "config": {}, "integration": None},
                "created_at": now,
                "last_updated_at": now,
            }
            store.add_exports([StoredExport(str(uuid4()), projects[0], body)])
