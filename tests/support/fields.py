"""A configuration of each type of destination, inline and with an integration."""

from __future__ import annotations

from typing import Any

_USER, _PASSWORD = (f"${{secret:env:RECONCILER_SECRET_{name}}}" for name in "UP")
_S3 = {"bucket_name": "b", "region": "r", "prefix": "p/"}
_FILES = {
    "compression": "gzip",
    "file_format": "JSONLines",
    "max_file_size_mb": 5,
    "exclude_events": ["b", "a"],
    "include_events": ["x"],
}
_TABLE = {"database": "d", "schema": "s", "table_name": "x"}
_SQL = {"host": "h", **_TABLE, "port": 5433, "user": _USER, "password": _PASSWORD}
AWS_KEYS = {"aws_access_key_id": _USER, "aws_secret_access_key": _PASSWORD}
_ENCRYPTED = {"encryption": "AES256", "kms_key_id": "k"}
_SNOWFLAKE = {**_TABLE, "warehouse": "w", "role": "r"}
_DATABRICKS = {
    "http_path": "h",
    "catalog": "c",
    "schema": "s",
    "table_name": "x",
    "use_variant_type": False,
    "use_automatic_schema_evolution": False,
}
COPY_INPUTS = {
    "s3_bucket": "b",
    "region_name": "r",
    "s3_key_prefix": "p",
    "authorization": "role",
    "bucket_credentials": AWS_KEYS,
}
_BIGQUERY = {"dataset_id": "d", "table_id": "t", "use_json_type": True}
INLINE: dict[str, dict[str, Any]] = {
    "S3": {
        **_S3,
        **_FILES,
        **AWS_KEYS,
        **_ENCRYPTED,
        "use_virtual_style_addressing": True,
        "endpoint_url": "https://a",
    },
    "Snowflake": {
        **_SNOWFLAKE,
        "account": "a",
        "user": _USER,
        "authentication_type": "password",
        "password": _PASSWORD,
        "private_key": _PASSWORD,
        "private_key_passphrase": _PASSWORD,
    },
    "Postgres": {**_SQL, "has_self_signed_cert": True},
    "Redshift": {
        **_SQL,
        "properties_data_type": "super",
        "mode": "COPY",
        "copy_inputs": COPY_INPUTS,
    },
    "BigQuery": {
        "project_id": "p",
        **_BIGQUERY,
        **dict.fromkeys(("private_key", "private_key_id", "token_uri", "client_email"), _PASSWORD),
    },
    "HTTP": {"url": "https://eu.i.posthog.com/batch/", "token": _PASSWORD},
    "NoOp": {"arg": "a"},
    "Databricks": _DATABRICKS,
}
BY_INTEGRATION: dict[str, dict[str, Any]] = {
    "AwsS3": {**_S3, **_FILES, **_ENCRYPTED, "legacy_parquet_extension": False},
    "S3Compatible": {**_S3, **_FILES, "use_virtual_style_addressing": True},
    "Snowflake": _SNOWFLAKE,
    "Postgres": {**_TABLE, "has_self_signed_cert": True},
    "Redshift": {"database": "d", "host": "h", "schema": "s", "properties_data_type": "super"},
    "BigQuery": _BIGQUERY,
    "Databricks": _DATABRICKS,
    "AzureBlob": {"container_name": "c", "prefix": "p", **_FILES},
    "HTTP": INLINE["HTTP"],
    "NoOp": INLINE["NoOp"],
}
INTEGRATIONS = {
    "AwsS3": "aws-s3",
    "S3Compatible": "s3-compatible",
    "Snowflake": "snowflake",
    "Postgres": "postgresql",
    "Redshift": "aws-redshift",
    "BigQuery": "google-cloud-service-account",
    "Databricks": "databricks",
    "AzureBlob": "azure-blob",
}
QUERIES = [
    "select event, toInt(1+1) as n from events",
    "SELECT event -- all of them\nFROM events where 1 = 1 /* and */ and event != 'x' -- end",
]
