"""The part of the switchboard that sets time and outcomes: settings and rules."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.answers import JSONAnswer
from reconciler.emulator.outcomes import BadOutcome, outcome_rules
from reconciler.emulator.settings import BadSetting, Settings
from reconciler.emulator.world import World


class Controls:
    """The operations."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def settings(self, request: Request) -> Response:
        """GET the settings; PUT some of them; DELETE restores the defaults."""
        try:
            if request.method == "PUT":
                self._set(self._world.settings.changed(await _mapping(request)))
            elif request.method == "DELETE":
                self._set(Settings())
        except BadSetting as error:
            return JSONAnswer({"error": str(error)}, status_code=400)
        return JSONAnswer(self._world.settings.as_json())

    def _set(self, settings: Settings) -> None:
        if settings.jitter_seconds != self._world.settings.jitter_seconds:
            self._world.store.recheck_schedules()
        self._world.settings = settings

    async def outcomes(self, request: Request) -> Response:
        """GET the rules with their counts; PUT a list of them; DELETE them."""
        if request.method == "PUT":
            try:
                self._world.outcomes[:] = outcome_rules(orjson.loads(await request.body()))
            except (BadOutcome, orjson.JSONDecodeError) as error:
                return JSONAnswer({"error": str(error)}, status_code=400)
        elif request.method == "DELETE":
            self._world.outcomes.clear()
        return JSONAnswer({"outcomes": [rule.summary() for rule in self._world.outcomes]})


async def _mapping(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request. Raise BadSetting."""
    try:
        sent = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise BadSetting(str(error)) from None
    if not isinstance(sent, dict):
        raise BadSetting("settings are a mapping")
    return sent
