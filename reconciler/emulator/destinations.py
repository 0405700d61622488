"""Check, merge and show the destination of an export (service.md, 1.3 to 1.6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from reconciler.emulator.destination_rules import (
    Judged,
    check_config,
    integration_id,
    writes_codec,
    wrong,
)
from reconciler.emulator.destination_types import (
    ALL_SECRETS,
    INJECTED_INTO,
    INLINE,
    ConfigField,
    DestinationType,
    types_of,
)
from reconciler.emulator.refusal import Refusal, invalid, server_error
from reconciler.emulator.world import World

_TRUE_WORDS = frozenset({"1", "true", "y", "yes", "t", "on"})
_SET_BY_SERVER = frozenset(
    {"interval", "timezone", "team_id", "batch_export_id", "batch_export_model"}
    | {"batch_export_schema", "integration_id"}
)
"""Keys that the server knows and sets itself: a config with one of them crashes it."""
_BASE_KEYS = _SET_BY_SERVER | {"include_events", "exclude_events", "data_interval_end"}
_LARGEST = 2**63
_INSIDE = "destination__non_field_errors"
_LEGACY = "legacy_parquet_extension"
_REDSHIFT = "aws-redshift"
_COPY_IDS = ("authorization", "bucket_credentials")


class Destinations:
    """The rules of one server."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._types = types_of(integrations=world.dialect.newest)

    def created(self, sent: Any, *, project: int, planted: bool = False) -> dict[str, Any]:
        """Return the destination of a new export. Raise Refusal.

        `planted` is True for an export of the seed. It may be older than the rules of a create:
        in the newest server, without an integration and with the keys of older servers.
        """
        sent = self._object(sent)
        name = self._type_name(sent, None)
        integration = self._named(sent, project)
        # Those of S3 became AwsS3 and S3Compatible.
        known = INLINE.get(name, INLINE["S3"]).fields if planted else {}
        config = self._submitted(name, sent, partial=False, known=known)
        if not planted:
            self._check_integration(name, integration)
            self._check_host(integration, config)
        self._judge(name, config, config, config if planted else {}, project)
        if self._world.dialect.newest and name in INJECTED_INTO:
            config.setdefault(_LEGACY, False)
        return {"type": name, "config": config, "integration": integration}

    def changed(
        self, sent: Any, stored: Mapping[str, Any], *, project: int | None, partial: bool
    ) -> dict[str, Any]:
        """Return the destination after a PATCH (`partial`) or a PUT. Raise Refusal.

        The config is merged at every level. Old servers keep the keys of another type, too.
        `project` is None on the organization path, where no integration is found.
        """
        sent = self._object(sent)
        dialect = self._world.dialect
        if partial and dialect.real and not {"type", "config"} <= set(sent):
            # The nested serializer skips the field, and the validation indexes it all the same.
            raise server_error()
        name = self._type_name(sent, stored["type"] if partial else None)
        named = self._named(sent, project)
        config = self._submitted(name, sent, partial=partial)
        if dialect.newest and name != stored["type"]:
            raise wrong_type(stored["type"], name)
        if dialect.real and not dialect.newest and _over_text(stored["config"], config):
            raise server_error()
        absent = not {"integration", "integration_id"} & set(sent)
        integration = self._changed_integration(name, stored, named, absent=absent)
        before = dict(stored["config"])
        if dialect.newest and name in INJECTED_INTO:
            before.setdefault(_LEGACY, writes_codec(before))
        whole = merged(before, config)
        self._check_host(integration, whole)
        self._judge(name, config, whole, stored["config"], project)
        return {"type": name, "config": whole, "integration": integration}

    def shown(self, stored: Mapping[str, Any], *, reading: bool) -> dict[str, Any]:
        """Return what an answer shows. `reading` is False for the answer of the write itself."""
        dialect = self._world.dialect
        destination_type = self._types.get(stored["type"])
        secrets = destination_type.secrets if destination_type is not None else ALL_SECRETS
        config = _without(stored["config"], secrets)
        if dialect.real and reading:
            config = as_text(config)
        if dialect.newest and destination_type is not None:
            config = _typed(config, destination_type)
        answer = {"type": stored["type"], "config": config}
        if dialect.real or stored.get("integration") is not None:
            answer["integration"] = stored.get("integration")
        return answer

    def _object(self, sent: Any) -> dict[str, Any]:
        if sent is None:
            raise invalid("destination", "This field may not be null.", "null")
        if not isinstance(sent, dict):
            kind = type(sent).__name__
            raise invalid(_INSIDE, f"Invalid data. Expected a dictionary, but got {kind}.")
        return sent

    def _type_name(self, sent: Mapping[str, Any], otherwise: str | None) -> str:
        name = sent.get("type", otherwise)
        if name is None:
            code = "null" if "type" in sent else "required"
            raise invalid("destination__type", "This field is required.", code)
        if not isinstance(name, str) or name not in self._types:
            raise invalid("destination__type", f'"{name}" is not a valid choice.', "invalid_choice")
        return name

    def _submitted(
        self,
        name: str,
        sent: Mapping[str, Any],
        *,
        partial: bool,
        known: Collection[str] = (),
    ) -> dict[str, Any]:
        """Return the submitted config with its values converted. Raise Refusal.

        `known` are keys besides those of the type.
        """
        config = self._config_object(sent, partial=partial)
        destination_type, dialect = self._types[name], self._world.dialect
        _check_keys(destination_type, config, known)
        if not partial:
            _check_required(destination_type, config)
        unchecked = ConfigField(unchecked=True)
        config = {
            key: _converted(value, destination_type.fields.get(key, unchecked))
            for key, value in config.items()
        }
        self._world.need_flag(f"destination:{name}")
        if dialect.real and _SET_BY_SERVER & set(config):
            raise server_error()
        return config

    def _config_object(self, sent: Mapping[str, Any], *, partial: bool) -> dict[str, Any]:
        dialect = self._world.dialect
        if "config" not in sent and not partial:
            if dialect.newest:
                raise invalid("destination__config", "This field is required.", "required")
            if dialect.real:
                raise server_error()
        config = sent.get("config")
        if config is None:
            if "config" in sent and dialect.real:
                raise invalid("destination__config", "This field may not be null.", "null")
            return {}
        if not isinstance(config, dict):
            if dialect.real:
                raise server_error()
            raise invalid("destination__config", "Expected an object.")
        return config

    def _judge(
        self,
        name: str,
        sent: Mapping[str, Any],
        whole: Mapping[str, Any],
        stored: Mapping[str, Any],
        project: int | None,
    ) -> None:
        def is_s3(identity: int) -> bool:
            record = self._world.store.integration(identity) or {}
            return (record.get("project"), record.get("kind")) == (project, "aws-s3")

        newest = self._world.dialect.newest
        check_config(name, Judged(sent, whole, newest=newest, stored=stored, is_s3=is_s3))

    def _changed_integration(
        self, name: str, stored: Mapping[str, Any], named: int | None, *, absent: bool
    ) -> int | None:
        """Return the integration after a change, `named` being the one in the body, if any."""
        needed = self._types[name].integration
        before: int | None = stored.get("integration")
        if needed is None or needed.patch == "loose":
            named = before if absent else named
            if named is None:
                return None
        elif needed.patch == "kept":
            named = before if absent else named
        elif needed.patch == "sticky" and named is None:
            if before is None:
                return None
            raise wrong(
                "Cannot remove the integration from a Redshift batch export that uses one. "
                "Re-send its `integration` to keep it (or a different one to swap)."
            )
        self._check_integration(name, named)
        return named

    def _named(self, sent: Mapping[str, Any], project: int | None) -> int | None:
        """Return the integration that a body names; `integration_id` wins. Raise Refusal."""
        integration = None
        for name in ("integration", "integration_id"):
            if name in sent:
                integration = self._found(f"destination__{name}", sent[name], project)
        return integration

    def _found(self, attr: str, value: Any, project: int | None) -> int | None:
        if value is None:
            return None
        try:
            identity = int("" if isinstance(value, bool) else value)
        except (ValueError, TypeError, OverflowError):
            kind = type(value).__name__
            detail = f"Incorrect type. Expected pk value, received {kind}."
            raise invalid(attr, detail, "incorrect_type") from None
        record = self._world.store.integration(identity)
        if record is None or record["project"] != project:
            raise invalid(attr, f'Invalid pk "{value}" - object does not exist.', "does_not_exist")
        return identity

    def _check_integration(self, name: str, integration: int | None) -> None:
        """Raise Refusal if the type needs an integration, and this is none of its kind."""
        needed = self._types[name].integration
        if needed is None:
            return
        if integration is None:
            raise wrong(f"Integration is required for {needed.owner or name} batch exports")
        kind = (self._world.store.integration(integration) or {}).get("kind")
        if kind != needed.kind:
            raise wrong(needed.wrong_kind.format(kind=kind))

    def _check_host(self, integration: int | None, config: Mapping[str, Any]) -> None:
        """Check that Redshift has a host, in the integration or in the config."""
        record = {} if integration is None else self._world.store.integration(integration) or {}
        if record.get("kind") != _REDSHIFT:
            return
        if "host" not in (record.get("config") or {}) and not config.get("host"):
            raise wrong(
                "A 'host' is required when using an AWS Redshift integration: set it to the "
                "cluster or workgroup endpoint."
            )


