"""Schemas by name, and the name that was meant."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from reconciler.cli.reference import schema_command
from reconciler.errors import BadUsage
from reconciler.model.schemas import nearest_schema, schema, schema_names


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("batch_exports", "batch_export"),
        ("batch-export", "batch_export"),
        ("Project", "project"),
        ("destinations/s3", "destinations/S3"),
        ("bigquery", "destinations/BigQuery"),
        ("snowflak", "destinations/Snowflake"),
        ("destination/Postgres", "destinations/Postgres"),
        ("editor/resource", "editor/resources"),
        ("resources", "editor/resources"),
        ("zzz", None),
        ("", None),
    ],
)
def test_a_name_that_there_is_not_is_told_with_the_one_that_was_meant(
    asked: str, meant: str | None
) -> None:
    assert schema(asked) is None
    assert nearest_schema(asked) == meant
    raised = CliRunner().invoke(schema_command, [asked]).exception
    assert isinstance(raised, BadUsage)
    told = raised.hint or ""
    assert told.startswith(f"did you mean '{meant}'? schemas: " if meant else "schemas: ")
    assert told.endswith(", ".join(schema_names()))


@pytest.mark.parametrize("name", schema_names())
def test_every_name_finds_itself_in_any_case(name: str) -> None:
    assert nearest_schema(name.upper()) == name
