"""S2: values that no server of a destination can have are errors; what it may accept is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Ran, reconciler, write

REST = {
    "S3": "bucket_name: acme, region: eu-central-1, prefix: p",
    "AwsS3": "bucket_name: acme, region: eu-central-1, prefix: p",
    "S3Compatible": "bucket_name: acme, region: auto, prefix: p",
    "Postgres": "host: db, database: d",
    "Redshift": "host: db, database: d",
    "Snowflake": "account: acme, database: d, warehouse: w, schema: s",
    "BigQuery": "project_id: acme, dataset_id: d",
    "AzureBlob": "container_name: events",
    "Databricks": "http_path: /sql, catalog: c, schema: s, table_name: t",
}
BUCKETS, SERVERS = ("S3", "AwsS3", "S3Compatible"), ("Postgres", "Redshift")
IMPOSSIBLE: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = [
    (BUCKETS, "bucket_name", ("s3://acme", "arn:aws:s3:::acme", "acme/lake", "a b", "${var:b}")),
    (("S3", "AwsS3"), "region", ("eu-central-1a", "eu-central-1 ", "$REGION")),
    (SERVERS, "host", ("db:6543", "postgres://u:hunter2@db/x", "https://db", "$HOST")),
    (("Snowflake",), "account", ("https://acme.snowflakecomputing.com", "a/b")),
    (("BigQuery",), "dataset_id", ("p.ds", "my-dataset")),
    (("BigQuery",), "table_id", ("ds.events",)),
    (("BigQuery",), "project_id", ("My Project", "https://console.cloud.google.com")),
    (("AzureBlob",), "container_name", ("Events", "https://a.blob.core.windows.net/c")),
    (("Databricks",), "http_path", ("https://dbc.cloud.databricks.com/sql/1.0",)),
]
POSSIBLE: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = [
    (
        BUCKETS,
        "bucket_name",
        ("Old_Bucket.1", "${env:RECONCILER_VAR_B}"),
    ),
    (("S3Compatible",), "region", ("auto", "eu-central-1a", "garage", "ru-central1")),
    (("S3", "AwsS3"), "region", ("us-gov-west-1", "eusc-de-east-1", "aws-global")),
    (SERVERS, "host", ("10.0.0.1", "::1", "fe80::1%eth0", "my_db", "db.example.com.", "/run/pg")),
    (("Snowflake",), "account", ("xy12345.eu-central-1.aws", "acme-prod_eu")),
    (("BigQuery",), "project_id", ("example.com:acme", "123456789")),
    (("AzureBlob",), "container_name", ("$root", "a-b-c")),
]


def validate(folder: Path, tag: str, field: str, value: str, *more: str) -> Ran:
    others = [item for item in REST[tag].split(", ") if not item.startswith(f"{field}:")]
    config = ", ".join((*others, f"{field}: '{value}'", *more))
    text = f"{{project: {{id: 1}}, name: X, interval: hour, destination: {{type: {tag}, "
    text = f"batch_exports: {{x: {text}config: {{{config}}}}}}}}}\n"
    files = {"reconciler.yaml": "version: 1\nvars: {b: s3://acme}\n", "x.yaml": text}
    return reconciler("validate", "-C", write(folder, files))


@pytest.mark.parametrize(
    ("tag", "field", "value"),
    [(tag, name, value) for tags, name, values in IMPOSSIBLE for tag in tags for value in values],
)
def test_s2_impossible_values_are_errors(tmp_path: Path, tag: str, field: str, value: str) -> None:
    ran = validate(tmp_path, tag, field, value)
    assert (ran.code, "[bad-form]" in ran.out) == (1, True), ran.out
    assert f"destination.config.{field} of batch_export.x ({tag}) must " in ran.out
    assert "@" not in value or "hunter2" not in ran.out


@pytest.mark.parametrize(
    ("tag", "field", "value"),
    [(tag, name, value) for tags, name, values in POSSIBLE for tag in tags for value in values],
)
def test_s2_possible_values_are_none(tmp_path: Path, tag: str, field: str, value: str) -> None:
    assert "[bad-form]" not in validate(tmp_path, tag, field, value).out


def test_s2_with_an_endpoint_every_region_is_possible(tmp_path: Path) -> None:
    ran = validate(tmp_path, "S3", "region", "eu-central-1a", "endpoint_url: 'https://s3.acme'")
    assert "[bad-form]" not in ran.out


@pytest.mark.parametrize("value", ["a/$(PREFIX)", "$PREFIX/x", "100%/a%20b", "cost$/x"])
def test_s2_a_variable_in_a_prefix_is_a_warning(tmp_path: Path, value: str) -> None:
    ran = validate(tmp_path, "S3", "prefix", value)
    assert ran.code == 0, ran.out
    words = "is not replaced: it becomes a part of every name [unknown-placeholder]"
    assert (words in ran.out) is ("PREFIX" in value)
