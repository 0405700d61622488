"""How the destination of an export is checked, merged and shown (service-facts 1.3 to 1.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.emulator.destination_types import (
    ALL_SECRETS,
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
_COMPRESSIONS = {
    "JSONLines": ("gzip", "brotli"),
    "Parquet": ("zstd", "lz4", "snappy", "gzip", "brotli"),
}
_CAPTURE_ADDRESSES = ("https://us.i.posthog.com/batch/", "https://eu.i.posthog.com/batch/")


class Destinations:
    """The rules of one server."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._types = types_of(integrations=world.dialect.integrations)

    def created(self, sent: Any, *, project: int, model: str | None) -> dict[str, Any]:
        """The destination of a new export. Raises Refusal."""
        sent = self._object(sent)
        name = self._type_name(sent, None)
        known = self._types[name]
        config = self._config(name, sent, partial=False, stored={})
        if name == "HTTP" and (model or "events") != "events":
            raise invalid("destination", "invalid_input", "HTTP batch exports only support events.")
        integration = self._integration(known, sent, project, None, creating=True)
        if self._world.dialect.integrations and name in INJECTED_INTO:
            config.setdefault("legacy_parquet_extension", False)
        return {"type": name, "config": config, "integration": integration}

    def changed(
        self, sent: Any, stored: Mapping[str, Any], *, project: int, partial: bool
    ) -> dict[str, Any]:
        """The destination after a PATCH or PUT: config is merged at every level."""
        sent = self._object(sent)
        dialect = self._world.dialect
        if partial and dialect.crashes and not {"type", "config"} <= set(sent):
            # The nested serializer skips the field, and the validation indexes it all the same.
            raise server_error()
        name = self._type_name(sent, stored["type"] if partial else None)
        if dialect.integrations and name != stored["type"]:
            raise invalid(
                "destination", "invalid_input", "Changing the destination type is not allowed."
            )
        same = name == stored["type"]
        before = stored["config"] if same else {}
        config = self._config(name, sent, partial=partial and same, stored=before)
        known = self._types[name]
        integration = self._integration(
            known, sent, project, stored.get("integration"), creating=False
        )
        whole = merged(stored["config"], config)
        if dialect.integrations and name in INJECTED_INTO:
            whole.setdefault("legacy_parquet_extension", True)
            if config.get("legacy_parquet_extension") is True and (
                stored["config"].get("legacy_parquet_extension") is False
            ):
                raise invalid(
                    "destination",
                    "invalid_input",
                    "legacy_parquet_extension cannot be enabled again.",
                )
        return {"type": name, "config": whole, "integration": integration}

    def shown(self, stored: Mapping[str, Any], *, reading: bool) -> dict[str, Any]:
        """What an answer shows. `reading` is False for the answer of the write itself."""
        known = self._types.get(stored["type"])
        secrets = known.secrets if known is not None else ALL_SECRETS
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
                raise invalid(
                    "destination",
                    "invalid_input",
                    "S3 is no longer supported: use AwsS3 or S3Compatible.",
                )
            raise invalid("destination__type", "invalid_choice", f'"{name}" is not a valid choice.')
        self._world.need_flag(f"destination:{name}")
        return name

    def _config(
        self, name: str, sent: Mapping[str, Any], *, partial: bool, stored: Mapping[str, Any]
    ) -> dict[str, Any]:
        dialect = self._world.dialect
        if "config" not in sent and not partial:
            if dialect.integrations:
                raise invalid("destination__config", "required", "This field is required.")
            if dialect.crashes:
                raise server_error()
        config = sent.get("config")
        config = {} if config is None else config
        if not isinstance(config, dict):
            if dialect.crashes:
                raise server_error()
            raise invalid("destination__config", "invalid_input", "Expected an object.")
        known = self._types[name]
        _check_known(known, config)
        if not partial:
            _check_required(known, config)
        converted = {
            key: _converted(key, value, known.fields.get(key, ConfigField(nullable=True)))
            for key, value in config.items()
        }
        whole = {**stored, **converted}
        judged = whole if dialect.integrations else converted
        rule = _TYPE_RULES.get(name)
        if rule is not None:
            rule(judged, whole, integrations=dialect.integrations)
        return converted

    def _integration(
        self,
        known: DestinationType,
        sent: Mapping[str, Any],
        project: int,
        stored: int | None,
        *,
        creating: bool,
    ) -> int | None:
        named = sent.get("integration", sent.get("integration_id"))
        absent = "integration" not in sent and "integration_id" not in sent
        if absent and not creating and not (known.resend and known.needs_integration):
            return stored
        if named is None:
            if known.needs_integration:
                raise invalid("destination", "invalid_input", "An integration is required.")
            return None
        found = self._world.store.integration(named) if isinstance(named, int) else None
        if found is None or found["project"] != project:
            raise invalid(
                "destination__integration",
                "does_not_exist",
                f'Invalid pk "{named}" - object does not exist.',
            )
        if known.integration is not None and found["kind"] != known.integration:
            raise invalid(
                "destination",
                "invalid_input",
                f"Integration is of kind '{found['kind']}', expected '{known.integration}'.",
            )
        return int(named)


