"""A rehearsal predicts what an apply does, and changes nothing."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reconciler.model.schema_files import known_schema
from tests.conftest import LONG, StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator

ORGANIZATION = "4dc8564d-bd82-1065-2f40-97f7c50f67cf"
SECRET = "${secret:env:RECONCILER_SECRET_KEY}"
NO_OP = {"type": "NoOp", "config": {}}
TABLE = {"database": "d", "warehouse": "w", "schema": "s"}
SNOWFLAKE = {**TABLE, "account": "a", "user": SECRET}
BUCKET = {"bucket_name": "b", "region": "r", "prefix": "p/"}
COPY = {"s3_bucket": "b", "region_name": "r", "authorization": "role"}
SQL = {"user": SECRET, "password": SECRET, "host": "h", "database": "d", "mode": "COPY"}
AWS_KEYS = {"aws_access_key_id": SECRET, "aws_secret_access_key": SECRET}
DATABRICKS = {"http_path": "h", "catalog": "c", "schema": "s", "table_name": "t"}


def plain(value: Any) -> Any:
    """Return a value with its secrets resolved, for the seed."""
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return "stored" if value == SECRET else value


def redshift(**inputs: Any) -> dict[str, Any]:
    copy_inputs = {**COPY, "bucket_credentials": AWS_KEYS, **inputs}
    return {"type": "Redshift", "config": {**SQL, "copy_inputs": copy_inputs}}


def export(**fields: Any) -> dict[str, Any]:
    return {"project": "web", "name": "New", "interval": "hour", "destination": NO_OP, **fields}


def files(project: Mapping[str, Any] | None = None, **exports: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with a change that is accepted, besides those of a case."""
    fine = export(name="Fine")
    web = {"name": "Web", **(project or {})}
    return {"projects": {"web": web}, "batch_exports": {"fine": fine, **exports}}


def seed(dialect: str, scopes: list[str]) -> dict[str, Any]:
    web: list[dict[str, Any]] = [{"name": "Live", "destination": NO_OP}]
    app: list[dict[str, Any]] = []
    if dialect == "2026":
        bucket = {"type": "AwsS3", "config": BUCKET, "integration": 7}
        web.append({"name": "Bucket", "destination": bucket})
        table = {"type": "Snowflake", "config": TABLE, "integration": 8}
        app.append({"name": "Table", "destination": table})
    else:
        signed_in = {**SNOWFLAKE, "password": SECRET}
        web.append({"name": "Table", "destination": {"type": "Snowflake", "config": signed_in}})
        web.append({"name": "Copy", "destination": redshift()})
    projects = [
        {"id": 1, "name": "Web", "batch_exports": plain(web)},
        {"id": 2, "name": "App", "batch_exports": app},
    ]
    return {
        "organizations": [{"id": ORGANIZATION, "name": "Acme", "projects": projects}],
        "keys": [{"value": "phx_key", "scopes": ["*"]}, {"value": "phx_read", "scopes": scopes}],
        "integrations": [
            {"id": 7, "project": 1, "kind": "aws-s3"},
            {"id": 8, "project": 2, "kind": "snowflake"},
        ],
    }


