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
    (BUCKETS, "bucket_name", ("s3://acme", "arn:aws:s3:::acme", "$BUCKET", "acme/lake", "a b")),
    (("S3", "AwsS3"), "region", ("eu-central-1a", "eu-central-1 ", "eu west 1", "$REGION")),
    (SERVERS, "host", ("db:6543", "postgres://u:hunter2@db/x", "https://db", "u@db", "$HOST")),
    (("Snowflake",), "account", ("https://acme.snowflakecomputing.com", "a/b", "$ACCOUNT")),
    (("BigQuery",), "dataset_id", ("p.ds", "my-dataset", "p:ds", "$DATASET")),
    (("BigQuery",), "table_id", ("ds.events",)),
    (("BigQuery",), "project_id", ("My Project", "$PROJECT", "https://console.cloud.google.com")),
    (("AzureBlob",), "container_name", ("Events", "https://a.blob.core.windows.net/c", "$C")),
    (("Databricks",), "http_path", ("https://dbc.cloud.databricks.com/sql/1.0",)),
]
POSSIBLE: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = [
    (BUCKETS, "bucket_name", ("Old_Bucket.1", "arn:aws:s3:eu-west-1:123:accesspoint/events")),
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


@pytest.mark.parametrize(
    ("field", "value", "more", "is_possible"),
    [
        # With an endpoint, every region is possible.
        ("region", "eu-central-1a", ["endpoint_url: 'https://s3.acme'"], True),
        # References are judged by what they resolve to.
        ("bucket_name", "${env:RECONCILER_VAR_B}", [], True),
        ("bucket_name", "${var:b}", [], False),
    ],
)
def test_s2_what_is_judged_with_other_values(
    tmp_path: Path, field: str, value: str, more: list[str], is_possible: bool
) -> None:
    assert ("[bad-form]" not in validate(tmp_path, "S3", field, value, *more).out) is is_possible


@pytest.mark.parametrize(
    "value", ["a/$(PREFIX)", "$PREFIX/x", "100%/a%20b", "cost$/x", "{year}/$x"]
)
def test_s2_a_variable_in_a_prefix_is_a_warning(tmp_path: Path, value: str) -> None:
    ran = validate(tmp_path, "S3", "prefix", value)
    assert ran.code == 0, ran.out
    words = "is not replaced: it becomes a part of every name [unknown-placeholder]"
    assert (words in ran.out) is ("PREFIX" in value)
