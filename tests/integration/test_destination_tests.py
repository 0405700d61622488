"""`doctor NAME`: the service tests destinations with the real credentials, and nothing is saved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator

SECRET = "hunter2-hunter2-hunter2"
FILES = {
    "reconciler.yaml": "version: 1\nsecrets: [PASSWORD]\n",
    "a.yaml": """\
projects:
  web: {id: 1, name: Default project}
  later: {name: Later}
batch_exports:
  flakes:
    name: Flakes
    project: web
    interval: hour
    destination:
      type: Snowflake
      integration: 7
      config: {database: d, warehouse: w, schema: s, table_name: t}
  rows:
    name: Rows
    project: web
    interval: hour
    destination:
      type: Postgres
      integration: 8
      config: {database: d, schema: s, table_name: t}
  soon:
    name: Soon
    project: later
    interval: hour
    destination:
      type: HTTP
      config:
        url: https://eu.i.posthog.com/batch/
        token: ${secret:env:PASSWORD}
""",
}
OLD = {
    "reconciler.yaml": FILES["reconciler.yaml"],
    "a.yaml": """\
projects: {web: {id: 1, name: Default project}}
batch_exports:
  flakes:
    name: Flakes
    project: web
    interval: hour
    destination:
      type: Snowflake
      config: {account: a, database: d, warehouse: w, schema: s, table_name: t,
        user: "${secret:env:PASSWORD}", password: "${secret:env:PASSWORD}"}
