"""Destination types and their config fields, over all dialects (service-facts 1.3 to 1.5).

One table for all servers: a field that a server does not know is refused by that server, and the
schemas say which dialects know it. Required fields are those of the interface's servers.
"""

from __future__ import annotations

from reconciler.model.kind import Field
from reconciler.model.shape import Boolean, Integer, OpenObject, SetOf, Shape, Text
from reconciler.model.values import JSON


def _required(name: str, shape: Shape | None = None) -> Field:
    return Field(name, shape or Text(), required=True)


def _defaulted(name: str, default: JSON, shape: Shape | None = None) -> Field:
    """A plain-typed field: null is refused, so resetting sends the default (trap 9)."""
    return Field(name, shape or Text(), default=default)


def _optional(name: str, shape: Shape | None = None) -> Field:
    """A nullable field without a default."""
    return Field(name, shape or Text(), clearable=True)


def _secret(name: str, *, required: bool = False) -> Field:
    return Field(name, Text(), secret=True, required=required)


EVENT_LISTS: tuple[Field, ...] = (
    Field("exclude_events", SetOf(Text(), empty_is_null=True), clearable=True),
    Field("include_events", SetOf(Text(), empty_is_null=True), clearable=True),
)
"""Every type takes these two."""

_FILES: tuple[Field, ...] = (
    # Old servers judge the compression by the submitted body alone, as for JSONLines unless the
    # same PATCH says otherwise (trap 16): the two travel together.
    Field("compression", Text(), clearable=True, brings=("file_format",)),
    Field("file_format", Text(), default="JSONLines", brings=("compression",)),
    _optional("max_file_size_mb", Integer()),
    _defaulted("legacy_parquet_extension", default=False, shape=Boolean()),
)

_BUCKET: tuple[Field, ...] = (
    _required("bucket_name"),
    _required("region"),
    _required("prefix"),
    _secret("aws_access_key_id"),
    _secret("aws_secret_access_key"),
    _optional("endpoint_url"),
    *_FILES,
)

_ENCRYPTION: tuple[Field, ...] = (
    Field("encryption", Text(), clearable=True, brings=("kms_key_id",)),
    Field("kms_key_id", Text(), clearable=True, brings=("encryption",)),
)

_ADDRESSING = _defaulted("use_virtual_style_addressing", default=False, shape=Boolean())

_SNOWFLAKE: tuple[Field, ...] = (
    _required("account"),
    _secret("user"),
    _required("database"),
    _required("warehouse"),
    _required("schema"),
    _defaulted("table_name", "events"),
    # A change of the way to sign in is refused without the secret of the new way.
    Field(
        "authentication_type",
        Text(),
        default="password",
        brings=("user", "password", "private_key", "private_key_passphrase"),
    ),
    _secret("password"),
    _secret("private_key"),
    _secret("private_key_passphrase"),
    _optional("role"),
)


def _sql_server(port: int) -> tuple[Field, ...]:
    return (
        _secret("user", required=True),
        _secret("password", required=True),
        _required("host"),
        _required("database"),
        _defaulted("schema", "public"),
        _defaulted("table_name", "events"),
        _defaulted("port", port, Integer()),
    )


_POSTGRES: tuple[Field, ...] = (
    *_sql_server(5432),
    _defaulted("has_self_signed_cert", default=False, shape=Boolean()),
)

_REDSHIFT: tuple[Field, ...] = (
    *_sql_server(5439),
    _defaulted("properties_data_type", "varchar"),
    Field("mode", Text(), default="INSERT", brings=("copy_inputs",)),
    # Holds credentials at depth: they are stripped from every answer (service-facts 1.3), so it
    # is compared without them and always sent whole.
    Field("copy_inputs", OpenObject(numbers_as_text=True), clearable=True, brings=("mode",)),
)

_BIGQUERY: tuple[Field, ...] = (
    _required("project_id"),
    _required("dataset_id"),
    _secret("private_key", required=True),
    _secret("private_key_id", required=True),
    _secret("token_uri", required=True),
    _secret("client_email", required=True),
    _defaulted("table_id", "events"),
    _defaulted("use_json_type", default=False, shape=Boolean()),
)

_DATABRICKS: tuple[Field, ...] = (
    _required("http_path"),
    _required("catalog"),
    _required("schema"),
    _required("table_name"),
    _defaulted("use_variant_type", default=True, shape=Boolean()),
    _defaulted("use_automatic_schema_evolution", default=True, shape=Boolean()),
)

_AZURE_BLOB: tuple[Field, ...] = (
    _required("container_name"),
    _defaulted("prefix", ""),
    *_FILES,
)

_OWN_FIELDS: dict[str, tuple[Field, ...]] = {
    "S3": (*_BUCKET, *_ENCRYPTION, _ADDRESSING),
    "AwsS3": (*_BUCKET, *_ENCRYPTION),
    "S3Compatible": (*_BUCKET, _ADDRESSING),
    "Snowflake": _SNOWFLAKE,
    "Postgres": _POSTGRES,
    "Redshift": _REDSHIFT,
    "BigQuery": _BIGQUERY,
    "Databricks": _DATABRICKS,
    "AzureBlob": _AZURE_BLOB,
    "HTTP": (_required("url"), _secret("token", required=True)),
    "Workflows": (_required("hog_function_id"),),
    "FileDownload": (),
    "NoOp": (_defaulted("arg", ""),),
}

DESTINATIONS: dict[str, tuple[Field, ...]] = {
    name: (*fields, *EVENT_LISTS) for name, fields in _OWN_FIELDS.items()
}

PLACES: dict[str, str] = {
    "bucket_name": "bucket",
    "prefix": "prefix",
    "container_name": "container",
    "region": "region",
    "endpoint_url": "endpoint",
    "account": "account",
    "host": "host",
    "database": "database",
    "schema": "schema",
    "table_name": "table",
    "project_id": "BigQuery project",
    "dataset_id": "dataset",
    "table_id": "table",
    "catalog": "catalog",
    "warehouse": "warehouse",
    "url": "address",
}
"""Fields that say where data goes, with the word for them: what is there already stays there."""
