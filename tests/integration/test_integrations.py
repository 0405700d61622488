"""Integrations by name: plans, imports, comparisons, promotions and tests of destinations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator

ORGANIZATION = "4dc8564d-bd82-1065-2f40-97f7c50f67cf"
KEY = "phx_all_0123456789abcdef"
BUCKET = {"bucket_name": "b", "region": "eu-central-1", "prefix": "events/"}
TABLE = {"database": "d", "schema": "s", "table_name": "t"}
COPY = {
    "mode": "COPY",
    "copy_inputs": {
        "s3_bucket": "b",
        "region_name": "eu-central-1",
        "authorization": {"name": "lake"},
        "bucket_credentials": "lake",
    },
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "lake": ("aws-s3", {"name": "lake", "aws_account_id": "123456789012"}),
    "store": ("s3-compatible", {"name": "store", "endpoint_url": "https://s3.acme.com"}),
    "flakes": ("snowflake", {"name": "flakes", "account": "acme", "user": "u"}),
    "shift": ("aws-redshift", {"name": "shift", "aws_role_arn": "arn:aws:iam::1:role/r"}),
    "red:5439/u": ("aws-redshift", {"host": "red", "port": 5439, "user": "u"}),
    "db:5432/u": ("postgresql", {"host": "db", "port": 5432, "user": "u"}),
    "ci@acme.iam": (
        "google-cloud-service-account",
        {"project_id": "acme", "service_account_email": "ci@acme.iam"},
    ),
    "bricks.acme.com": ("databricks", {"server_hostname": "bricks.acme.com"}),
    "blobs": ("azure-blob", {"account_name": "blobs"}),
}
"""Kinds and configs of integrations by their names in files."""
TYPES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "aws": ("AwsS3", "lake", BUCKET),
    "compatible": ("S3Compatible", "store", BUCKET),
    "snowflake": ("Snowflake", "flakes", {**TABLE, "warehouse": "w"}),
    "postgres": ("Postgres", "db:5432/u", TABLE),
    "redshift": ("Redshift", "red:5439/u", TABLE),
    "redshift_aws": ("Redshift", "shift", {**TABLE, "host": "cluster"}),
    "redshift_copy": ("Redshift", "shift", {**TABLE, "host": "cluster", **COPY}),
    "bigquery": ("BigQuery", "ci@acme.iam", {"project_id": "acme", "dataset_id": "d"}),
    "databricks": (
        "Databricks",
        "bricks.acme.com",
        {"http_path": "/sql", "catalog": "c", "schema": "s", "table_name": "t"},
    ),
    "blob": ("AzureBlob", "blobs", {"container_name": "c", "prefix": "p"}),
}
"""Types, integrations and configs of exports by key."""
WORKSPACE = "version: 1\nenvironments: {staging: {}, production: {}}\n"
WEB = """\
projects:
  web: {name: Staging, overrides: {production: {name: Production}}}
