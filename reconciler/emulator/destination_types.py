"""The keys that the config of each destination type may hold (service.md, 1.3).

INLINE has credentials in the config (`interface`, `2025`); BY_INTEGRATION has them in integrations
(`2026`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConfigField:
    """A key of a config. `unchecked` marks a type that the service does not check, such as a union.

    An unchecked field of type int is converted from text nevertheless, and crashes if it can't be.
    """

    type: type = str
    required: bool = False
    unchecked: bool = False


@dataclass(frozen=True, slots=True)
class NeededIntegration:
    """The integration that a destination type needs on create (service.md, 1.3 and 1.6).

    wrong_kind
        The refusal of another kind; `{kind}` is replaced by the kind that was named.
    patch
        What a PATCH of the destination needs: "resent" must name it again; "kept" keeps an absent
        one and refuses null; "loose" keeps an absent one and removes it by null; "sticky" is
        "resent" for an export that has one, and needs none for an older one.
    owner
        The type as the refusal of a missing integration names it; None for its own name.
    """

    kind: str
    wrong_kind: str
    patch: str = "resent"
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class DestinationType:
    """The keys of a type, which of them are secret, and the integration that it needs, if any."""

    fields: Mapping[str, ConfigField]
    secrets: frozenset[str] = frozenset()
    integration: NeededIntegration | None = None


def _keys(
    required: str = "", *, text: str = "", optional: str = "", flag: str = ""
) -> dict[str, ConfigField]:
    """Return the keys of a config by their names, which are separated by spaces."""
    return {
        **dict.fromkeys(required.split(), ConfigField(required=True)),
        **dict.fromkeys(text.split(), ConfigField()),
        **dict.fromkeys(optional.split(), ConfigField(unchecked=True)),
        **dict.fromkeys(flag.split(), ConfigField(bool)),
    }


def _secret(names: str) -> frozenset[str]:
    return frozenset(names.split())


_BUCKET = "bucket_name region prefix"
_OPTIONAL_NUMBER = ConfigField(int, unchecked=True)
_FILES = {
    **_keys(text="file_format", optional="compression", flag="legacy_parquet_extension"),
    "max_file_size_mb": _OPTIONAL_NUMBER,
}
_AWS_KEYS = "aws_access_key_id aws_secret_access_key"
_SNOWFLAKE_KEYS = "password private_key private_key_passphrase"
_BIGQUERY_KEYS = "private_key private_key_id token_uri client_email"
_SQL_KEYS = "user password"
_REDSHIFT = _keys(text="properties_data_type", optional="mode copy_inputs")
_S3_KIND = "Integration provided is not an AWS S3 integration (got kind='{kind}')"

_BOTH: Mapping[str, DestinationType] = {
    "Databricks": DestinationType(
        _keys(
            "http_path catalog schema table_name",
            flag="use_variant_type use_automatic_schema_evolution",
        ),
        integration=NeededIntegration("databricks", "Integration is not a Databricks integration."),
    ),
    "HTTP": DestinationType(_keys("url token"), _secret("token")),
    "NoOp": DestinationType(_keys(text="arg")),
}

_SQL_SERVER = {
    **_keys(f"{_SQL_KEYS} host database", text="schema table_name"),
    "port": ConfigField(int),
}
INLINE: Mapping[str, DestinationType] = {
    **_BOTH,
    "S3": DestinationType(
        _keys(
            _BUCKET,
            text="file_format",
            optional=f"{_AWS_KEYS} compression encryption kms_key_id endpoint_url max_file_size_mb",
            flag="use_virtual_style_addressing",
        ),
        _secret(_AWS_KEYS),
    ),
    "Snowflake": DestinationType(
        _keys(
            "account database warehouse schema",
            text="user table_name authentication_type",
            optional=f"{_SNOWFLAKE_KEYS} role",
        ),
        _secret(f"user {_SNOWFLAKE_KEYS}"),
    ),
    "Postgres": DestinationType(
        {**_SQL_SERVER, **_keys(flag="has_self_signed_cert")}, _secret(_SQL_KEYS)
    ),
    "Redshift": DestinationType({**_SQL_SERVER, **_REDSHIFT}, _secret(f"{_SQL_KEYS} {_AWS_KEYS}")),
    "BigQuery": DestinationType(
        _keys(f"project_id dataset_id {_BIGQUERY_KEYS}", text="table_id", flag="use_json_type"),
        _secret(_BIGQUERY_KEYS),
    ),
}
"""Credentials in the config."""

_SQL = {
    **_keys("database", text="schema table_name", optional=f"{_SQL_KEYS} host"),
    "port": _OPTIONAL_NUMBER,
}
BY_INTEGRATION: Mapping[str, DestinationType] = {
    **_BOTH,
    "AwsS3": DestinationType(
        {**_keys(_BUCKET, optional="encryption kms_key_id"), **_FILES},
        integration=NeededIntegration("aws-s3", _S3_KIND, "kept"),
    ),
    "S3Compatible": DestinationType(
        {**_keys(_BUCKET, flag="use_virtual_style_addressing"), **_FILES},
        integration=NeededIntegration("s3-compatible", _S3_KIND, "kept"),
    ),
    "Snowflake": DestinationType(
        _keys("database warehouse schema", text="table_name", optional="role"),
        integration=NeededIntegration(
            "snowflake",
            "Integration provided is not a Snowflake integration (got kind='{kind}')",
            "kept",
        ),
    ),
    "Postgres": DestinationType(
        {**_SQL, **_keys(flag="has_self_signed_cert")},
        _secret(_SQL_KEYS),
        integration=NeededIntegration(
            "postgresql", "Integration is not a PostgreSQL integration.", "loose"
        ),
    ),
    "Redshift": DestinationType(
        {**_SQL, **_REDSHIFT, "port": ConfigField(int)},
        _secret(f"{_SQL_KEYS} {_AWS_KEYS}"),
        integration=NeededIntegration(
            "aws-redshift", "Integration is not a Redshift integration.", "sticky"
        ),
    ),
    "BigQuery": DestinationType(
        _keys(
            "dataset_id",
            text="table_id",
            optional=f"project_id {_BIGQUERY_KEYS}",
            flag="use_json_type",
        ),
        _secret(_BIGQUERY_KEYS),
        integration=NeededIntegration(
            "google-cloud-service-account",
            "Integration is not a Google Cloud service account integration.",
        ),
    ),
    "AzureBlob": DestinationType(
        {**_keys("container_name", text="prefix"), **_FILES},
        integration=NeededIntegration(
            "azure-blob", "Integration is not an Azure Blob integration.", owner="Azure Blob"
        ),
    ),
    "Workflows": DestinationType(_keys("hog_function_id")),
    "FileDownload": DestinationType(
        {
            **_keys(text="file_format", optional="compression data_interval_start"),
            "max_file_size_mb": _OPTIONAL_NUMBER,
            "expires_in_seconds": ConfigField(int),
        }
    ),
}
"""Credentials in integrations."""

INJECTED_INTO = frozenset({"AwsS3", "S3Compatible", "AzureBlob"})
"""New ones get `legacy_parquet_extension: false` (service.md, 1.5)."""


def types_of(*, integrations: bool) -> Mapping[str, DestinationType]:
    """Return the destination types of a server by name."""
    return BY_INTEGRATION if integrations else INLINE


ALL_SECRETS = frozenset(
    name for table in (INLINE, BY_INTEGRATION) for kind in table.values() for name in kind.secrets
)
"""The names of the keys that are secret in any type of any server."""
