"""The switchboard under `/_emulator/`: never part of the imitated interface, and without a key."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.admin import state_of
from reconciler.emulator.answers import JSONAnswer
from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.faults import BadFault, faults_of
from reconciler.emulator.gate import Gate
from reconciler.emulator.openapi import document
from reconciler.emulator.resources.export_fields import ExportFields
from reconciler.emulator.resources.project_fields import ProjectFields


def _wrong(detail: str) -> Response:
    return JSONAnswer({"error": detail}, status_code=400)


class Switchboard:
    """The operations of the switchboard."""

    def __init__(self, gate: Gate, exports: ExportFields, replant: Callable[[], None]) -> None:
        self._gate = gate
        self._world = gate.world
        self._exports = exports
        self._replant = replant
        self._snapshots: dict[str, tuple[sqlite3.Connection, timedelta]] = {}

    async def requests(self, request: Request) -> Response:
        """GET every request so far; DELETE forgets them."""
        if request.method == "DELETE":
            self._gate.log.clear()
            return Response(status_code=204)
        return JSONAnswer({"requests": self._gate.log.entries()})

    async def state(self, request: Request) -> Response:
        """GET all stored objects, secrets as fingerprints."""
        del request
        return JSONAnswer(state_of(self._world, self._exports, ProjectFields(self._world)))

    async def reset(self, request: Request) -> Response:
        """POST: back to the seed, with real time, no faults and no throttle."""
        del request
        self._world.clock.offset = timedelta()
        self._replant()
        self._gate.log.clear()
        self._gate.faults.clear()
        self._gate.throttle.per_minute = self._gate.throttle.per_hour = None
        self._gate.throttle.clear()
        return Response(status_code=204)

    async def clock(self, request: Request) -> Response:
        """GET the time; POST {"advance_seconds": n} or {"set": "2026-…Z"} moves it."""
        clock = self._world.clock
        if request.method == "POST":
            sent = await _sent(request)
            try:
                if "advance_seconds" in sent:
                    clock.move(timedelta(seconds=float(sent["advance_seconds"])))
                elif "set" in sent:
                    clock.move(parsed(str(sent["set"])) - clock.now())
                else:
                    return _wrong('send {"advance_seconds": n} or {"set": "2026-01-01T00:00:00Z"}')
            except (ValueError, TypeError, OverflowError):
                return _wrong("that is not a time")
            self._catch_up()
        return JSONAnswer({"now": iso(clock.now())})

    def _catch_up(self) -> None:
        """All runs that came due, and projects whose deletion has been carried out."""
        store = self._world.store
        with store.transaction():
            for identity in store.due_exports(self._world.clock.now().timestamp()):
                export = store.export(identity)
                if export is not None:
                    self._gate.runs.catch_up(export)
            for organization in store.organizations():
                for project in store.projects(organization):
                    if project.body.get("is_pending_deletion", False):
                        store.remove_project(project.id)

    async def faults(self, request: Request) -> Response:
        """GET the rules with their counts; PUT a list of them; DELETE them."""
        if request.method == "PUT":
            try:
                self._gate.faults[:] = faults_of(orjson.loads(await request.body()))
            except (BadFault, orjson.JSONDecodeError) as error:
                return _wrong(str(error))
        elif request.method == "DELETE":
            self._gate.faults.clear()
        return JSONAnswer({"faults": [each.told() for each in self._gate.faults]})

    async def throttle(self, request: Request) -> Response:
        """GET the limits; PUT {"per_minute": 480, "per_hour": 4800}; null turns one off."""
        limits = self._gate.throttle
        if request.method == "PUT":
            sent = await _sent(request)
            values = [sent.get("per_minute"), sent.get("per_hour")]
            if not all(each is None or (isinstance(each, int) and each > 0) for each in values):
                return _wrong("per_minute and per_hour are whole numbers or null")
            limits.per_minute, limits.per_hour = values
            limits.clear()
        return JSONAnswer({"per_minute": limits.per_minute, "per_hour": limits.per_hour})

    async def snapshot(self, request: Request) -> Response:
        """POST keeps everything as it is now, under the name in the path."""
        name = request.path_params["name"]
        self._snapshots[name] = (self._world.store.snapshot(), self._world.clock.offset)
        return JSONAnswer({"snapshot": name}, status_code=201)

    async def restore(self, request: Request) -> Response:
        """POST puts everything back as it was."""
        kept = self._snapshots.get(request.path_params["name"])
        if kept is None:
            return JSONAnswer({"error": "there is no such snapshot"}, status_code=404)
        self._world.store.restore(kept[0])
        self._world.clock.offset = kept[1]
        return Response(status_code=204)

    async def openapi(self, request: Request) -> Response:
        """GET the OpenAPI document of the imitated interface."""
        return JSONAnswer(document(self._world.dialect, str(request.base_url).rstrip("/")))


async def _sent(request: Request) -> dict[str, Any]:
    try:
        found = orjson.loads(await request.body())
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
