from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.emulator.facts import FACTS, TABLES, Api
from tests.support.emulator import RunningEmulator, start_emulator

SEED = {
    "organizations": [
        {
            "id": "4dc8564d-bd82-1065-2f40-97f7c50f67cf",
            "name": "Ours",
            "projects": [
                {"id": 1, "name": "Web", "timezone": "Europe/Berlin", "dashboards": [7]},
                {"id": 2, "name": "App"},
            ],
        },
        {
            "id": "0188461e-55a4-0000-1cb3-0b1d3b6c6ac0",
            "name": "Theirs",
            "features": ["data_pipelines"],
            "projects": [{"id": 9, "name": "Foreign"}],
        },
    ],
    "keys": [
        {"value": "phx_all", "member_of": ["4dc8564d-bd82-1065-2f40-97f7c50f67cf"]},
        {"value": "phx_read", "scopes": ["batch_export:read", "project:read"]},
        {"value": "phx_one", "projects": [1]},
        {"value": "phx_org", "organizations": ["0188461e-55a4-0000-1cb3-0b1d3b6c6ac0"]},
        {"value": "phx_member", "role": "member"},
        {"value": "phx_nowhere", "current_project": False},
        {"value": "phx_admin", "role": "admin", "user": "ada@example.com", "label": "Ada's key"},
        {"value": "phx_empty", "scopes": []},
        {"value": "phx_user", "scopes": ["user:read"]},
        {"value": "phx_organization", "scopes": ["organization:read"]},
        {"value": "phx_activity", "scopes": ["activity_log:read"]},
        {"value": "phx_early", "integration_kinds": ["github"]},
        {"value": "phx_internal", "scopes": ["*", "INTERNAL"]},
    ],
    "users": [
        {"id": 1, "first_name": "Demo", "email": "demo@example.com"},
        {"id": 2, "first_name": "Ada", "last_name": "L", "email": "ada@example.com"},
    ],
    "integrations": [
        {"id": 7, "project": 1, "kind": "aws-s3"},
        {"id": 8, "project": 2, "kind": "aws-s3"},
        {"id": 3, "project": 1, "kind": "postgresql"},
        {"id": 4, "project": 1, "kind": "google-cloud-service-account"},
        {"id": 5, "project": 1, "kind": "databricks"},
        {"id": 10, "project": 1, "kind": "s3-compatible"},
        {"id": 11, "project": 1, "kind": "snowflake"},
        {"id": 12, "project": 1, "kind": "azure-blob"},
        {"id": 13, "project": 1, "kind": "aws-redshift", "config": {"host": "h"}},
        {"id": 14, "project": 1, "kind": "aws-redshift"},
        {"id": 15, "project": 1, "kind": "aws-s3", "keyless": True},
    ],
    "flags": ["databricks-batch-exports", "hogql-batch-exports", "sessions-batch-exports"],
}


@pytest.fixture(scope="session")
def emulators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunningEmulator]]:
    """Yield the services by dialect; each starts when it is first used."""
    seed = tmp_path_factory.mktemp("seed") / "seed.json"
    seed.write_text(json.dumps(SEED))
    with ExitStack() as stack:

        class Started(dict[str, RunningEmulator]):
            def __missing__(self, dialect: str) -> RunningEmulator:
                self[dialect] = stack.enter_context(
                    start_emulator(seed=seed, extra=("--dialect", dialect))
                )
                return self[dialect]

        yield Started()


@pytest.fixture
def api(emulators: dict[str, RunningEmulator], dialect: str) -> Api:
    running = emulators[dialect]
    running.reset()
    # A fixed Wednesday, not at a full hour: the number of due runs must not depend on the time.
    running.admin("POST", "clock", {"set": "2026-10-07T10:20:00Z"})
    return Api(running, dialect)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the test of a fact in the dialects that the fact concerns."""
    if "row" in metafunc.fixturenames:
        cases = [
            pytest.param(dialect, row, id=f"{dialect}-{text}-{number}")
            for dialects, facts in TABLES[metafunc.function.__name__].items()
            for text, rows in facts.items()
            for number, row in enumerate(rows if isinstance(rows, list) else [rows])
            for dialect in dialects
        ]
        metafunc.parametrize(("dialect", "row"), cases)
    elif "dialect" in metafunc.fixturenames:
        fact = FACTS.get(metafunc.function.__name__)
        metafunc.parametrize("dialect", fact.dialects if fact else ["interface"])