READS = ["batch_export:read", "project:read", "organization:read"]
CASES: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    ("2026", "an integration of another type"): (
        files(lake=export(destination={"type": "Snowflake", "config": TABLE, "integration": 7})),
        "Integration is of kind 'aws-s3', expected 'snowflake'.",
    ),
    ("2025", "another way to sign in, without its secret"): (
        files(
            lake=export(
                name="Table",
                destination={
                    "type": "Snowflake",
                    "config": {**SNOWFLAKE, "authentication_type": "keypair"},
                },
            )
        ),
        "'private_key' is required for authentication type 'keypair'.",
    ),
    ("interface", "a dashboard of a new project"): (
        {"projects": {"new": {"name": "New", "primary_dashboard": 4}}, "batch_exports": {}},
        'Invalid pk "4" - object does not exist.',
    ),
    ("2026", "an integration of another project"): (
        files(lake=export(destination={"type": "Snowflake", "config": TABLE, "integration": 8})),
        'Invalid pk "8" - object does not exist.',
    ),
    ("2026", "an integration in a new project"): (
        {
            "projects": {"new": {"name": "New"}},
            "batch_exports": {
                "lake": export(
                    project="new",
                    destination={"type": "Databricks", "integration": 7, "config": DATABRICKS},
                )
            },
        },
        'Invalid pk "7" - object does not exist.',
    ),
    ("2026", "a name that differs in case only"): (
        {"projects": {"other": {"name": "APP"}}, "batch_exports": {}},
        "the name is taken",
    ),
    ("2026", "a query with an open bracket"): (
        files(lake=export(model="hogql", sql_query="select (event from events")),
        "Failed to parse query",
    ),
    ("2026", "a filter without a type"): (
        files(lake=export(filters=[{"key": "a"}])),
        "Each filter needs a type",
    ),
    ("2026", "a filter on the interval"): (
        files(lake=export(filters=[{"key": "data_interval_start", "type": "event"}])),
        "Filters may not use the data interval.",
    ),
    ("2026", "filters on persons"): (
        files(lake=export(model="persons", filters=[{"key": "a", "type": "event"}])),
        "Model 'persons' does not take filters.",
    ),
    ("2026", "a merge without a key"): (
        files(lake=export(incremental_mode="MERGE")),
        "MERGE needs a primary_key.",
    ),
    ("2026", "a blank prefix"): (
        files(
            lake=export(
                destination={
                    "type": "AwsS3",
                    "integration": 7,
                    "config": {**BUCKET, "prefix": "  "},
                }
            )
        ),
        "'prefix' cannot be empty.",
    ),
    ("2026", "an unknown modifier"): (files({"modifiers": {"nope": 1}}), "(modifiers)"),
    ("2026", "invalid trigger groups"): (
        files({"session_recording_trigger_groups": {"foo": 1}}),
        "Must be an object of version 2",
    ),
    ("2026", "an unknown retention period"): (
        files({"session_recording_retention_period": "2d"}),
        '"2d" is not a valid choice.',
    ),
    ("2025", "a query that cannot be parsed"): (
        files(lake=export(sql_query="selec event from events")),
        "Failed to parse query",
    ),
    ("2025", "a query with a join"): (
        files(lake=export(sql_query="select event from events join persons on 1")),
        "Batch exports do not support JOIN.",
    ),
    ("2025", "a query on persons"): (
        files(lake=export(sql_query="select id from persons")),
        "Batch exports only support queries on events.",
    ),
    ("2025", "an unknown file format"): (
        files(lake=export(destination={"type": "S3", "config": {**BUCKET, "file_format": "CSV"}})),
        "File format 'CSV' is not supported.",
    ),
    ("2025", "a copy without a bucket"): (
        files(lake=export(name="Copy", destination=redshift(s3_bucket=""))),
        "'s3_bucket' is required for mode COPY.",
    ),
    ("2025", "keys in place of a role"): (
        files(lake=export(name="Copy", destination=redshift(authorization=AWS_KEYS))),
        "500",
    ),
    ("interface", "an unknown key of the replay settings"): (
        files({"session_replay_config": {"y": 1}}),
        "Unknown key 'y'.",
    ),
}
IN_CI = 3


def names(items: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(item["address"], item["action"]) for item in items if item["action"] != "no-op"]


def run(command: str, folder: Path, running: RunningEmulator, *options: str) -> Ran:
    environ = {**running.environ(), "RECONCILER_SECRET_KEY": "the-real-secret"}
    return reconciler(command, "-C", folder, "--no-base", *options, environ=environ)


@pytest.mark.parametrize(("dialect", "case"), list(CASES) if LONG else list(CASES)[:IN_CI])
def test_a_rehearsal_predicts_the_refusals_and_the_end_state_of_an_apply(
    dialect: str, case: str, service_of: StartService, tmp_path: Path
) -> None:
    configuration, words = CASES[dialect, case]
    running = service_of(seed(dialect, READS), "--dialect", dialect)
    write(tmp_path, {"reconciler.yaml": "version: 1\n", "all.yaml": json.dumps(configuration)})
    before = running.state()
    ran = run("rehearse", tmp_path, running, "--format", "json", "--retry-for", "1s")
    assert running.state() == before
    rehearsal = json.loads(ran.out)
    Draft202012Validator(known_schema("rehearse")).validate(rehearsal)
    applied = run(
        *("apply", tmp_path, running, "--format", "json"), "--auto-approve", "--retry-for", "1s"
    )
    assert ran.code == applied.code == 3
    events = [json.loads(line) for line in applied.out.splitlines()]
    failed = [event for event in events if event.get("event") == "failed"]
    skipped = [event for event in events if event.get("event") == "skipped"]
    by_outcome: dict[str, list[dict[str, Any]]] = {}
    for problem in rehearsal["problems"]:
        by_outcome.setdefault(problem["outcome"], []).append(problem)
    assert "inexact" not in by_outcome
    assert len(by_outcome.pop("skipped", [])) == len(skipped)
    assert len(rehearsal["problems"]) == len(failed) + len(skipped)
    if "500" not in words:
        assert [item["message"] for item in by_outcome["refused"]] == [
            event["error"] for event in failed
        ]
        assert f"{rehearsal['calls']} API calls" in applied.err
    assert words in rehearsal["problems"][0]["message"]
    assert rehearsal["problems"][0]["at"]["file"] == "all.yaml"
    left = json.loads(run("plan", tmp_path, running, "--format", "json").out)
    assert names(rehearsal["left"]) == names(left["changes"])