def wrong_type(before: str, after: str) -> Refusal:
    """Return the refusal (400) of another destination type."""
    return wrong(
        f"Cannot change destination type from '{before}' to '{after}'. Delete this batch export "
        "and create a new one with the new destination type."
    )


def _check_keys(
    destination_type: DestinationType, config: Mapping[str, Any], known: Collection[str]
) -> None:
    unknown = sorted(set(config) - set(destination_type.fields) - _BASE_KEYS - set(known))
    if unknown:
        listed = ", ".join(f"'{name}'" for name in unknown)
        raise invalid(_INSIDE, f"Configuration has unknown field/s: {listed}")


def _check_required(destination_type: DestinationType, config: Mapping[str, Any]) -> None:
    for name, field in destination_type.fields.items():
        if field.required and name not in config:
            raise invalid(_INSIDE, f"Configuration missing required field: '{name}'")


def _converted(value: Any, field: ConfigField) -> Any:
    if field.type is bool and isinstance(value, str):
        # Any other word becomes false without an error (service.md, 1.4).
        return value.strip().lower() in _TRUE_WORDS
    if field.type is int and isinstance(value, str):
        number = _number(value)
        if number is None:
            # What is not checked fails later, where the schedule is made.
            raise server_error() if field.unchecked else _mistyped(value, field.type)
        return number if abs(number) < _LARGEST else value
    if not field.unchecked and not isinstance(value, field.type):
        raise _mistyped(value, field.type)
    return value


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _mistyped(value: Any, expected: type) -> Refusal:
    got = type(value).__name__
    detail = f"Configuration has invalid type: got '{got}', expected '{expected.__name__}'"
    return invalid(_INSIDE, detail)


def _typed(config: Mapping[str, Any], destination_type: DestinationType) -> dict[str, Any]:
    """Return a config with the texts of declared numbers and booleans converted (1.5)."""
    typed = dict(config)
    for name, value in config.items():
        kind = destination_type.fields[name].type if name in destination_type.fields else str
        if kind is bool and isinstance(value, str):
            typed[name] = value.lower() == "true"
        elif kind is int and isinstance(value, str):
            number = _number(value)
            typed[name] = value if number is None or abs(number) >= _LARGEST else number
        elif name == "copy_inputs" and isinstance(value, dict):
            ids = {key: integration_id(value.get(key)) for key in _COPY_IDS}
            typed[name] = {
                **value,
                **{key: identity for key, identity in ids.items() if identity is not None},
            }
    return typed


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
