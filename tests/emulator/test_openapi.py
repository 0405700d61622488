"""The service against its own OpenAPI document: no 5xx, no answer that the document forbids."""

from __future__ import annotations

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks
from schemathesis.config import SchemathesisConfig

from reconciler.emulator.dialects import DIALECTS
from reconciler.emulator.openapi import document
from tests.support.emulator import RunningEmulator

# The phase that walks every boundary takes a minute: SCHEMATHESIS_WHOLE=1 adds it.
WHOLE = os.environ.get("SCHEMATHESIS_WHOLE") == "1"
CONFIG = SchemathesisConfig.from_dict(
    {
        "generation": {"mode": "positive", "with-security-parameters": False},
        "phases": {"coverage": {"enabled": WHOLE}},
    }
)
SCHEMA = schemathesis.openapi.from_dict(document(DIALECTS["interface"], ""), config=CONFIG)


@pytest.fixture(scope="module")
def seeded(emulators: dict[str, RunningEmulator]) -> RunningEmulator:
    running = emulators["interface"]
    running.reset()
    body = {"name": "E", "interval": "hour", "destination": {"type": "NoOp", "config": {}}}
    running.call("POST", "/api/projects/1/batch_exports/", body, key="phx_all").raise_for_status()
    running.advance(hours=3)
    running.admin("POST", "snapshots/seeded")
    return running


@SCHEMA.parametrize()
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_the_document_says(case, seeded: RunningEmulator) -> None:
    # An example may delete what the next one needs.
    seeded.admin("POST", "snapshots/seeded/restore")
    exports = seeded.call("GET", "/api/projects/1/batch_exports/", key="phx_all").json()["results"]
    place = {"organization_id": seeded.organization, "project_id": 1}
    case.path_parameters = {**(case.path_parameters or {}), **place}
    if "batch_exports" in case.path and "id" in case.path_parameters and exports:
        case.path_parameters["id"] = exports[0]["id"]
    answer = case.call(base_url=seeded.base_url, headers={"Authorization": "Bearer phx_all"})
    case.validate_response(
        answer,
        checks=[
            checks.not_a_server_error,
            checks.status_code_conformance,
            checks.content_type_conformance,
            checks.response_schema_conformance,
        ],
    )


@pytest.mark.parametrize("name", ["interface", "2025", "2026"])
def test_every_dialect_has_a_document(emulators: dict[str, RunningEmulator], name: str) -> None:
    found = emulators[name].http.get("/_emulator/openapi.json").json()
    assert found["info"]["version"] == name
    with_backfills = document(DIALECTS[name], emulators[name].base_url)["paths"]
    assert found["paths"] == with_backfills
    path = "/api/projects/{project_id}/batch_exports/{id}/backfills/"
    assert (path in found["paths"]) is (name != "interface")
