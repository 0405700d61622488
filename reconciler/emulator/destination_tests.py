"""Destination test steps: by type and server, their results, and their operations.

No destination is contacted: a step passes unless its configuration is incomplete, the integration
signs in another way, or a rule of the switchboard sets its result (service.md, 11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from reconciler.emulator.access import Call, export_of, project_in
from reconciler.emulator.answers import JSONAnswer, body_of
from reconciler.emulator.batch_exports import ExportFields, Write
from reconciler.emulator.destinations import merged, wrong_type
from reconciler.emulator.inputs import BadInput, list_of, mapping_of
from reconciler.emulator.refusal import server_error
from reconciler.emulator.world import World

_STATUSES = ("Passed", "Failed", "Skipped")
_NOT_CONFIGURED = "The test step cannot run as it's not configured."
_UNKNOWN_ERROR = "The test step failed with an unknown error: a rule of the switchboard."
_RULE_NAMES = ("destination", "step", "status", "message")


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a destination type.

    skipped
        The message with which it is skipped if the integration holds a key; None if it always runs.
    """

    name: str
    description: str
    skipped: str | None = None

    def shown(self, result: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the step as an answer shows it; the result is null in a list."""
        return {"name": self.name, "description": self.description, "result": result}


@dataclass(frozen=True, slots=True)
class StepRule:
    """A rule of the switchboard: the result of some steps. None matches any.

    step
        The position or the name of a step.
    """

    status: str
    message: str | None = None
    destination: str | None = None
    step: int | str | None = None

    def matches(self, destination: str, position: int, step: Step) -> bool:
        """Return whether the rule sets the result of this step."""
        return self.destination in (None, destination) and self.step in (None, position, step.name)

    def shown(self) -> dict[str, Any]:
        """Return the rule in the form that a request sets it."""
        return {name: getattr(self, name) for name in _RULE_NAMES}


_S3 = Step("Check S3 bucket exists", "The bucket exists and the credentials reach it.")
_ROLE = Step(
    "Ensure we can assume provided AWS role",
    "The service can assume the role of the integration.",
    skipped="No configured AWS role ARN, skipping test",
)
_KEY_MESSAGE = "The integration holds a service account key, skipping test"
_IMPERSONATION = (
    Step(
        "Impersonate BigQuery service account",
        "The service can act as the service account of the integration.",
        skipped=_KEY_MESSAGE,
    ),
    Step(
        "Verify BigQuery service account ownership",
        "The service account belongs to this organization.",
        skipped=_KEY_MESSAGE,
    ),
)
_BIGQUERY = (
    Step("Verify BigQuery project", "The project exists."),
    Step("Verify BigQuery dataset", "The dataset exists in the project."),
    Step("Verify BigQuery table", "A table can be created in the dataset."),
)
_SNOWFLAKE = (
    Step("Establish connection to Snowflake", "The credentials sign in."),
    Step("Verify Snowflake warehouse", "The warehouse exists."),
    Step("Verify Snowflake database", "The database exists."),
    Step("Verify Snowflake schema", "The schema exists in the database."),
)
_DATABRICKS = (
    Step("Establish connection to Databricks", "The credentials sign in."),
    Step("Verify Databricks catalog", "The catalog exists."),
    Step("Verify Databricks schema", "The schema exists in the catalog."),
    Step("Verify Databricks table", "A table can be created in the schema."),
    Step("Verify permissions to create a Databricks volume", "A volume can be created."),
)
_AZURE = Step("Check Azure Blob container exists", "The container exists.")

# The names of 2025 are inferred from those of 2026.
_INLINE: Mapping[str, tuple[Step, ...]] = {
    "S3": (_S3,),
    "BigQuery": _BIGQUERY,
    "Snowflake": _SNOWFLAKE,
    "Databricks": _DATABRICKS,
}
_BY_INTEGRATION: Mapping[str, tuple[Step, ...]] = {
    "AwsS3": (_ROLE, _S3),
    "S3Compatible": (_S3,),
    "BigQuery": (*_IMPERSONATION, *_BIGQUERY),
    "Snowflake": _SNOWFLAKE,
    "Databricks": _DATABRICKS,
    "AzureBlob": (_AZURE,),
}
# Groups of keys; one key of each group must have a value. Inferred. In 2026 integrations hold them.
_CREDENTIALS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "S3": (("aws_access_key_id",), ("aws_secret_access_key",)),
    "Snowflake": (("user",), ("password", "private_key")),
}


def steps_of(destination: str, *, integrations: bool) -> tuple[Step, ...]:
    """Return the steps of a destination type; none for a type without."""
    return (_BY_INTEGRATION if integrations else _INLINE).get(destination, ())


def result_of(
    step: Step,
    position: int,
    destination: Mapping[str, Any],
    rules: Sequence[StepRule],
    *,
    integration: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the result of a step: its status, and a message or None.

    `destination` is as an export stores it; `integration` is the record that it names.
    """
    rule = next((rule for rule in rules if rule.matches(destination["type"], position, step)), None)
    keyless = integration is not None and bool(integration.get("keyless"))
    if rule is not None:
        status, message = rule.status, rule.message
        message = _UNKNOWN_ERROR if status == "Failed" and message is None else message
    elif integration is None and not _has_credentials(destination):
        status, message = "Failed", _NOT_CONFIGURED
    elif step.skipped is not None and not keyless:
        status, message = "Skipped", step.skipped
    else:
        status, message = "Passed", None
    return {"status": status, "message": message}


def _has_credentials(destination: Mapping[str, Any]) -> bool:
    groups = _CREDENTIALS.get(destination["type"], ())
    config = destination["config"]
    return all(any(config.get(name) for name in group) for group in groups)


def step_rules_of(raw: Any, *, integrations: bool) -> list[StepRule]:
    """Return the rules of a list, or of a mapping with `rules`. Raise BadInput."""
    return [_rule_of(rule, integrations=integrations) for rule in list_of(raw, "rules")]


def _rule_of(rule: Any, *, integrations: bool) -> StepRule:
    mapping_of(rule, "rule", _RULE_NAMES)
    statuses = _STATUSES if integrations else _STATUSES[:2]
    if rule.get("status") not in statuses:
        raise BadInput(f"status must be one of {', '.join(statuses)}")
    destination, step, message = rule.get("destination"), rule.get("step"), rule.get("message")
    if message is not None and not isinstance(message, str):
        raise BadInput("message must be text or null")
    types = _BY_INTEGRATION if integrations else _INLINE
    if destination is not None and destination not in tuple(types):
        raise BadInput(f"destination must be one of {', '.join(types)}")
    candidates = [types[destination]] if destination is not None else list(types.values())
    if step is not None and not any(
        step in (position, defined.name)
        for steps in candidates
        for position, defined in enumerate(steps)
    ):
        raise BadInput(f"no destination has a step {step!r}: name a step or its position")
    return StepRule(rule["status"], message, destination, step)


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
        steps = steps_of(name, integrations=self._world.dialect.newest)
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
            if self._world.dialect.newest and "type" in sent:
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
        steps = steps_of(checked["type"], integrations=self._world.dialect.newest)
        position = sent.get("step", 0)
        if not isinstance(position, int) or not 0 <= position < len(steps):
            # The server indexes its list of steps unchecked; for a type without steps, too.
            raise server_error()
        named = checked["integration"]
        integration = None if named is None else self._world.store.integration(named)
        result = result_of(steps[position], position, checked, self.rules, integration=integration)
        return JSONAnswer(steps[position].shown(result))
