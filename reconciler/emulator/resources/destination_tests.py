"""Destination test steps: list them, run one for a new or an existing export (service.md, 11).

No destination is contacted; rules of the switchboard set the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from reconciler.emulator.access import Call, export_of, project_in
from reconciler.emulator.answers import JSONAnswer, body_of
from reconciler.emulator.destination_steps import StepRule, result_of, steps_of
from reconciler.emulator.destinations import merged, wrong_type
from reconciler.emulator.refusal import server_error
from reconciler.emulator.resources.export_fields import ExportFields, Write
from reconciler.emulator.world import World


class DestinationTests:
    """The operations, on the project path only. Bodies are those of a create."""

    def __init__(self, world: World, fields: ExportFields) -> None:
        self._world = world
        self._fields = fields
        self.rules: list[StepRule] = []

    async def listed(self, call: Call) -> Response:
        """GET the steps of `?destination=TYPE`. Refusals have no body."""
        name = call.request.query_params.get("destination")
        if not name:
            return Response(status_code=400)
        steps = steps_of(name, integrations=self._world.dialect.integrations)
        if not steps:
            return Response(status_code=404)
        return JSONAnswer({"steps": [step.shown() for step in steps]})

    async def ran_for_new(self, call: Call) -> Response:
        """POST a body of a create and `step`; answer its result, 200 also for a failure."""
        sent = await body_of(call.request)
        return self._ran(sent, project_in(call).id)

    async def ran_for_existing(self, call: Call) -> Response:
        """POST the same for an export, whose stored config is merged in, secrets included."""
        export = export_of(call, self._world.store)
        sent = await body_of(call.request)
        destination = sent.get("destination")
        if isinstance(destination, dict):
            stored = export.body["destination"]
            sent = {**sent, "destination": self._over_stored(destination, stored)}
        return self._ran(sent, export.project)

    def _over_stored(self, sent: dict[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
        """Return the destination merged into the stored one. Raise Refusal.

        That a stored integration counts is inferred.
        """
        if sent.get("type") != stored["type"]:
            if self._world.dialect.integrations and "type" in sent:
                raise wrong_type(stored["type"], sent["type"])
            return sent
        if not isinstance(sent.get("config"), dict):
            raise server_error()
        kept = {} if "integration_id" in sent else {"integration": stored.get("integration")}
        return {**kept, **sent, "config": merged(stored["config"], sent["config"])}

    def _ran(self, sent: Mapping[str, Any], project: int) -> Response:
        destination = sent.get("destination")
        if isinstance(destination, dict) and not isinstance(destination.get("config"), dict):
            raise server_error()
        checked = self._fields.checked(sent, Write(project))["destination"]
        steps = steps_of(checked["type"], integrations=self._world.dialect.integrations)
        position = sent.get("step", 0)
        if not isinstance(position, int) or not 0 <= position < len(steps):
            # The server indexes its list of steps unchecked; for a type without steps, too.
            raise server_error()
        named = checked["integration"]
        integration = None if named is None else self._world.store.integration(named)
        result = result_of(steps[position], position, checked, self.rules, integration=integration)
        return JSONAnswer(steps[position].shown(result))
