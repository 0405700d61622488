"""Batch exports (service.md 1). Their fields are in `schemas/batch_export.schema.json`."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from reconciler.kinds.batch_export.query import QueryText
from reconciler.model.kind import (
    Action,
    Dialect,
    Field,
    Integration,
    IntegrationField,
    Toggle,
    kind_of,
    variant_of,
)
from reconciler.model.schemas import OpenObject, SetOf, Text, holds_secret
from reconciler.model.values import JSONObject, mapping_of

_KINDS = {
    "AwsS3": "aws-s3",
    "S3Compatible": "s3-compatible",
    "Snowflake": "snowflake",
    "Redshift": "aws-redshift",
    "Postgres": "postgresql",
    "BigQuery": "google-cloud-service-account",
    "Databricks": "databricks",
    "AzureBlob": "azure-blob",
}
_COPY = (
    # Other text is the name of a role.
    IntegrationField(("config", "copy_inputs", "authorization"), "aws-s3", by_text=False),
    IntegrationField(("config", "copy_inputs", "bucket_credentials"), "aws-s3"),
)

INTEGRATIONS: Mapping[str, tuple[IntegrationField, ...]] = {
    **{tag: (IntegrationField(("integration",), kind),) for tag, kind in _KINDS.items()},
    "Redshift": (IntegrationField(("integration",), "aws-redshift"), *_COPY),
}
"""The fields of a destination that take an integration, by type."""

_NAMES = ("name", "service_account_email", "server_hostname")
_ACCOUNTS = {
    "aws_account_id": "AWS account {}",
    "aws_role_arn": "{}",
    "account": "Snowflake account {}",
    "endpoint_url": "{}",
    "project_id": "project {}",
}
"""The known keys of `config`: others may be secret."""
_BUCKETS, _SERVERS = ("S3", "AwsS3", "S3Compatible"), ("Postgres", "Redshift")
_BUCKET = {"bucket_name": "bucket", "prefix": "prefix", "endpoint_url": "endpoint"}
_TABLE = {"database": "database", "schema": "schema", "table_name": "table"}
_SERVER = {"host": "host", "port": "port", **_TABLE}
PLACES: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(_BUCKETS, _BUCKET),
    "AzureBlob": {"container_name": "container", "prefix": "prefix"},
    "BigQuery": {"project_id": "BigQuery project", "dataset_id": "dataset", "table_id": "table"},
    "Databricks": {"catalog": "catalog", "schema": "schema", "table_name": "table"},
    "HTTP": {"url": "address"},
    **dict.fromkeys(_SERVERS, _SERVER),
    "Snowflake": {"account": "account", **_TABLE},
}
"""Fields with the location of exported data by type, and words for them. The first is the address.

