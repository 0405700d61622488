"""Destination types, what their config may hold, and how it is checked (service-facts 1.3, 1.4).

The rules are those of the version that is nearest to the interface: credentials stand in the
config. Only plain types are checked; union types (marked `nullable`) are taken as they come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.emulator.refusal import Refusal, invalid

_TRUE_WORDS = frozenset({"1", "true", "y", "yes", "t", "on"})
_BASE_KEYS = frozenset(
    {
        "interval",
        "timezone",
        "team_id",
        "batch_export_id",
        "batch_export_model",
        "batch_export_schema",
        "include_events",
        "exclude_events",
        "integration_id",
    }
)
_LISTS = ("exclude_events", "include_events")


@dataclass(frozen=True, slots=True)
class ConfigField:
    """One key of a config. A nullable one is not type-checked."""

    type: type = str
    required: bool = False
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class DestinationType:
    """The keys of a type, and which of them are never shown again."""

    fields: Mapping[str, ConfigField]
    secrets: frozenset[str] = frozenset()


_REQUIRED = ConfigField(required=True)
_TEXT = ConfigField()
_OPTIONAL = ConfigField(nullable=True)
_FLAG = ConfigField(bool)
_NUMBER = ConfigField(int)


def _sql_server(**more: ConfigField) -> dict[str, ConfigField]:
    return {
        "user": _REQUIRED,
        "password": _REQUIRED,
        "host": _REQUIRED,
        "database": _REQUIRED,
        "schema": _TEXT,
        "table_name": _TEXT,
        "port": _NUMBER,
        **more,
    }


DESTINATION_TYPES: Mapping[str, DestinationType] = {
    "S3": DestinationType(
        {
            "bucket_name": _REQUIRED,
            "region": _REQUIRED,
            "prefix": _REQUIRED,
            "aws_access_key_id": _OPTIONAL,
            "aws_secret_access_key": _OPTIONAL,
            "compression": _OPTIONAL,
            "encryption": _OPTIONAL,
            "kms_key_id": _OPTIONAL,
            "endpoint_url": _OPTIONAL,
            "file_format": _TEXT,
            "max_file_size_mb": _OPTIONAL,
            "use_virtual_style_addressing": _FLAG,
        },
        frozenset({"aws_access_key_id", "aws_secret_access_key"}),
    ),
    "Snowflake": DestinationType(
        {
            "account": _REQUIRED,
            "user": _TEXT,
            "database": _REQUIRED,
            "warehouse": _REQUIRED,
            "schema": _REQUIRED,
            "table_name": _TEXT,
            "authentication_type": _TEXT,
            "password": _OPTIONAL,
            "private_key": _OPTIONAL,
            "private_key_passphrase": _OPTIONAL,
            "role": _OPTIONAL,
        },
        frozenset({"user", "password", "private_key", "private_key_passphrase"}),
    ),
    "Postgres": DestinationType(
        _sql_server(has_self_signed_cert=_FLAG), frozenset({"user", "password"})
    ),
    "Redshift": DestinationType(
        _sql_server(properties_data_type=_TEXT, mode=_TEXT, copy_inputs=_OPTIONAL),
        frozenset({"user", "password", "aws_access_key_id", "aws_secret_access_key"}),
    ),
    "BigQuery": DestinationType(
        {
            "project_id": _REQUIRED,
            "dataset_id": _REQUIRED,
            "private_key": _REQUIRED,
            "private_key_id": _REQUIRED,
            "token_uri": _REQUIRED,
            "client_email": _REQUIRED,
            "table_id": _TEXT,
            "use_json_type": _FLAG,
        },
        frozenset({"private_key", "private_key_id", "token_uri", "client_email"}),
    ),
    "HTTP": DestinationType({"url": _REQUIRED, "token": _REQUIRED}, frozenset({"token"})),
    "NoOp": DestinationType({"arg": _TEXT}),
}

_COMPRESSIONS = {
    "JSONLines": ("gzip", "brotli"),
    "Parquet": ("zstd", "lz4", "snappy", "gzip", "brotli"),
}


def checked_config(
    type_name: str, config: Any, *, partial: bool, stored: Mapping[str, Any]
) -> dict[str, Any]:
    """The submitted config with its values converted.

    Raises Refusal for the first rule that it breaks. `partial` is a PATCH: nothing is required.
    `stored` is the config that is there already, whose secrets count.
    """
    if not isinstance(config, dict):
        raise invalid("destination__config", "invalid_input", "Expected an object.")
    known = DESTINATION_TYPES[type_name]
    allowed = set(known.fields) | _BASE_KEYS
    unknown = sorted(set(config) - allowed)
    if unknown:
        listed = ", ".join(f"'{name}'" for name in unknown)
        raise invalid(
            "destination__non_field_errors",
            "invalid_input",
            f"Configuration has unknown field/s: {listed}",
        )
    if not partial:
        for name, field in known.fields.items():
            if field.required and name not in config:
                raise invalid(
                    "destination__non_field_errors",
                    "invalid_input",
                    f"Configuration missing required field: '{name}'",
                )
    converted = {
        name: _converted(name, value, known.fields.get(name, _OPTIONAL))
        for name, value in config.items()
    }
    rule = _TYPE_RULES.get(type_name)
    if rule is not None:
        rule(converted, {**stored, **converted})
    return converted


def _converted(name: str, value: Any, field: ConfigField) -> Any:
    if field.nullable or name in _LISTS:
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
        "destination__non_field_errors",
        "invalid_input",
        f"Configuration has invalid type for '{name}': got '{type(value).__name__}', "
        f"expected '{expected.__name__}'",
    )


def _check_files(submitted: Mapping[str, Any], merged: Mapping[str, Any]) -> None:
    """Only the submitted config counts: compression alone is judged against JSONLines."""
    del merged
    file_format = submitted.get("file_format", "JSONLines")
    if file_format not in _COMPRESSIONS:
        raise invalid(
            "destination",
            "invalid_input",
            f"File format {file_format} is not supported.",
        )
    compression = submitted.get("compression")
    if compression is not None and compression not in _COMPRESSIONS[file_format]:
        raise invalid(
            "destination",
            "invalid_input",
            f"Compression {compression} is not supported for file format {file_format}.",
        )


def _check_snowflake(submitted: Mapping[str, Any], merged: Mapping[str, Any]) -> None:
    del submitted
    way = merged.get("authentication_type", "password")
    secret = {"password": "password", "keypair": "private_key"}.get(way)
    if secret is None:
        raise invalid("destination", "invalid_input", f"Unknown authentication type {way}.")
    if merged.get(secret) is None:
        raise invalid(
            "destination", "invalid_input", f"{secret} is required for {way} authentication."
        )


def _check_redshift(submitted: Mapping[str, Any], merged: Mapping[str, Any]) -> None:
    del submitted
    if merged.get("mode") != "COPY":
        return
    inputs = merged.get("copy_inputs")
    inputs = inputs if isinstance(inputs, dict) else {}
    for name in ("s3_bucket", "region_name", "authorization", "bucket_credentials"):
        if not inputs.get(name):
            raise invalid("destination", "invalid_input", f"{name} is required for COPY.")
    credentials = inputs["bucket_credentials"]
    for name in ("aws_access_key_id", "aws_secret_access_key"):
        if not (isinstance(credentials, dict) and credentials.get(name)):
            raise invalid("destination", "invalid_input", f"{name} is required for COPY.")


_TYPE_RULES: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], None]] = {
    "S3": _check_files,
    "Snowflake": _check_snowflake,
    "Redshift": _check_redshift,
}


def merged(stored: Any, sent: Any) -> Any:
    """A config is merged key by key at every level; lists are replaced (service-facts 1.6)."""
    if not (isinstance(stored, dict) and isinstance(sent, dict)):
        return sent
    return {**stored, **{name: merged(stored.get(name), value) for name, value in sent.items()}}


def visible_config(type_name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer shows: secret keys are absent, at every depth."""
    known = DESTINATION_TYPES.get(type_name)
    return _without(config, known.secrets if known is not None else frozenset())


def _without(config: Mapping[str, Any], secrets: frozenset[str]) -> dict[str, Any]:
    return {
        name: _without(value, secrets) if isinstance(value, dict) else value
        for name, value in config.items()
        if name not in secrets
    }


def secret_values(config: Mapping[str, Any], type_name: str) -> dict[str, Any]:
    """The secrets of a config by name, at every depth, for fingerprints."""
    known = DESTINATION_TYPES.get(type_name)
    secrets = known.secrets if known is not None else frozenset()
    found: dict[str, Any] = {}
    for name, value in config.items():
        if name in secrets:
            found[name] = value
        elif isinstance(value, dict):
            inner = secret_values(value, type_name)
            found.update({f"{name}.{key}": item for key, item in inner.items()})
    return found
