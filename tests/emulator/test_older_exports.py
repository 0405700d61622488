"""Exports that are older than the rules of a create: a seed plants them (service.md, 1).

tests/integration/test_real_servers.py has those with credentials in their config.
"""

from __future__ import annotations

import pytest

from tests.conftest import StartService
from tests.emulator.facts import Api, fact, invalid, refused
from tests.emulator.operations import of

QUERY = "select event from events"
EXPORTS = [
    {"name": "Query", "hogql_query": QUERY, "destination": {"type": "NoOp", "config": {}}},
]
SEED = {
    "organizations": [
        {
            "name": "Ours",
            "projects": [
                {"id": 1, "name": "Web", "batch_exports": EXPORTS},
            ],
        }
    ],
    "keys": [{"value": "phx_all"}],
    "integrations": [{"id": 7, "project": 1, "kind": "aws-s3"}],
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
    for answer in (api.post(), api.patch(export, name="x")):
        detail = invalid(answer)
        assert detail == "The Data Pipelines addon is required for batch exports."
    refused(api.patch(export, name=""), 400, "blank", "name")
    assert api.call("POST", of(api, export, "pause/"), {}).status_code == 200
    assert api.call("DELETE", of(api, export)).status_code == 204
    organization = api.call("GET", "/api/organizations/@current/").json()
    assert organization["available_product_features"] == []


def test_queries_where_one_exists(older: Api) -> None:
    """A project with a query on events takes more, until its last one is cleared."""
    export = older.emulator.exports()["Query"]
    assert export["hogql_query"] == QUERY
    more = older.create(hogql_query=QUERY)
    assert more["hogql_query"] == QUERY
    assert older.patch(export, hogql_query="select a from events").status_code == 200
    invalid(older.patch(export, hogql_query="select a from persons"), "hogql_query")
    for cleared in (more, export):
        assert older.patch(cleared, hogql_query=None).json()["hogql_query"] is None
    invalid(older.patch(export, hogql_query=QUERY), "hogql_query")


@fact("1.1", "the model hogql needs a feature flag", "2026")
def test_the_flag_of_the_hogql_model(older: Api, dialect: str) -> None:
    body = older.body(model="hogql", hogql_query=QUERY)
    refused(older.call("POST", older.project, body), 403, "permission_denied")
