"""Lists and answers that can't be believed stop a plan: nothing is created a second time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartService
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator

COUNT = 130
DETAIL = "*/projects/1/"
EXPORTS = "*/batch_exports/"
NOOP = {"type": "NoOp", "config": {}}


def export(number: int) -> dict[str, Any]:
    return {"name": f"Export {number}", "interval": "hour", "destination": NOOP}


@pytest.fixture
def running(service_of: StartService) -> RunningEmulator:
    """Return a service with a project and 130 exports, which the workspace declares."""
    exports = [export(number) for number in range(COUNT)]
    web = {"id": 1, "name": "Web", "batch_exports": exports, "surveys_opt_in": True}
    organization = {"id": "org", "name": "O", "projects": [web]}
    return service_of({"organizations": [organization], "keys": [{"value": "phx_all"}]})


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write(tmp_path / "workspace", files({"name": "Web", "surveys_opt_in": True}))


def files(web: dict[str, Any], exports: int = COUNT) -> dict[str, str]:
    declared = {
        "projects": {"web": web},
        "batch_exports": {f"e{n}": {**export(n), "project": "web"} for n in range(exports)},
    }
    return {"reconciler.yaml": "version: 1\n", "all.yaml": json.dumps(declared)}


def run(command: str, running: RunningEmulator, workspace: Path, *more: str) -> Any:
    return reconciler(command, "-C", workspace, *more, environ=running.environ())


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "body", "text": "", "status": 200},
        {"fault": "body", "value": None, "status": 200},
        {"fault": "body", "value": [], "status": 200},
        {"fault": "body", "value": {}, "status": 200},
        {"fault": "other_id"},
        {"fault": "error", "status": 404},
    ],
    ids=str,
)
@pytest.mark.parametrize("command", [("plan",), ("apply", "--auto-approve")], ids=str)
def test_f1_an_odd_answer_for_a_project_does_not_duplicate_it_and_all_in_it(
    running: RunningEmulator, workspace: Path, fault: dict[str, Any], command: tuple[str, ...]
) -> None:
    running.admin("PUT", "faults", [{"match": {"path": DETAIL}, **fault}])
    ran = run(command[0], running, workspace, *command[1:])
    assert ran.code == 1
    assert "error: GET /api/organizations/org/projects/1/: " in ran.err
    assert running.writes() == []


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "page", "count": "omit"},
        {"fault": "page", "count": 0},
        {"fault": "page", "count": -1},
        {"fault": "page", "count": 100},
        {"fault": "page", "count": "3"},
        {"fault": "page", "count": 1e308},
        {"fault": "page", "count": 10_000_000},
        {"fault": "page", "drop": 1},
        {"fault": "page", "repeat": 1},
        {"fault": "stale", "change": "delete"},
        {"fault": "body", "merge": {"results": [export(1)]}},
    ],
    ids=str,
)
def test_f2_an_incomplete_list_creates_nothing(
    running: RunningEmulator, workspace: Path, fault: dict[str, Any]
) -> None:
    running.admin("PUT", "faults", [{"match": {"path": EXPORTS}, **fault}])
    ran = run("apply", running, workspace, "--auto-approve")
    assert ran.code == 1
    assert "error: GET /api/organizations/org/batch_exports/: " in ran.err
    assert "this is a bug" not in ran.err
    assert running.writes() == []


def test_f2_a_server_that_caps_pages_creates_nothing(
    running: RunningEmulator, workspace: Path
) -> None:
    running.admin("PUT", "faults", [{"match": {"path": EXPORTS}, "fault": "page", "cap": 50}])
    ran = run("apply", running, workspace, "--auto-approve")
    assert ran.code == 0
    assert running.writes() == []


def test_a_namesake_that_is_pending_deletion_does_not_count(
    service_of: StartService, tmp_path: Path
) -> None:
    projects = [{"id": 1, "name": "Web"}, {"id": 2, "name": "Web"}]
    seed = {
        "organizations": [{"id": "org", "name": "O", "projects": projects}],
        "keys": [{"value": "phx_all"}],
    }
    running = service_of(seed)
    workspace = write(tmp_path, files({"name": "Web"}, exports=1))
    ran = run("plan", running, workspace)
    assert ran.code == 5
    assert "2 live projects are named 'Web'" in ran.out
    pending = {"fault": "body", "merge": {"is_pending_deletion": True}}
    running.admin("PUT", "faults", [{"match": {"path": DETAIL}, **pending}])
    ran = run("plan", running, workspace)
    assert ran.code == 0
    assert "Plan: 1 to create, 0 to update, 0 to delete, 1 unchanged" in ran.out


def test_a_project_that_is_pending_deletion_gets_no_new_exports(
    running: RunningEmulator, tmp_path: Path
) -> None:
    pending = {"fault": "body", "merge": {"is_pending_deletion": True}}
    running.admin("PUT", "faults", [{"match": {"path": DETAIL}, **pending}])
    ran = run("plan", running, write(tmp_path, files({"name": "Web"}, exports=COUNT + 1)))
    assert f"Plan: {COUNT + 2:,} to create" in ran.out


def test_verbose_lists_every_request(running: RunningEmulator, workspace: Path) -> None:
    ran = run("plan", running, workspace, "--verbose")
    assert "GET /api/organizations/org/projects/ 200 " in ran.err
    assert "GET /api/organizations/org/projects/1/ 200 " in ran.err
    assert ran.err.count("GET /api/organizations/org/batch_exports/ 200 ") == 2
    assert ran.err.endswith("5 API calls\n")
    assert "GET" not in run("plan", running, workspace).err


@pytest.mark.parametrize("command", ["plan", "status"])
def test_x2_a_key_of_another_organization_is_named(
    service_of: StartService, workspace: Path, command: str
) -> None:
    organizations = [{"id": name, "name": name, "projects": []} for name in ("org", "other")]
    keys = [{"value": "phx_all", "organizations": ["other"]}]
    running = service_of({"organizations": organizations, "keys": keys})
    ran = run(command, running, workspace)
    assert ran.code == 1
    assert "API key does not have access to the requested organization" in ran.err
    assert "hint: use a key of this organization" in ran.err
