"""The switchboard under `/_emulator/`: not part of the interface, and without a key."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.answers import JSONAnswer
from reconciler.emulator.batch_exports import ExportFields
from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.destination_tests import StepRule, step_rules_of
from reconciler.emulator.destinations import secret_values
from reconciler.emulator.faults import faults_of
from reconciler.emulator.gate import Gate
from reconciler.emulator.inputs import BadInput
from reconciler.emulator.outcomes import outcome_rules
from reconciler.emulator.projects import ProjectFields
from reconciler.emulator.throttle import windows_of
from reconciler.emulator.world import Settings


def _wrong(detail: str) -> Response:
    return JSONAnswer({"error": detail}, status_code=400)


class Switchboard:
    """The operations of the switchboard."""

    def __init__(
        self,
        gate: Gate,
        exports: ExportFields,
        step_rules: list[StepRule],
        replant: Callable[[], None],
    ) -> None:
        self._gate = gate
        self._world = gate.world
        self._exports = exports
        self._step_rules = step_rules
        self._replant = replant
        self._snapshots: dict[str, tuple[sqlite3.Connection, timedelta]] = {}

    async def requests(self, request: Request) -> Response:
        """GET the request log; DELETE clears it."""
        if request.method == "DELETE":
            self._gate.log.clear()
            return Response(status_code=204)
        return JSONAnswer({"requests": self._gate.log.entries()})

    async def state(self, request: Request) -> Response:
        """GET all stored objects, secrets as fingerprints."""
        del request
        store, marks = self._world.store, self._gate.log.fingerprints
        fields = ProjectFields(self._world.dialect)
        shown = []
        for organization in store.organizations():
            for project in store.projects(organization):
                inside = []
                exports = store.exports([project.id])
                for export, answer in zip(exports, self._exports.shown_all(exports), strict=True):
                    kept = secret_values(export.body["destination"]["config"])
                    secrets = {name: marks.of(value) for name, value in sorted(kept.items())}
                    inside.append({**answer, "secrets": secrets})
                shown.append({**marks.masked(fields.shown(project)), "batch_exports": inside})
        return JSONAnswer({"dialect": self._world.dialect.name, "projects": shown})

    async def reset(self, request: Request) -> Response:
        """POST restores the seed, real time and the default settings."""
        del request
        self._world.clock.offset = timedelta()
        self._step_rules.clear()
        self._world.outcomes.clear()
        self._replant()
        self._gate.log.clear()
        self._gate.set_faults([])
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
                return _wrong("not a time: send a number of seconds, or an ISO 8601 time")
            await self._world.deferred.run_due()
            self._catch_up()
        return JSONAnswer({"now": iso(clock.now())})

    def _catch_up(self) -> None:
        """Make all runs that are due, and delete the projects that are pending deletion."""
        store = self._world.store
        with store.transaction():
            self._gate.timeline.catch_up_all()
            for organization in store.organizations():
                for project in store.projects(organization):
                    if project.body.get("is_pending_deletion", False):
                        store.remove_project(project.id)

    async def faults(self, request: Request) -> Response:
        """GET the rules with their counts; PUT a list of them; DELETE them."""
        return await self._edited(
            request,
            lambda sent: self._gate.set_faults(faults_of(sent)),
            lambda: {"faults": [fault.summary() for fault in self._gate.faults]},
            default=[],
        )

    async def throttle(self, request: Request) -> Response:
        """GET the limits; PUT {"windows": [{"calls": 480, "seconds": 60}, …]}; DELETE them."""
        throttle = self._gate.throttle
        return await self._edited(
            request,
            lambda sent: throttle.set(windows_of(sent)),
            lambda: {"windows": [asdict(window) for window in throttle.windows]},
            default=[],
        )

    async def test_steps(self, request: Request) -> Response:
        """GET the rules for results of destination test steps; PUT a list; DELETE them."""
        rules = self._step_rules

        def replace(sent: Any) -> None:
            rules[:] = step_rules_of(sent, integrations=self._world.dialect.newest)

        return await self._edited(
            request, replace, lambda: {"rules": [rule.shown() for rule in rules]}, default=[]
        )

    async def outcomes(self, request: Request) -> Response:
        """GET the rules with their counts; PUT a list of them; DELETE them."""
        rules = self._world.outcomes

        def replace(sent: Any) -> None:
            rules[:] = outcome_rules(sent)

        return await self._edited(
            request, replace, lambda: {"outcomes": [rule.summary() for rule in rules]}, default=[]
        )

    async def settings(self, request: Request) -> Response:
        """GET the settings; PUT some of them; DELETE restores the defaults."""
        world = self._world

        def change(sent: Any) -> None:
            jitter = world.settings.jitter_seconds
            world.settings = world.settings.changed(sent)
            if world.settings.jitter_seconds != jitter:
                world.store.recheck_schedules()

        return await self._edited(
            request, change, lambda: asdict(world.settings), asdict(Settings())
        )

    async def _edited(
        self,
        request: Request,
        replace: Callable[[Any], None],
        shown: Callable[[], dict[str, Any]],
        default: Any,
    ) -> Response:
        """Answer what is set, after a PUT of the body or, for DELETE, of the default."""
        try:
            if request.method == "PUT":
                replace(orjson.loads(await request.body()))
            elif request.method == "DELETE":
                replace(default)
        except (BadInput, orjson.JSONDecodeError) as error:
            return _wrong(str(error))
        return JSONAnswer(shown())

    async def snapshot(self, request: Request) -> Response:
        """POST stores a copy of all data under the name in the path."""
        name = request.path_params["name"]
        self._snapshots[name] = (self._world.store.snapshot(), self._world.clock.offset)
        return JSONAnswer({"snapshot": name}, status_code=201)

    async def restore(self, request: Request) -> Response:
        """POST restores a copy."""
        kept = self._snapshots.get(request.path_params["name"])
        if kept is None:
            return JSONAnswer({"error": "unknown snapshot"}, status_code=404)
        self._world.store.restore(kept[0])
        self._world.clock.offset = kept[1]
        return Response(status_code=204)


async def _sent(request: Request) -> dict[str, Any]:
    try:
        sent = orjson.loads(await request.body())
    except orjson.JSONDecodeError:
        return {}
    return sent if isinstance(sent, dict) else {}
