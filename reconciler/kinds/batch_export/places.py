"""Where destinations write, by type (docs/service.md 1.3)."""

from __future__ import annotations

from collections.abc import Mapping

_BUCKET = {"bucket_name": "bucket", "prefix": "prefix", "endpoint_url": "endpoint"}
_SERVER = {"host": "host", "port": "port"}
_TABLE = {"database": "database", "schema": "schema", "table_name": "table"}

PLACES: Mapping[str, Mapping[str, str]] = {
    "S3": _BUCKET,
    "AwsS3": _BUCKET,
    "S3Compatible": _BUCKET,
    "AzureBlob": {"container_name": "container", "prefix": "prefix"},
    "BigQuery": {"project_id": "BigQuery project", "dataset_id": "dataset", "table_id": "table"},
    "Databricks": {"catalog": "catalog", "schema": "schema", "table_name": "table"},
    "HTTP": {"url": "address"},
    "Postgres": {**_SERVER, **_TABLE},
    "Redshift": {**_SERVER, **_TABLE},
    "Snowflake": {"account": "account", **_TABLE},
}
"""Fields with the location of exported data by type, and words for them. The first is the address.

What computes or signs in is not a place: `warehouse` and `role` of Snowflake, `http_path` of
Databricks, `copy_inputs` of Redshift. Nor is `region`, which a bucket cannot change.
"""

OUTERMOST: Mapping[str, tuple[str, str]] = {
    "host": ("host", "{host}:{port}"),
    "account": ("host", "Snowflake account {account}"),
    "address": ("host", "{address}"),
    "bucket": ("bucket", "s3://{bucket}"),
    "container": ("bucket", "Azure container {container}"),
    "BigQuery project": ("bucket", "BigQuery project {BigQuery project}"),
    "catalog": ("bucket", "Databricks catalog {catalog}"),
}
"""The sort of a place and what it is called without what is inside, by the word of its address."""

ADDRESSED_BY: Mapping[str, str] = dict.fromkeys(
    ("S3Compatible", "AzureBlob", "BigQuery", "Databricks", "Postgres", "Redshift", "Snowflake"),
    "integration",
)
"""The field beside the config that may hold the address, by type (docs/service.md 1.3)."""

_FILES = (", {file_format}", " {compression}")
_IN_TABLE = ("{database}", ".{schema}", ".{table_name}")
_ON_HOST = ("{host}:{port}/", *_IN_TABLE)
_IN_BUCKET = ("s3://{bucket_name}/", "{prefix}", " ({region})", " at {endpoint_url}", *_FILES)

SUMMARIES: Mapping[str, tuple[str, ...]] = {
    "S3": _IN_BUCKET,
    "AwsS3": _IN_BUCKET,
    "S3Compatible": _IN_BUCKET,
    "AzureBlob": ("{container_name}/", "{prefix}", *_FILES),
    "BigQuery": ("{project_id}.", "{dataset_id}", ".{table_id}"),
    "Databricks": ("{catalog}", ".{schema}", ".{table_name}"),
    "HTTP": ("{url}",),
    "Postgres": _ON_HOST,
    "Redshift": _ON_HOST,
    "Snowflake": ("{account}/", *_IN_TABLE),
    "Workflows": ("{hog_function_id}",),
}
"""One line about a destination: parts of text, without those of which a field is not set."""