What computes or signs in is not a place: `warehouse` and `role` of Snowflake, `http_path` of
Databricks, `copy_inputs` of Redshift. Nor is `region`, which a bucket cannot change.
"""
_BY = " by integration {integration}"
_IN_CLOUD = ("bucket", "s3://{bucket}", " at {endpoint}", _BY)
OUTERMOST: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_BUCKETS, _IN_CLOUD),
    "AzureBlob": ("bucket", "Azure container {container}", _BY),
    "BigQuery": ("bucket", "BigQuery project {BigQuery project}", _BY),
    "Databricks": ("bucket", "Databricks catalog {catalog}", _BY),
    "HTTP": ("host", "{address}"),
    **dict.fromkeys(_SERVERS, ("host", "{host}:{port}", _BY)),
    "Snowflake": ("host", "Snowflake account {account}", _BY),
}
"""The sort of a place by type, and its text without what is inside."""
ADDRESSED_BY: Mapping[str, str] = dict.fromkeys(
    ("S3Compatible", "AzureBlob", "BigQuery", "Databricks", "Postgres", "Redshift", "Snowflake"),
    "integration",
)
"""The field beside the config that may hold the address, by type (service.md 1.3)."""
_FILES = (", {file_format}", " {compression}")
_IN_TABLE = ("{database}", ".{schema}", ".{table_name}")
_IN_BUCKET = ("s3://{bucket_name}/", "{prefix}", " ({region})", " at {endpoint_url}", *_FILES)
SUMMARIES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_BUCKETS, _IN_BUCKET),
    "AzureBlob": ("{container_name}/", "{prefix}", *_FILES),
    "BigQuery": ("{project_id}.", "{dataset_id}", ".{table_id}"),
    "Databricks": ("{catalog}", ".{schema}", ".{table_name}"),
    "HTTP": ("{url}",),
    **dict.fromkeys(_SERVERS, ("{host}:{port}/", *_IN_TABLE)),
    "Snowflake": ("{account}/", *_IN_TABLE),
    "Workflows": ("{hog_function_id}",),
}
"""One line about a destination: parts of text, without those of which a field is not set."""
_EVENTS = SetOf(Text())
_IN_BODY = (
    Field("exclude_events", _EVENTS),
    Field("include_events", _EVENTS),
    # Old servers validate the compression against the file format in the same PATCH, which is
    # JSONLines by default (service.md 1.6).
    Field("compression", sent_with=("file_format",)),
    Field("file_format", sent_with=("compression",)),
    Field("encryption", sent_with=("kms_key_id",)),
    Field("kms_key_id", sent_with=("encryption",)),
    # Another authentication type is refused without its secret.
    Field(
        "authentication_type",
        sent_with=("user", "password", "private_key", "private_key_passphrase"),
    ),
    Field("mode", sent_with=("copy_inputs",)),
    # Contains nested credentials, which answers omit (service.md 1.3), so it is compared
    # without them and always sent as a whole.
    Field("copy_inputs", OpenObject(numbers_as_text=True), sent_with=("mode",)),
)
DESTINATION = variant_of(
    "batch_export",
    "destination",
    _IN_BODY,
    fixed_since=Dialect.V2026,
    # Hidden in lists, readable by id only (service.md 1.3).
    unlisted={"Workflows": Dialect.V2026},
    places=PLACES,
    outermost=OUTERMOST,
    addressed_by=ADDRESSED_BY,
    summaries=SUMMARIES,
    integrations=INTEGRATIONS,
)


def integration_of(body: JSONObject) -> Integration | None:
    """Return the integration in an answer, None for one that no destination uses."""
    number, kind, config = body.get("id"), body.get("kind"), mapping_of(body.get("config"))
    if not isinstance(number, int) or kind not in _KINDS.values():
        return None
    plain = {key: str(value) for key, value in config.items() if isinstance(value, (str, int))}
    texts = {key: text for key, text in plain.items() if not holds_secret(text)}
    name = next((texts[key] for key in _NAMES if key in texts), "")
    if not name and {"host", "port", "user"} <= texts.keys():
        name = "{host}:{port}/{user}".format_map(texts)
    if not name and kind == "azure-blob":
        name = str(body.get("display_name") or "").partition(": ")[2]
    accounts = (form.format(texts[key]) for key, form in _ACCOUNTS.items() if key in texts)
    return Integration(str(number), str(kind), name, next(accounts, ""))


_SCHEDULE = ("interval", "timezone", "offset_day", "offset_hour")
"""Sent together: an offset without the interval is a 500 (service.md 1.2)."""

_RESETS = {
    "offset_day": {"offset_hour": "interval"},
    "offset_hour": {"offset_day": "interval"},
}

_SPECIAL = (
    *(
        Field(
            name,
            sent_with=tuple(other for other in _SCHEDULE if other != name),
            resets=_RESETS.get(name, {}),
        )
        for name in _SCHEDULE
    ),
    Field("name", Text(trimmed=True)),
    Field("model", fixed_since=Dialect.V2026),
    Field("paused", toggle=Toggle(on=Action.PAUSE, off=Action.UNPAUSE)),
    Field("destination", DESTINATION),
    Field(
        "sql_query",
        QueryText(),
        verbatim=True,
        aliases=("hogql_query",),
        renamed_since={Dialect.V2025: "hogql_query"},
        # Servers of 2025 return the query in the schema only, rewritten (service.md 1.9).
        read_at=(("schema", "hogql_query"),),
    ),
)


def _dialect_of(body: JSONObject) -> Dialect | None:
    """Return the dialect of the server that returned an export, None if unknown.

    Servers of 2026 compute a time zone, the interface has `sql_query`, and 2025 has neither.
    """
    if "timezone" in body:
        return Dialect.V2026
    if "sql_query" in body:
        return Dialect.INTERFACE
    return Dialect.V2025 if "schema" in body or "interval" in body else None


KIND = replace(
    kind_of("batch_export", _SPECIAL),
    dialect_of=_dialect_of,
    integration_of=integration_of,
    activity=("latest_runs", 0, "created_at"),
    # service.md 13
    page="/project/{parent}/pipeline/batch-exports/{id}",
)