def _check_known(known: DestinationType, config: Mapping[str, Any]) -> None:
    unknown = sorted(set(config) - set(known.fields) - _BASE_KEYS)
    if unknown:
        listed = ", ".join(f"'{name}'" for name in unknown)
        raise invalid(_INSIDE, "invalid_input", f"Configuration has unknown field/s: {listed}")


def _check_required(known: DestinationType, config: Mapping[str, Any]) -> None:
    for name, field in known.fields.items():
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
        # Any other word becomes false without an error (service-facts 1.4, rule 3).
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


def _wrong(detail: str) -> Refusal:
    return invalid("destination", "invalid_input", detail)


def _check_files(
    judged: Mapping[str, Any], whole: Mapping[str, Any], *, integrations: bool
) -> None:
    """Old servers look at the submitted config alone: compression is judged for JSONLines."""
    file_format = judged.get("file_format", "JSONLines")
    if file_format not in _COMPRESSIONS:
        raise _wrong(f"File format {file_format} is not supported.")
    compression = judged.get("compression")
    if compression is not None and compression not in _COMPRESSIONS[file_format]:
        raise _wrong(f"Compression {compression} is not supported for file format {file_format}.")
    if integrations:
        for name in ("bucket_name", "region", "container_name"):
            if whole.get(name) == "":
                raise _wrong(f"{name} cannot be empty.")


def _check_snowflake(
    judged: Mapping[str, Any], whole: Mapping[str, Any], *, integrations: bool
) -> None:
    del judged
    if integrations:
        return
    way = whole.get("authentication_type", "password")
    secret = {"password": "password", "keypair": "private_key"}.get(str(way))
    if secret is None:
        raise _wrong(f"Unknown authentication type {way}.")
    if whole.get(secret) is None:
        raise _wrong(f"{secret} is required for {way} authentication.")


def _check_redshift(
    judged: Mapping[str, Any], whole: Mapping[str, Any], *, integrations: bool
) -> None:
    del judged
    if whole.get("mode") != "COPY":
        return
    inputs = whole.get("copy_inputs")
    inputs = inputs if isinstance(inputs, dict) else {}
    for name in ("s3_bucket", "region_name", "authorization", "bucket_credentials"):
        if not inputs.get(name):
            raise _wrong(f"{name} is required for COPY.")
    credentials = inputs["bucket_credentials"]
    if integrations and isinstance(credentials, int):
        return
    for name in ("aws_access_key_id", "aws_secret_access_key"):
        if not (isinstance(credentials, dict) and credentials.get(name)):
            raise _wrong(f"{name} is required for COPY.")


def _check_address(
    judged: Mapping[str, Any], whole: Mapping[str, Any], *, integrations: bool
) -> None:
    del judged
    if integrations and whole.get("url") not in _CAPTURE_ADDRESSES:
        raise _wrong("url must be one of the capture addresses.")


_Rule = Callable[..., None]
_TYPE_RULES: Mapping[str, _Rule] = {
    "S3": _check_files,
    "AwsS3": _check_files,
    "S3Compatible": _check_files,
    "AzureBlob": _check_files,
    "Snowflake": _check_snowflake,
    "Redshift": _check_redshift,
    "HTTP": _check_address,
}


def merged(stored: Any, sent: Any) -> Any:
    """Merged key by key at every level; lists are replaced (service-facts 1.6)."""
    if not (isinstance(stored, dict) and isinstance(sent, dict)):
        return sent
    return {**stored, **{name: merged(stored.get(name), value) for name, value in sent.items()}}


def as_text(value: Any) -> Any:
    """The encrypted column turns scalars into text; null, lists and objects survive (1.5)."""
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
    """The secrets of a config by name, at every depth, for fingerprints."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        if name in ALL_SECRETS:
            found[name] = value
        elif isinstance(value, dict):
            inner = secret_values(value)
            found.update({f"{name}.{key}": item for key, item in inner.items()})
    return found