"""


def integrations(project: int, first: int) -> list[dict[str, Any]]:
    return [
        {"id": first + number, "project": project, "kind": kind, "config": config}
        for number, (kind, config) in enumerate(KINDS.values())
    ]


def ids_of(first: int) -> dict[str, int]:
    """Return the ids of integrations by name, of those that begin with an id."""
    return {name: first + number for number, name in enumerate(KINDS)}


def config_of(key: str, ids: dict[str, int] | None = None) -> dict[str, Any]:
    """Return the config of an export, with ids as the service stores them."""
    config = json.loads(json.dumps(TYPES[key][2]))
    if ids is not None and "copy_inputs" in config:
        config["copy_inputs"] |= dict.fromkeys(("authorization", "bucket_credentials"), ids["lake"])
    return config


def live_exports(ids: dict[str, int]) -> list[dict[str, Any]]:
    return [
        {
            "name": key,
            "interval": "hour",
            "destination": {"type": tag, "integration": ids[name], "config": config_of(key, ids)},
        }
        for key, (tag, name, _) in TYPES.items()
    ]


def seed(*exports: list[dict[str, Any]], **key: Any) -> dict[str, Any]:
    names = ("Staging", "Production")
    projects = [
        {"id": number + 1, "name": name, "batch_exports": exports[number] if exports else []}
        for number, name in enumerate(names)
    ]
    return {
        "organizations": [{"id": ORGANIZATION, "name": "Acme", "projects": projects}],
        "keys": [{"value": KEY, "scopes": ["*"], **key}],
        "integrations": [*integrations(1, 100), *integrations(2, 200)],
    }


def resources(*keys: str, **names: Any) -> str:
    exports = {
        key: {
            "project": "web",
            "name": key,
            "interval": "hour",
            "destination": {
                "type": TYPES[key][0],
                "integration": names.get(key, TYPES[key][1]),
                "config": config_of(key),
            },
        }
        for key in keys or TYPES
    }
    return (
        WEB
        + json.dumps({"batch_exports": exports})[1:-1].replace('"batch_exports"', "batch_exports")
        + "\n"
    )


def run(service: RunningEmulator, folder: Path, command: str, *words: str) -> Ran:
    return reconciler(command, "-C", folder, "--trust-workspace", *words, environ=service.environ())


def workspace(folder: Path, text: str | None = None) -> Path:
    return write(folder, {"reconciler.yaml": WORKSPACE, "a.yaml": text or resources()})


@pytest.fixture
def stored(service_of: StartService) -> RunningEmulator:
    exports = live_exports(ids_of(100)), live_exports(ids_of(200))
    return service_of(seed(*exports), "--dialect", "2026")


@pytest.fixture
def empty(service_of: StartService) -> RunningEmulator:
    return service_of(seed(), "--dialect", "2026")


def bodies(service: RunningEmulator, project: int) -> dict[str, dict[str, Any]]:
    answer = service.call("GET", f"/api/projects/{project}/batch_exports/", key=KEY).json()
    return {item["name"]: item for item in answer["results"]}


@pytest.mark.parametrize("environment", ["staging", "production"])
def test_names_of_all_types_are_the_ids_of_each_environment(
    stored: RunningEmulator, tmp_path: Path, environment: str
) -> None:
    folder = workspace(tmp_path)
    ran = run(stored, folder, "plan", "-e", environment)
    assert (ran.code, ran.err.count("rror")) == (0, 0), ran.out + ran.err
    assert "No changes." in ran.out


@pytest.mark.parametrize(
    ("environment", "project", "first"), [("staging", 1, 100), ("production", 2, 200)]
)
def test_creates_send_the_ids_of_the_environment(
    empty: RunningEmulator, tmp_path: Path, environment: str, project: int, first: int
) -> None:
    folder = workspace(tmp_path)
    ran = run(empty, folder, "apply", "-e", environment, "--auto-approve")
    assert ran.code == 0, ran.out + ran.err
    created, ids = bodies(empty, project), ids_of(first)
    assert created.keys() == TYPES.keys()
    for key, (_, name, _) in TYPES.items():
        destination = created[key]["destination"]
        assert destination["integration"] == ids[name]
        inputs = destination["config"].get("copy_inputs") or {}
        assert {inputs.get("authorization"), inputs.get("bucket_credentials")} <= {
            None,
            ids["lake"],
        }
    again = run(empty, folder, "plan", "-e", environment)
    assert "No changes." in again.out


def create(service: RunningEmulator, project: int, kind: str, **config: Any) -> int:
    path = f"/api/projects/{project}/integrations/"
    answer = service.call("POST", path, {"kind": kind, "config": config}, key=KEY)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def test_an_update_shows_names_and_ids(stored: RunningEmulator, tmp_path: Path) -> None:
    new = create(stored, 1, "aws-s3", name="new", aws_account_id="210987654321")
    text = resources("aws", "redshift_copy", aws="new")
    text = text.replace('{"name": "lake"}', '{"name": "new"}')
    folder = workspace(tmp_path, text)
    shown = run(stored, folder, "plan", "-e", "staging").out
    label = f"new ({new}, AWS account 210987654321)"
    assert f"! integration {label}    batch_export.aws" in shown
    assert f"! authorization {label}  batch_export.redshift_copy" in shown
    before = "        - lake (100, AWS account 123456789012)\n"
    for path in ("integration", "config.copy_inputs.authorization"):
        assert f"      destination.{path}\n{before}        + {label}\n" in shown
    change = json.loads(run(stored, folder, "plan", "-e", "staging", "--format", "json").out)
    assert change["changes"][0]["body"]["destination"]["integration"] == new
    assert change["changes"][0]["integrations"][str(new)] == label


def test_a_create_shows_names_and_ids(empty: RunningEmulator, tmp_path: Path) -> None:
    folder = workspace(tmp_path, resources("snowflake"))
    shown = run(empty, folder, "plan", "-e", "production").out
    assert "integration flakes (202, Snowflake account acme)" in shown


def test_live_states_are_compared_by_name(stored: RunningEmulator, tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    words = ("staging", "production", "--live")
    assert "10 equal" in run(stored, folder, "compare", *words).out
    new = create(stored, 2, "aws-s3", name="new")
    export = bodies(stored, 2)["aws"]
    destination = {**export["destination"], "integration": new}
    path = f"/api/projects/2/batch_exports/{export['id']}/"
    assert stored.call("PATCH", path, {"destination": destination}, key=KEY).status_code == 200
    ran = run(stored, folder, "compare", *words)
    assert "destination.integration  lake in staging, new in production" in ran.out, ran.out


def test_ids_are_not_read_as_names(stored: RunningEmulator, tmp_path: Path) -> None:
    """Files without names need no list of integrations."""
    folder = workspace(tmp_path, resources("aws", "snowflake", aws=100, snowflake="102"))
    ran = run(stored, folder, "plan", "-e", "staging")
    assert "No changes." in ran.out
    named = workspace(tmp_path / "named", resources("aws", "snowflake"))
    calls = [
        text.err.splitlines()[-1] for text in (ran, run(stored, named, "plan", "-e", "staging"))
    ]
    assert [int(line.split()[0]) for line in calls] == [3, 4]


@pytest.mark.parametrize(("environment", "first"), [("staging", 100), ("production", 200)])
def test_import_writes_names_for_several_environments(
    stored: RunningEmulator, tmp_path: Path, environment: str, first: int
) -> None:
    folder = write(tmp_path, {"reconciler.yaml": WORKSPACE})
    project = str(first // 100)
    ran = run(stored, folder, "import", "-e", environment, "--project", project)
    assert ran.code == 0, ran.out + ran.err
    text = "".join(path.read_text() for path in folder.rglob("projects/*.yaml"))
    assert text.count("integration: lake\n") == 1
    assert "authorization:\n            name: lake\n" in text
    assert "No changes." in run(stored, folder, "plan", "-e", environment).out


def test_import_writes_ids_with_names_as_comments(
    stored: RunningEmulator, tmp_path: Path
) -> None:
    folder = write(tmp_path, {"reconciler.yaml": "version: 1\n"})
    ran = run(stored, folder, "import", "--project", "1")
    assert ran.code == 0, ran.out + ran.err
    text = "".join(path.read_text() for path in folder.rglob("projects/*.yaml"))
    assert "integration: 100  # lake (AWS account 123456789012)\n" in text
    assert "authorization: 100  # lake (AWS account 123456789012)\n" in text
    assert "No changes." in run(stored, folder, "plan").out