FINE = {
    "projects": {
        "web": {"name": "Web", "timezone": "Europe/Berlin"},
        "new": {"name": "New", "app_urls": ["https://acme.example"]},
    },
    "batch_exports": {
        "live": {**export(name="Live"), "paused": True},
        "one": {**export(project="new", name="One"), "paused": True},
        "two": export(
            project="new",
            name="Two",
            destination={
                "type": "HTTP",
                "config": {"url": "https://eu.i.posthog.com/batch/", "token": SECRET},
            },
        ),
    },
}


def test_a_rehearsal_sends_only_gets_and_needs_no_secret(
    service_of: StartService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that only reads is enough, and no file is left."""
    running = service_of(seed("2026", READS), "--dialect", "2026")
    folder, temporary = tmp_path / "files", tmp_path / "temporary"
    temporary.mkdir()
    write(folder, {"reconciler.yaml": "version: 1\n", "all.yaml": json.dumps(FINE)})
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    environ = {**running.environ(), "RECONCILER_API_KEY": "phx_read"}
    ran = reconciler("rehearse", "-C", folder, "--no-base", "--kills", "50", environ=environ)
    assert ran.code == 0, ran.err
    assert {request["method"] for request in running.requests()} == {"GET"}
    assert list(temporary.iterdir()) == []
    assert "End state   matches the configuration; a second plan is empty" in ran.out
    kills = "5 after 5 writes: 5 with the same end state after a second run"
    assert f"Kills       {kills}" in ran.out
    assert "Rehearsal: 5 of 5 changes would be applied." in ran.out
    saved = folder / "plan.json"
    options = ("--no-base", "--rehearse", "--out", saved)
    planned = reconciler("plan", "-C", folder, *options, environ=environ)
    assert planned.code == 0, planned.err
    assert planned.out.index("Plan: 3 to create") < planned.out.index("Rehearsal: 5 of 5 changes")
    assert saved.exists()


def test_a_rehearsal_of_a_plan_is_only_text(emulator: RunningEmulator, tmp_path: Path) -> None:
    ran = run("plan", tmp_path, emulator, "--rehearse", "--format", "json")
    assert ran.code == 64
    assert "use `reconciler rehearse` for JSON" in ran.err


def test_a_plan_that_the_policy_refuses_is_not_rehearsed(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    workspace = "version: 1\npolicy: {deny: [new-api-token]}\n"
    write(tmp_path, {"reconciler.yaml": workspace, "all.yaml": "projects: {new: {name: New}}\n"})
    ran = run("rehearse", tmp_path, emulator)
    assert ran.code == 5
    assert "[deny]" in ran.out
    assert "Refused by policy; nothing was rehearsed." in ran.out


def test_the_dialect_is_assumed_if_nothing_shows_it(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    write(tmp_path, {"reconciler.yaml": "version: 1\n", "all.yaml": json.dumps(FINE)})
    ran = run("rehearse", tmp_path, emulator)
    assert ran.code == 0, ran.err
    shown = "dialect 2025 (assumed: the service does not show its own)"
    assert f"Copy        embedded service, {shown}" in ran.out


def test_nothing_is_rehearsed_without_changes(emulator: RunningEmulator, tmp_path: Path) -> None:
    files_without_changes = "projects: {own: {name: Default project}}\n"
    write(tmp_path, {"reconciler.yaml": "version: 1\n", "all.yaml": files_without_changes})
    ran = run("rehearse", tmp_path, emulator)
    assert ran.code == 0
    assert "No changes." in ran.out
