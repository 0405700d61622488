"""S2: values that no server of a destination can have are errors; what it may accept is none."""

from __future__ import annotations

import json
from pathlib import Path

from reconciler.diagnostics import Diagnostic, Level
from reconciler.files.loading import load_all
from tests.support.cli import write

Row = tuple[str, str, str]
Table = list[tuple[tuple[str, ...], str, tuple[str, ...]]]
REST = {
    "S3": {"bucket_name": "acme", "region": "eu-central-1", "prefix": "p"},
    "AwsS3": {"bucket_name": "acme", "region": "eu-central-1", "prefix": "p"},
    "S3Compatible": {"bucket_name": "acme", "region": "auto", "prefix": "p"},
    "Postgres": {"host": "db", "database": "d"},
    "Redshift": {"host": "db", "database": "d"},
    "Snowflake": {"account": "acme", "database": "d", "warehouse": "w", "schema": "s"},
    "BigQuery": {"project_id": "acme", "dataset_id": "d"},
    "AzureBlob": {"container_name": "events"},
    "Databricks": {"http_path": "/sql", "catalog": "c", "schema": "s", "table_name": "t"},
}
BUCKETS, SERVERS = ("S3", "AwsS3", "S3Compatible"), ("Postgres", "Redshift")
IMPOSSIBLE: Table = [
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
POSSIBLE: Table = [
    (BUCKETS, "bucket_name", ("Old_Bucket.1", "${env:RECONCILER_VAR_B}")),
    (("S3Compatible",), "region", ("auto", "eu-central-1a", "garage", "ru-central1")),
    (("S3", "AwsS3"), "region", ("us-gov-west-1", "eusc-de-east-1", "aws-global")),
    (SERVERS, "host", ("10.0.0.1", "::1", "fe80::1%eth0", "my_db", "db.example.com.", "/run/pg")),
    (("Snowflake",), "account", ("xy12345.eu-central-1.aws", "acme-prod_eu")),
    (("BigQuery",), "project_id", ("example.com:acme", "123456789")),
    (("AzureBlob",), "container_name", ("$root", "a-b-c")),
]


def rows_of(table: Table) -> list[Row]:
    return [(tag, name, value) for tags, name, values in table for tag in tags for value in values]


def told(folder: Path, rows: list[Row], **more: str) -> list[Diagnostic]:
    """Return what is told about values of fields, each of an export of a type."""
    exports = {}
    for number, (tag, field, value) in enumerate(rows):
        destination = {"type": tag, "config": {**REST[tag], field: value, **more}}
        export = {"name": f"X{number}", "interval": "hour", "project": {"id": 1}}
        exports[f"x{number}"] = {**export, "destination": destination}
    settings = "version: 1\nvars: {b: s3://acme}\n"
    text = json.dumps({"batch_exports": exports})
    found = load_all(write(folder, {"reconciler.yaml": settings, "x.yaml": text}), environ={})
    return [each for each in found if each.code in ("bad-form", "unknown-placeholder")]


def test_s2_impossible_values_are_errors(tmp_path: Path) -> None:
    rows = rows_of(IMPOSSIBLE)
    found = told(tmp_path, rows)
    assert {each.message.partition(" must ")[0] for each in found} == {
        f"destination.config.{field} of batch_export.x{number} ({tag})"
        for number, (tag, field, _) in enumerate(rows)
    }
    assert {(each.code, each.level) for each in found} == {("bad-form", Level.ERROR)}
    assert len(found) == len(rows)
    assert "hunter2" not in repr(found)


def test_s2_possible_values_are_none(tmp_path: Path) -> None:
    """With an endpoint, every region is possible."""
    assert told(tmp_path, rows_of(POSSIBLE)) == []
    region = ("S3", "region", "eu-central-1a")
    assert told(tmp_path, [region], endpoint_url="https://s3.acme") == []


def test_s2_a_variable_in_a_prefix_is_a_warning(tmp_path: Path) -> None:
    values = ("a/$(PREFIX)", "$PREFIX/x", "100%/a%20b", "cost$/x")
    found = told(tmp_path, [("S3", "prefix", value) for value in values])
    assert [each.message.partition(" in ")[0] for each in found] == ["$(PREFIX)", "$PREFIX"]
    assert {each.level for each in found} == {Level.WARNING}
