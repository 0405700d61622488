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
from reconciler.emulator.destination_steps import BadStepRule, step_rules_of
from reconciler.emulator.faults.effect import BadFault
from reconciler.emulator.faults.rules import faults_of
from reconciler.emulator.gate import Gate
from reconciler.emulator.resources.export_fields import ExportFields
from reconciler.emulator.resources.project_fields import ProjectFields
from reconciler.emulator.settings import Settings
from reconciler.emulator.throttle import BadWindow, windows_of


def _wrong(detail: str) -> Response:
    return JSONAnswer({"error": detail}, status_code=400)


class Switchboard:
    """The operations of the switchboard."""

    def __init__(
        self,
        gate: Gate,
        exports: ExportFields,
        replant: Callable[[], None],
        document: Callable[[str], dict[str, Any]],
    ) -> None:
        self._gate = gate
        self._world = gate.world
        self._exports = exports
        self._replant = replant
        self._document = document
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
        return JSONAnswer(
            state_of(self._world, self._exports, ProjectFields(self._world.dialect), self._gate.log)
        )

    async def reset(self, request: Request) -> Response:
        """POST: back to the seed, with real time, no faults and no throttle."""
        del request
        self._world.clock.offset = timedelta()
        self._replant()
        self._gate.log.clear()
        self._gate.set_faults([])
        self._world.test_steps.clear()
        self._world.outcomes.clear()
        self._world.settings = Settings()
        self._gate.throttle.set(())
        self._world.deferred.clear()
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
            await self._world.deferred.run_due()
            self._catch_up()
        return JSONAnswer({"now": iso(clock.now())})

    def _catch_up(self) -> None:
        """All runs that came due, and projects whose deletion has been carried out."""
        store = self._world.store
        with store.transaction():
            for identity in store.due_exports(self._world.clock.now().timestamp()):
                export = store.export(identity)
                if export is not None:
                    self._gate.timeline.catch_up(export)
            for organization in store.organizations():
                for project in store.projects(organization):
                    if project.body.get("is_pending_deletion", False):
                        store.remove_project(project.id)

    async def faults(self, request: Request) -> Response:
        """GET the rules with their counts; PUT a list of them; DELETE them."""
        if request.method == "PUT":
            try:
                self._gate.set_faults(faults_of(orjson.loads(await request.body())))
            except (BadFault, orjson.JSONDecodeError) as error:
                return _wrong(str(error))
        elif request.method == "DELETE":
            self._gate.set_faults([])
        return JSONAnswer({"faults": [fault.summary() for fault in self._gate.faults]})

    async def throttle(self, request: Request) -> Response:
        """GET the limits; PUT {"windows": [{"calls": 480, "seconds": 60}, …]}; DELETE them."""
        limits = self._gate.throttle
        if request.method == "PUT":
            try:
                limits.set(windows_of((await _sent(request)).get("windows")))
            except BadWindow as error:
                return _wrong(str(error))
        elif request.method == "DELETE":
            limits.set(())
        windows = [{"calls": window.calls, "seconds": window.seconds} for window in limits.windows]
        return JSONAnswer({"windows": windows})

    async def test_steps(self, request: Request) -> Response:
        """GET the rules for results of destination test steps; PUT a list; DELETE them."""
        rules = self._world.test_steps
        if request.method == "PUT":
            newest = self._world.dialect.integrations
            try:
                rules[:] = step_rules_of(orjson.loads(await request.body()), integrations=newest)
            except (BadStepRule, orjson.JSONDecodeError) as error:
                return _wrong(str(error))
        elif request.method == "DELETE":
            rules.clear()
        return JSONAnswer({"rules": [rule.shown() for rule in rules]})

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
        return JSONAnswer(self._document(str(request.base_url).rstrip("/")))


async def _sent(request: Request) -> dict[str, Any]:
    try:
        sent = orjson.loads(await request.body())
    except orjson.JSONDecodeError:
        return {}
    return sent if isinstance(sent, dict) else {}
