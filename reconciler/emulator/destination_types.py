"""The keys that the config of each destination type may hold (docs/service.md, 1.3).

INLINE has credentials in the config (`interface`, `2025`); BY_INTEGRATION has them in integrations
(`2026`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConfigField:
    """A key of a config. `nullable` marks a union type, which the service does not check."""

    type: type = str
    required: bool = False
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class DestinationType:
    """The keys of a type, which of them are secret, and its rules for integrations.

    kinds
        The kinds of integration that may hold its credentials; empty accepts any.
    needs_integration
        Whether a create must name an integration.
    resend
        Whether each PATCH of the destination must name the integration again; otherwise an
        absent one is kept (docs/service.md, 1.6).
    droppable
        Whether a PATCH may set the integration to null.
    """

    fields: Mapping[str, ConfigField]
    secrets: frozenset[str] = frozenset()
    kinds: tuple[str, ...] = ()
    needs_integration: bool = False
    resend: bool = False
    droppable: bool = False


AWS_REDSHIFT = "aws-redshift"
"""The kind whose integration has no host: the config must have it. The word is inferred."""

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


_DATABRICKS = {
    "http_path": _REQUIRED,
    "catalog": _REQUIRED,
    "schema": _REQUIRED,
    "table_name": _REQUIRED,
    "use_variant_type": _FLAG,
    "use_automatic_schema_evolution": _FLAG,
}

INLINE: Mapping[str, DestinationType] = {
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
    "Databricks": DestinationType(
        _DATABRICKS, kinds=("databricks",), needs_integration=True, resend=True
    ),
}
"""Credentials in the config."""

_FILES = {
    "compression": _OPTIONAL,
    "file_format": _TEXT,
    "max_file_size_mb": _OPTIONAL,
    "legacy_parquet_extension": _FLAG,
}
_BUCKET = {"bucket_name": _REQUIRED, "region": _REQUIRED, "prefix": _REQUIRED, **_FILES}
_AWS = {"encryption": _OPTIONAL, "kms_key_id": _OPTIONAL}
_SQL = {
    "user": _OPTIONAL,
    "password": _OPTIONAL,
    "host": _OPTIONAL,
    "port": ConfigField(int, nullable=True),
    "database": _REQUIRED,
    "schema": _TEXT,
    "table_name": _TEXT,
}
_SQL_SECRETS = frozenset({"user", "password"})

BY_INTEGRATION: Mapping[str, DestinationType] = {
    "AwsS3": DestinationType({**_BUCKET, **_AWS}, kinds=("aws-s3",), needs_integration=True),
    "S3Compatible": DestinationType(
        {**_BUCKET, "use_virtual_style_addressing": _FLAG},
        kinds=("s3-compatible",),
        needs_integration=True,
    ),
    "Snowflake": DestinationType(
        {
            "database": _REQUIRED,
            "warehouse": _REQUIRED,
            "schema": _REQUIRED,
            "table_name": _TEXT,
            "role": _OPTIONAL,
        },
        kinds=("snowflake",),
        needs_integration=True,
    ),
    "Postgres": DestinationType(
        {**_SQL, "has_self_signed_cert": _FLAG},
        _SQL_SECRETS,
        kinds=("postgresql",),
        needs_integration=True,
        droppable=True,
    ),
    "Redshift": DestinationType(
        {**_SQL, "properties_data_type": _TEXT, "mode": _TEXT, "copy_inputs": _OPTIONAL},
        _SQL_SECRETS | {"aws_access_key_id", "aws_secret_access_key"},
        kinds=("redshift", AWS_REDSHIFT),
        needs_integration=True,
        resend=True,
    ),
    "BigQuery": DestinationType(
        {
            "dataset_id": _REQUIRED,
            "table_id": _TEXT,
            "use_json_type": _FLAG,
            "project_id": _OPTIONAL,
            "private_key": _OPTIONAL,
            "private_key_id": _OPTIONAL,
            "token_uri": _OPTIONAL,
            "client_email": _OPTIONAL,
        },
        frozenset({"private_key", "private_key_id", "token_uri", "client_email"}),
        kinds=("google-cloud-service-account",),
        needs_integration=True,
        resend=True,
    ),
    "Databricks": DestinationType(
        _DATABRICKS, kinds=("databricks",), needs_integration=True, resend=True
    ),
    "AzureBlob": DestinationType(
        {"container_name": _REQUIRED, "prefix": _TEXT, **_FILES},
        kinds=("azure-blob",),
        needs_integration=True,
        resend=True,
    ),
    "HTTP": DestinationType({"url": _REQUIRED, "token": _REQUIRED}, frozenset({"token"})),
    "Workflows": DestinationType({"hog_function_id": _REQUIRED}),
    "NoOp": DestinationType({"arg": _TEXT}),
}
"""Credentials in integrations."""

INJECTED_INTO = frozenset({"AwsS3", "S3Compatible", "AzureBlob"})
"""New ones get `legacy_parquet_extension: false` (docs/service.md, 1.5)."""


def types_of(*, integrations: bool) -> Mapping[str, DestinationType]:
    """Return the destination types of a server by name."""
    return BY_INTEGRATION if integrations else INLINE


ALL_SECRETS = frozenset(
    name for table in (INLINE, BY_INTEGRATION) for kind in table.values() for name in kind.secrets
)
"""The names of the keys that are secret in any type of any server."""
