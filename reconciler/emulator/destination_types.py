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
        The kinds of integration that may hold its credentials. A create must name one of these;
        empty accepts any and needs none.
    resend
        Whether each PATCH of the destination must name the integration again; otherwise an
        absent one is kept (docs/service.md, 1.6).
    droppable
        Whether a PATCH may set the integration to null.
    """

    fields: Mapping[str, ConfigField]
    secrets: frozenset[str] = frozenset()
    kinds: tuple[str, ...] = ()
    resend: bool = False
    droppable: bool = False

    @property
    def needs_integration(self) -> bool:
        """Return whether a create must name an integration."""
        return bool(self.kinds)


AWS_REDSHIFT = "aws-redshift"
"""The kind whose integration has no host: the config must have it. The word is inferred."""


def _keys(
    required: str = "", *, text: str = "", optional: str = "", flag: str = ""
) -> dict[str, ConfigField]:
    """Return the keys of a config by their names, which are separated by spaces."""
    return {
        **dict.fromkeys(required.split(), ConfigField(required=True)),
        **dict.fromkeys(text.split(), ConfigField()),
        **dict.fromkeys(optional.split(), ConfigField(nullable=True)),
        **dict.fromkeys(flag.split(), ConfigField(bool)),
    }


def _secret(names: str) -> frozenset[str]:
    return frozenset(names.split())


_BUCKET = "bucket_name region prefix"
_FILES = _keys(
    text="file_format", optional="compression max_file_size_mb", flag="legacy_parquet_extension"
)
_AWS_KEYS = "aws_access_key_id aws_secret_access_key"
_SNOWFLAKE_KEYS = "password private_key private_key_passphrase"
_BIGQUERY_KEYS = "private_key private_key_id token_uri client_email"
_SQL_KEYS = "user password"
_REDSHIFT = _keys(text="properties_data_type mode", optional="copy_inputs")

_BOTH: Mapping[str, DestinationType] = {
    "Databricks": DestinationType(
        _keys(
            "http_path catalog schema table_name",
            flag="use_variant_type use_automatic_schema_evolution",
        ),
        kinds=("databricks",),
        resend=True,
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
    "port": ConfigField(int, nullable=True),
}
BY_INTEGRATION: Mapping[str, DestinationType] = {
    **_BOTH,
    "AwsS3": DestinationType(
        {**_keys(_BUCKET, optional="encryption kms_key_id"), **_FILES}, kinds=("aws-s3",)
    ),
    "S3Compatible": DestinationType(
        {**_keys(_BUCKET, flag="use_virtual_style_addressing"), **_FILES}, kinds=("s3-compatible",)
    ),
    "Snowflake": DestinationType(
        _keys("database warehouse schema", text="table_name", optional="role"), kinds=("snowflake",)
    ),
    "Postgres": DestinationType(
        {**_SQL, **_keys(flag="has_self_signed_cert")},
        _secret(_SQL_KEYS),
        kinds=("postgresql",),
        droppable=True,
    ),
    "Redshift": DestinationType(
        {**_SQL, **_REDSHIFT},
        _secret(f"{_SQL_KEYS} {_AWS_KEYS}"),
        kinds=("redshift", AWS_REDSHIFT),
        resend=True,
    ),
    "BigQuery": DestinationType(
        _keys(
            "dataset_id",
            text="table_id",
            optional=f"project_id {_BIGQUERY_KEYS}",
            flag="use_json_type",
        ),
        _secret(_BIGQUERY_KEYS),
        kinds=("google-cloud-service-account",),
        resend=True,
    ),
    "AzureBlob": DestinationType(
        {**_keys("container_name", text="prefix"), **_FILES}, kinds=("azure-blob",), resend=True
    ),
    "Workflows": DestinationType(_keys("hog_function_id")),
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
