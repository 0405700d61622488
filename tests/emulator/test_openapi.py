"""The service against its own OpenAPI document: no status and no shape that it does not declare."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks
from schemathesis.config import SchemathesisConfig

from reconciler.emulator.clock import Clock
from reconciler.emulator.dialects import DIALECTS
from reconciler.emulator.openapi import document
from reconciler.emulator.openapi.catalogue import docs_of
from reconciler.emulator.resources.batch_exports import BatchExports
from reconciler.emulator.routes import Paths, paths_of_interface
from reconciler.emulator.store import Store
from reconciler.emulator.timeline import Timeline
from reconciler.emulator.world import World
from tests.conftest import LONG
from tests.support.emulator import RunningEmulator

CASES = 2_000 if LONG else 100
"""How many cases a dialect has at least. The short run checks each operation in one dialect."""
CONFIG = SchemathesisConfig.from_dict(
    {
        "generation": {"mode": "all" if LONG else "positive", "with-security-parameters": False},
        "phases": {"coverage": {"enabled": LONG}},
    }
)
CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
AUTHORIZED = {"Authorization": "Bearer phx_all"}


@cache
def served(dialect: str) -> Paths:
    world = World(Store(), Clock(), DIALECTS[dialect])
    timeline = Timeline(world)
    return paths_of_interface(world, BatchExports(world, timeline), timeline)


def document_of(dialect: str) -> dict[str, Any]:
    return document(served(dialect), DIALECTS[dialect], "")


def operations_of(content: dict[str, Any]) -> int:
    return sum(len(item) - 1 for item in content["paths"].values())


@pytest.fixture(scope="module")
def seeded(emulators: dict[str, RunningEmulator]) -> Callable[[str], dict[str, Any]]:
    """Return the ids of objects that exist, in a service as it was seeded."""
    known: dict[str, dict[str, Any]] = {}

    def ready(dialect: str) -> dict[str, Any]:
        running = emulators[dialect]
        if dialect not in known:
            known[dialect] = _planted(running, dialect)
        # A case may delete what the next one needs.
        running.admin("POST", "snapshots/seeded/restore")
        running.clear_requests()
        return known[dialect]

    return ready


def _planted(running: RunningEmulator, dialect: str) -> dict[str, Any]:
    running.reset()
    running.admin("POST", "clock", {"set": "2026-10-07T10:20:00Z"})
    exports = "/api/projects/1/batch_exports/"
    body = {"name": "E", "interval": "hour", "destination": {"type": "NoOp", "config": {}}}
    export = running.call("POST", exports, body, key="phx_all").raise_for_status().json()["id"]
    running.advance(hours=3)
    run = running.call("GET", f"{exports}{export}/runs/", key="phx_all").json()["results"][0]["id"]
    ids = {"organization": running.organization, "project": 1, "export": export, "run": run}
    if dialect != "interface":
        bounds = {"start_at": "2026-01-01T00:00:00Z", "end_at": "2026-01-02T00:00:00Z"}
        backfills = f"{exports}{export}/backfills/"
        running.call("POST", backfills, bounds, key="phx_all").raise_for_status()
        listed = running.call("GET", backfills, key="phx_all").json()["results"]
        ids["backfill"] = listed[0]["id"]
    running.admin("POST", "snapshots/seeded")
    return ids


def _aim(case: Any, ids: dict[str, Any]) -> None:
    """Name objects that exist in most of the path, so that more than a 404 is seen."""
    parameters = case.path_parameters or {}
    for name in parameters:
        if name != "id":
            parameters[name] = ids[name]
        elif "personal_api_keys" not in case.path:
            parameters[name] = ids["export" if "batch_exports" in case.path else "project"]
    case.path_parameters = parameters


def _sampled(paths: dict[str, Any], dialect: str) -> dict[str, Any]:
    """Return the operations that are checked in a dialect: in the short run, each in one of its."""
    return {
        path: {
            name: operation
            for name, operation in item.items()
            if LONG or name == "parameters" or _dialect_of(path, name) == dialect
        }
        for path, item in paths.items()
    }


def _dialect_of(path: str, method: str) -> str:
    """Return one of the dialects that have an operation, another one for the next path."""
    having = [name for name in DIALECTS if method.upper() in served(name).get(path, {})]
    return having[len(path + method) % len(having)]


def conforms(dialect: str) -> Callable[..., None]:
    """Return the test of one dialect."""
    content = document_of(dialect)
    examples = -(-CASES // operations_of(content))
    content["paths"] = _sampled(content["paths"], dialect)
    schema = schemathesis.openapi.from_dict(content, config=CONFIG)

    @schema.parametrize()
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    def test(case: Any, emulators: Any, seeded: Callable[[str], dict[str, Any]]) -> None:
        _aim(case, seeded(dialect))
        running = emulators[dialect]
        answer = case.call(base_url=running.base_url, headers=AUTHORIZED)
        case.validate_response(answer, checks=CHECKS)
        (request,) = running.requests()
        assert request["error"] is None, "a 500 that no rule of the server explains"
        assert dialect != "interface" or answer.status_code < 500

    return test


test_the_interface_conforms_to_its_document = conforms("interface")
test_2025_conforms_to_its_document = conforms("2025")
test_2026_conforms_to_its_document = conforms("2026")


@pytest.mark.parametrize("name", DIALECTS)
def test_every_operation_is_in_the_document(
    emulators: dict[str, RunningEmulator], name: str
) -> None:
    content = emulators[name].http.get("/_emulator/openapi.json").json()
    assert content["info"]["version"] == name
    listed = {
        (path, method.upper())
        for path, item in content["paths"].items()
        for method in item
        if method != "parameters"
    }
    assert listed == {
        (path, method) for path, operations in served(name).items() for method in operations
    }


@pytest.mark.parametrize("name", DIALECTS)
def test_nothing_is_described_that_is_not_served(name: str) -> None:
    handlers = {
        operation.handler.__qualname__
        for dialect in DIALECTS
        for operations in served(dialect).values()
        for operation in operations.values()
    }
    assert set(docs_of(DIALECTS[name])) == handlers


@pytest.mark.parametrize("name", DIALECTS)
def test_references_lead_to_shapes(name: str) -> None:
    content = document_of(name)
    shapes = content["components"]["schemas"]
    used = set()

    def visit(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                used.add(value["$ref"].removeprefix("#/components/schemas/"))
            for item in value.values():
                visit(item)
        elif isinstance(value, list):
            for item in value:
                visit(item)

    visit(content)
    assert used <= set(shapes)


@pytest.mark.parametrize("name", DIALECTS)
def test_every_answer_is_declared(name: str) -> None:
    paths = document_of(name)["paths"]
    exports = "/api/projects/{project}/batch_exports/"
    assert "put" in paths[f"{exports}{{id}}/"]
    assert (f"{exports}{{id}}/backfills/" in paths) is (name != "interface")
    created = paths[exports]["post"]["responses"]
    assert ("500" in created) is (name != "interface")
    shapes = document_of(name)["components"]["schemas"]
    assert shapes["BatchExport"]["properties"]["created_at"]["format"] == "date-time"
    assert ("slack_incoming_webhook" in shapes["Project"]["required"]) is (name != "2026")
