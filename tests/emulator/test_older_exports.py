"""Exports that are older than the rules of a create: a seed plants them (service.md, 1)."""

from __future__ import annotations

import pytest

from tests.conftest import StartService
from tests.emulator.facts import Api, fact, invalid, refused
from tests.emulator.operations import of

QUERY = "select event from events"
SQL = {"database": "d", "host": "h", "user": "u", "password": "p"}
BUCKET = {
    "bucket_name": "b",
    "region": "r",
    "prefix": "p",
    "endpoint_url": "https://s3.example.com",
}
EXPORTS = [
    {"name": "Query", "hogql_query": QUERY, "destination": {"type": "NoOp", "config": {}}},
    {"name": "Redshift", "destination": {"type": "Redshift", "config": SQL}},
    {"name": "Postgres", "destination": {"type": "Postgres", "config": SQL}},
    {
        "name": "Migrated",
        "destination": {"type": "S3Compatible", "integration": 10, "config": BUCKET},
    },
]
SEED = {
    "organizations": [
        {
            "name": "Ours",
            "projects": [
                {"id": 1, "name": "Web", "batch_exports": EXPORTS},
                {"id": 2, "name": "App"},
            ],
        }
    ],
    "keys": [{"value": "phx_all"}],
    "integrations": [
        {"id": 7, "project": 1, "kind": "aws-s3"},
        {"id": 10, "project": 1, "kind": "s3-compatible"},
    ],
    "flags": [],
}


@pytest.fixture
def older(service_of: StartService) -> Api:
    return Api(service_of(SEED, "--dialect", "2026"), "2026")


@fact("1.1", "without the paid feature data_pipelines every write of an export is refused", "2025")
def test_without_the_addon(service_of: StartService, dialect: str) -> None:
    """Reads, pauses and deletions work; a refusal of a field comes first."""
    project = {"id": 1, "name": "Web", "batch_exports": [EXPORTS[0]]}
    organization = {"name": "Ours", "features": [], "projects": [project]}
    running = service_of({**SEED, "organizations": [organization]}, "--dialect", dialect)
    api, export = Api(running, dialect), running.exports()["Query"]
    for answer in (
        api.post(),
        api.patch(export, name="x"),
        api.call("PUT", of(api, export), api.body()),
    ):
        detail = invalid(answer)
        assert detail == "The Data Pipelines addon is required for batch exports."
    refused(api.patch(export, name=""), 400, "blank", "name")
    assert api.call("POST", of(api, export, "pause/"), {}).status_code == 200
    assert api.call("DELETE", of(api, export)).status_code == 204
    organization = api.call("GET", "/api/organizations/@current/").json()
    assert organization["available_product_features"] == []


def test_queries_where_one_exists(older: Api) -> None:
    """A project with a query on events takes more, until its last one is cleared; others do not."""
    export = older.emulator.exports()["Query"]
    assert export["hogql_query"] == QUERY
    more = older.create(hogql_query=QUERY)
    assert more["hogql_query"] == QUERY
    assert older.patch(export, hogql_query="select a from events").status_code == 200
    for bad in (
        *("SELEC nonsense", "select a from persons", "with a as (select 1) select * from a"),
        *("select (select 1) from events", "select a from events union all select b from events"),
    ):
        invalid(older.patch(export, hogql_query=bad), "hogql_query")
    body = {**older.body(), "hogql_query": QUERY, "destination": {"type": "NoOp", "config": {}}}
    other = older.call("POST", "/api/projects/2/batch_exports/", body)
    invalid(other, "hogql_query")
    for cleared in (more, export):
        assert older.patch(cleared, hogql_query=None).json()["hogql_query"] is None
    invalid(older.patch(export, hogql_query=QUERY), "hogql_query")


@pytest.mark.parametrize("name", ["Redshift", "Postgres"])
def test_credentials_in_an_old_config(older: Api, name: str) -> None:
    """An export without an integration stays as it is until one is named."""
    export = older.emulator.exports()[name]
    assert set(export["destination"]["config"]) == {"database", "host"}
    assert export["destination"]["integration"] is None
    changed = older.patch(export, destination={"type": name, "config": {"schema": "s"}})
    assert changed.json()["destination"]["config"]["schema"] == "s"
    assert older.emulator.exports()[name]["secrets"] == export["secrets"]


@fact("1.1", "the model hogql needs a feature flag", "2026")
def test_the_flag_of_the_hogql_model(older: Api, dialect: str) -> None:
    body = older.body(model="hogql", hogql_query=QUERY)
    refused(older.call("POST", older.project, body), 403, "permission_denied")


@fact("1.5", "a key of an older server is returned, but refused when sent", "2026", rules=(12,))
def test_a_key_that_a_migrated_export_kept(older: Api, dialect: str) -> None:
    export = older.emulator.exports()["Migrated"]
    destination = older.call("GET", f"{older.project}{export['id']}/").json()["destination"]
    assert destination["config"]["endpoint_url"] == BUCKET["endpoint_url"]
    answer = older.patch(export, destination=destination)
    detail = invalid(answer, "destination__non_field_errors")
    assert detail == "Configuration has unknown field/s: 'endpoint_url'"
    del destination["config"]["endpoint_url"]
    assert older.patch(export, destination=destination).status_code == 200
