"""Check, merge and show the destination of an export (docs/service.md, 1.3 to 1.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.emulator.destination_rules import Judged, check_config, wrong
from reconciler.emulator.destination_types import (
    ALL_SECRETS,
    AWS_REDSHIFT,
    INJECTED_INTO,
    ConfigField,
    DestinationType,
    types_of,
)
from reconciler.emulator.refusal import Refusal, invalid, server_error
from reconciler.emulator.world import World

_TRUE_WORDS = frozenset({"1", "true", "y", "yes", "t", "on"})
_BASE_KEYS = frozenset(
    {"interval", "timezone", "team_id", "batch_export_id", "batch_export_model"}
    | {"batch_export_schema", "include_events", "exclude_events", "integration_id"}
)
_LISTS = ("exclude_events", "include_events")
_INSIDE = "destination__non_field_errors"
_LEGACY = "legacy_parquet_extension"


class Destinations:
    """The rules of one server."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._types = types_of(integrations=world.dialect.integrations)

    def created(self, sent: Any, *, project: int, planted: bool = False) -> dict[str, Any]:
        """Return the destination of a new export. Raise Refusal.

        `planted` is True for an export of the seed. It may be older than the rules of a create:
        in the newest server, without an integration or with the legacy extension.
        """
        sent = self._object(sent)
        name = self._type_name(sent, None)
        config = self._submitted(name, sent, partial=False)
        self._judge(name, config, config, creating=not planted)
        destination_type = self._types[name]
        integration = self._integration(destination_type, sent, project)
        if integration is None and destination_type.needs_integration and not planted:
            raise wrong("An integration is required.")
        self._check_host(integration, config)
        if self._world.dialect.integrations and name in INJECTED_INTO:
            config.setdefault(_LEGACY, False)
        return {"type": name, "config": config, "integration": integration}

    def changed(
        self, sent: Any, stored: Mapping[str, Any], *, project: int, partial: bool
    ) -> dict[str, Any]:
        """Return the destination after a PATCH (`partial`) or a PUT. Raise Refusal.

        The config is merged at every level. Old servers keep the keys of another type, too.
        """
        sent = self._object(sent)
        dialect = self._world.dialect
        if partial and dialect.crashes and not {"type", "config"} <= set(sent):
            # The nested serializer skips the field, and the validation indexes it all the same.
            raise server_error()
        name = self._type_name(sent, stored["type"] if partial else None)
        if dialect.integrations and name != stored["type"]:
            raise wrong(f"Cannot change destination type from '{stored['type']}' to '{name}'.")
        config = self._submitted(name, sent, partial=partial)
        if dialect.crashes and not dialect.integrations and _over_text(stored["config"], config):
            raise server_error()
        whole = merged(stored["config"], config)
        self._judge(name, config, whole, creating=False)
        integration = self._changed_integration(self._types[name], sent, project, stored)
        self._check_host(integration, whole)
        if dialect.integrations and name in INJECTED_INTO:
            whole.setdefault(_LEGACY, True)
            if stored["config"].get(_LEGACY) is False and whole[_LEGACY] is True:
                raise wrong(f"{_LEGACY} cannot be enabled again.")
        return {"type": name, "config": whole, "integration": integration}

    def shown(self, stored: Mapping[str, Any], *, reading: bool) -> dict[str, Any]:
        """Return what an answer shows. `reading` is False for the answer of the write itself."""
        destination_type = self._types.get(stored["type"])
        secrets = destination_type.secrets if destination_type is not None else ALL_SECRETS
        config = _without(stored["config"], secrets)
        if self._world.dialect.scalars_as_text and reading:
            config = as_text(config)
        answer = {"type": stored["type"], "config": config}
        if self._world.dialect.name != "interface" or stored.get("integration") is not None:
            answer["integration"] = stored.get("integration")
        return answer

    def _object(self, sent: Any) -> dict[str, Any]:
        if sent is None:
            raise invalid("destination", "null", "This field may not be null.")
        if not isinstance(sent, dict):
            kind = type(sent).__name__
            raise invalid(
                _INSIDE, "invalid_input", f"Invalid data. Expected a dictionary, but got {kind}."
            )
        return sent

    def _type_name(self, sent: Mapping[str, Any], otherwise: str | None) -> str:
        name = sent.get("type", otherwise)
        if name is None:
            code = "null" if "type" in sent else "required"
            raise invalid("destination__type", code, "This field is required.")
        if not isinstance(name, str) or name not in self._types:
            if self._world.dialect.integrations and name == "S3":
                raise wrong("S3 is no longer supported: use AwsS3 or S3Compatible.")
            raise invalid("destination__type", "invalid_choice", f'"{name}" is not a valid choice.')
        self._world.need_flag(f"destination:{name}")
        return name

    def _submitted(self, name: str, sent: Mapping[str, Any], *, partial: bool) -> dict[str, Any]:
        """Return the submitted config with its values converted. Raise Refusal."""
        config = self._config_object(sent, partial=partial)
        destination_type = self._types[name]
        _check_keys(destination_type, config)
        if not partial:
            _check_required(destination_type, config)
        return {
            key: _converted(
                key, value, destination_type.fields.get(key, ConfigField(nullable=True))
            )
            for key, value in config.items()
        }

    def _config_object(self, sent: Mapping[str, Any], *, partial: bool) -> dict[str, Any]:
        dialect = self._world.dialect
        if "config" not in sent and not partial:
            if dialect.integrations:
                raise invalid("destination__config", "required", "This field is required.")
            if dialect.crashes:
                raise server_error()
        config = sent.get("config")
        if config is None:
            if "config" in sent and dialect.name != "interface":
                raise invalid("destination__config", "null", "This field may not be null.")
            return {}
        if not isinstance(config, dict):
            if dialect.crashes:
                raise server_error()
            raise invalid("destination__config", "invalid_input", "Expected an object.")
        return config

    def _judge(
        self, name: str, sent: Mapping[str, Any], whole: Mapping[str, Any], *, creating: bool
    ) -> None:
        newest = self._world.dialect.integrations
        check_config(name, Judged(sent, whole, newest=newest, creating=creating))

    def _changed_integration(
        self,
        destination_type: DestinationType,
        sent: Mapping[str, Any],
        project: int,
        stored: Mapping[str, Any],
    ) -> int | None:
        before: int | None = stored.get("integration")
        absent = not {"integration", "integration_id"} & set(sent)
        # An export from before integrations has none to name again (inferred).
        old = before is None and self._types.get(stored["type"]) is destination_type
        if absent and (old or not destination_type.resend):
            return before
        integration = self._integration(destination_type, sent, project)
        if (
            integration is None
            and destination_type.needs_integration
            and not destination_type.droppable
        ):
            raise wrong("An integration is required.")
        return integration

    def _integration(
        self, destination_type: DestinationType, sent: Mapping[str, Any], project: int
    ) -> int | None:
        """Return the integration that a body names. Raise Refusal."""
        named = sent.get("integration", sent.get("integration_id"))
        if named is None:
            return None
        integration = self._world.store.integration(named) if isinstance(named, int) else None
        if integration is None or integration["project"] != project:
            raise invalid(
                "destination__integration",
                "does_not_exist",
                f'Invalid pk "{named}" - object does not exist.',
            )
        if destination_type.kinds and integration["kind"] not in destination_type.kinds:
            expected = " or ".join(f"'{kind}'" for kind in destination_type.kinds)
            raise wrong(f"Integration is of kind '{integration['kind']}', expected {expected}.")
        return int(named)

    def _check_host(self, integration: int | None, config: Mapping[str, Any]) -> None:
        """Check that the config has the host that an integration of AWS lacks."""
        record = None if integration is None else self._world.store.integration(integration)
        if record is not None and record["kind"] == AWS_REDSHIFT and not config.get("host"):
            raise wrong("'host' is required with an integration of AWS.")