""",
}
KNOWN = {"name": "Known", "interval": "hour", "destination": {"type": "NoOp", "config": {}}}
EXPORTS = "/api/projects/1/batch_exports/"
ORGANIZATION = "4dc8564d-bd82-1065-2f40-97f7c50f67cf"
SEED = {
    "organizations": [
        {"id": ORGANIZATION, "name": "Acme", "projects": [{"id": 1, "name": "Default project"}]}
    ],
    "keys": [{"value": "phx_all_0123456789abcdef", "scopes": ["*", "INTERNAL"]}],
    "integrations": [
        {"id": 7, "project": 1, "kind": "snowflake"},
        {"id": 8, "project": 1, "kind": "postgresql"},
    ],
}


@pytest.fixture
def newest(service_of: StartService) -> RunningEmulator:
    return service_of(SEED, "--dialect", "2026")


def doctor(
    service: RunningEmulator, folder: Path, *words: str, command: str = "doctor", **environ: str
) -> Ran:
    return reconciler(
        *(command, *words, "-C", folder, "--trust-workspace"),
        environ={**service.environ(), "PASSWORD": SECRET, **environ},
    )


def results_of(ran: Ran, key: str) -> list[tuple[str, str]]:
    """Return the health and the result of the checks of a resource."""
    checks = json.loads(ran.out)["checks"]
    name = f"batch_export.{key}"
    return [(check["health"], check["result"]) for check in checks if check["name"] == name]


def test_the_steps_of_every_destination(newest: RunningEmulator, tmp_path: Path) -> None:
    write(tmp_path, FILES)
    before = newest.state()
    ran = doctor(newest, tmp_path, "*", "--auto-approve", "--format", "json")
    assert ran.code == 0, ran.out + ran.err
    assert results_of(ran, "flakes") == [
        ("fine", "Establish connection to Snowflake"),
        ("fine", "Verify Snowflake warehouse"),
        ("fine", "Verify Snowflake database"),
        ("fine", "Verify Snowflake schema"),
    ]
    only = "only the files, the policy and the secrets were checked"
    assert results_of(ran, "rows") == [
        ("warning", f"not tested: the service has no test for Postgres; {only}")
    ]
    assert results_of(ran, "soon") == [
        ("warning", f"not tested: its project does not exist yet; {only}")
    ]
    assert "may create and drop test tables" in ran.err
    assert newest.state() == before


def test_trap_15_65_a_failed_step_is_http_200(newest: RunningEmulator, tmp_path: Path) -> None:
    write(tmp_path, FILES)
    rule = {"step": "Verify Snowflake warehouse", "status": "Failed", "message": "No warehouse."}
    newest.admin("PUT", "test_steps", [rule])
    ran = doctor(newest, tmp_path, "flakes", "--auto-approve", "--format", "json")
    assert ran.code == 1
    # The steps after a failure are not run.
    assert results_of(ran, "flakes") == [
        ("fine", "Establish connection to Snowflake"),
        ("failed", "Verify Snowflake warehouse: No warehouse."),
    ]


def test_an_existing_export_is_tested_with_what_would_be_applied(
    newest: RunningEmulator, tmp_path: Path
) -> None:
    """Trap 15.65: a plan runs no test."""
    write(tmp_path, FILES)
    assert doctor(newest, tmp_path, command="plan").code == 0
    assert newest.writes() == []
    applied = doctor(newest, tmp_path, "-y", "--target", "flakes", command="apply")
    assert applied.code == 0, applied.out + applied.err
    newest.clear_requests()
    ran = doctor(newest, tmp_path, "flakes", "--auto-approve", "--format", "json")
    assert ran.code == 0, ran.out + ran.err
    assert len(results_of(ran, "flakes")) == 4
    assert [path for _, path in newest.writes()] == ["run_test_step"] * 4


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("flakes",), "pass --auto-approve"),
        (("missing", "--auto-approve"), "missing"),
        (("--auto-approve",), "name the exports to test"),
    ],
)
def test_without_approval_of_named_exports_nothing_is_sent(
    words: tuple[str, ...], hint: str, newest: RunningEmulator, tmp_path: Path
) -> None:
    write(tmp_path, FILES)
    ran = doctor(newest, tmp_path, *words)
    assert ran.code == 64
    assert hint in ran.err
    assert newest.writes() == []


def test_names_that_cannot_be_tested_are_a_failed_check(
    newest: RunningEmulator, tmp_path: Path
) -> None:
    """The other checks are shown."""
    ran = doctor(newest, tmp_path, "*")
    assert ran.code == 1
    assert "✗ destinations" in ran.out
    assert "✓ git" in ran.out or "▲ git" in ran.out


def test_messages_of_the_service_do_not_show_secrets(
    service_of: StartService, tmp_path: Path
) -> None:
    old = service_of(SEED, "--dialect", "2025")
    write(tmp_path, OLD)
    old.admin("PUT", "test_steps", [{"status": "Failed", "message": f"denied for {SECRET}"}])
    # The dialect is unknown in an organization without exports, so the test is tried.
    ran = doctor(old, tmp_path, "*", "--auto-approve")
    assert ran.code == 1, ran.out + ran.err
    assert "denied for" in ran.out
    assert SECRET not in ran.out + ran.err


@pytest.mark.parametrize("dialect", ["interface", "2025"])
def test_other_servers_get_the_checks_that_need_no_connection(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    service = service_of(None, "--dialect", dialect)
    service.call("POST", EXPORTS, KNOWN)
    write(tmp_path, OLD)
    ran = doctor(service, tmp_path, "*")
    assert ran.code == 0, ran.out + ran.err
    assert f"not tested: servers of dialect {dialect} do not offer tests to API keys" in ran.out
    ran = doctor(service, tmp_path, "*", PASSWORD="")
    assert ran.code == 1
    assert "secret ${secret:env:PASSWORD} is empty" in ran.out
    assert all(path != "run_test_step_new" for _, path in service.writes())


def test_fidelity_f3_a_missing_feature_is_a_problem_of_every_export(
    service_of: StartService, tmp_path: Path
) -> None:
    """A write that is refused has the same hint."""
    project = {"id": 1, "name": "Default project", "batch_exports": [KNOWN]}
    organization = {"id": ORGANIZATION, "name": "Acme", "features": [], "projects": [project]}
    service = service_of({**SEED, "organizations": [organization]}, "--dialect", "2025")
    write(tmp_path, OLD)
    ran = doctor(service, tmp_path, "*")
    assert ran.code == 1
    assert "the organization lacks the feature data_pipelines: add the addon" in ran.out
    applied = doctor(service, tmp_path, "-y", command="apply")
    assert applied.code == 3
    assert "add the addon in the billing settings" in applied.err + applied.out


def test_a_plan_that_the_policy_refuses_is_not_tested(
    newest: RunningEmulator, tmp_path: Path
) -> None:
    write(tmp_path, OLD)
    newest.call("POST", EXPORTS, KNOWN)
    newest.clear_requests()
    ran = doctor(newest, tmp_path, "*", "--auto-approve")
    assert ran.code == 1
    assert "✗ batch_export.flakes" in ran.out
    assert newest.writes() == []