def _check_keys(destination_type: DestinationType, config: Mapping[str, Any]) -> None:
    unknown = sorted(set(config) - set(destination_type.fields) - _BASE_KEYS)
    if unknown:
        listed = ", ".join(f"'{name}'" for name in unknown)
        raise invalid(_INSIDE, "invalid_input", f"Configuration has unknown field/s: {listed}")


def _check_required(destination_type: DestinationType, config: Mapping[str, Any]) -> None:
    for name, field in destination_type.fields.items():
        if field.required and name not in config:
            raise invalid(
                _INSIDE, "invalid_input", f"Configuration missing required field: '{name}'"
            )


def _converted(name: str, value: Any, field: ConfigField) -> Any:
    if (
        (field.nullable and field.type is str)
        or name in _LISTS
        or (field.nullable and value is None)
    ):
        return value
    if field.type is bool and isinstance(value, str):
        # Any other word becomes false without an error (docs/service.md, 1.4).
        return value.strip().lower() in _TRUE_WORDS
    if field.type is int and isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            raise _wrong_type(name, value, field.type) from None
    if not isinstance(value, field.type):
        raise _wrong_type(name, value, field.type)
    return value


def _wrong_type(name: str, value: Any, expected: type) -> Refusal:
    return invalid(
        _INSIDE,
        "invalid_input",
        f"Configuration has invalid type for '{name}': got '{type(value).__name__}', "
        f"expected '{expected.__name__}'",
    )


def merged(stored: Any, sent: Any) -> Any:
    """Return `sent` merged into `stored` at every level; lists are replaced (1.6)."""
    if not (isinstance(stored, dict) and isinstance(sent, dict)):
        return sent
    return {**stored, **{name: merged(stored.get(name), value) for name, value in sent.items()}}


def _over_text(stored: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    """Return whether an object is sent where text is stored, at any level (inferred, 1.6)."""
    for name, value in sent.items():
        before = stored.get(name)
        if isinstance(value, dict) and (
            isinstance(before, str) or (isinstance(before, dict) and _over_text(before, value))
        ):
            return True
    return False


def as_text(value: Any) -> Any:
    """Return a config with its scalars as text; null, lists and objects survive (1.5)."""
    if isinstance(value, dict):
        return {name: as_text(item) for name, item in value.items()}
    if isinstance(value, list):
        return [as_text(item) for item in value]
    return value if value is None else str(value)


def _without(config: Mapping[str, Any], secrets: frozenset[str]) -> dict[str, Any]:
    return {
        name: _without(value, secrets) if isinstance(value, dict) else value
        for name, value in config.items()
        if name not in secrets
    }


def secret_values(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the secrets of a config by dotted name, at every depth, for fingerprints."""
    secrets: dict[str, Any] = {}
    for name, value in config.items():
        if name in ALL_SECRETS:
            secrets[name] = value
        elif isinstance(value, dict):
            inner = secret_values(value)
            secrets.update({f"{name}.{key}": item for key, item in inner.items()})
    return secrets
