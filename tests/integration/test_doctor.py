"""`doctor` against the embedded service: each check, its fix, and what it never prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reconciler.model.schemas import known_schema
from tests.conftest import StartService
from tests.security.test_wire import encrypted_service
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git

ORGANIZATION = "4dc8564d-bd82-1065-2f40-97f7c50f67cf"
OTHER = "0188461e-55a4-0000-1cb3-0b1d3b6c6ac0"
SCOPES = ["batch_export:read", "project:read"]
SEED = {
    "organizations": [
        {"id": ORGANIZATION, "name": "Acme", "projects": [{"id": 1, "name": "Web"}]},
        {"id": OTHER, "name": "Other", "projects": [{"id": 2, "name": "App"}]},
    ],
    "keys": [
        {"value": "phx_all_0123456789abcdef", "scopes": ["*"], "label": "Everything"},
        {"value": "phx_read_0123456789abcde", "scopes": SCOPES, "label": "CI"},
        {"value": "phx_exports_0123456789ab", "scopes": ["batch_export:write"]},
        {"value": "phx_one_0123456789abcdef", "scopes": ["*"], "projects": [2]},
        {"value": "phx_web_0123456789abcdef", "scopes": ["*"], "projects": [1]},
        {"value": "phx_org_0123456789abcdef", "scopes": ["*"], "organizations": [OTHER]},
    ],
}
WORKSPACE = {
    "reconciler.yaml": "version: 1\n",
    "a.yaml": "projects:\n  web:\n    name: Web\n    id: 1\n",
}


@pytest.fixture
def service(service_of: StartService) -> RunningEmulator:
    return service_of(SEED, "--dialect", "2026")


def environ_of(service: RunningEmulator, key: str = "phx_all", **more: str) -> dict[str, str]:
    value = next(item["value"] for item in SEED["keys"] if item["value"].startswith(key))
    return {
        **service.environ(),
        "RECONCILER_ORGANIZATION": ORGANIZATION,
        "RECONCILER_API_KEY": value,
        **more,
    }


def checks_of(folder: Path, environ: Mapping[str, str]) -> tuple[Ran, dict[str, dict[str, Any]]]:
    """Return how the command ended, and its checks by name."""
    ran = reconciler("doctor", "-C", folder, "--format", "json", environ=environ)
    report = json.loads(ran.out)
    Draft202012Validator(known_schema("doctor")).validate(report)
    assert report["failed"] is (ran.code == 1)
    return ran, {check["name"]: check for check in report["checks"]}


def test_all_is_well(service: RunningEmulator, tmp_path: Path) -> None:
    write(tmp_path, WORKSPACE)
    Git.init(tmp_path).commit()
    environ = environ_of(service)
    ran = reconciler("doctor", "-C", tmp_path, "--trust-workspace", environ=environ)
    assert ran.code == 0, ran.out
    lines = ran.out.splitlines()
    assert [line for line in lines if line and not line.startswith("✓")] == [
        "0 checks failed, 0 warnings."
    ]
    assert environ["RECONCILER_API_KEY"] not in ran.out + ran.err
    assert service.writes() == []


def test_it_works_without_a_workspace(service: RunningEmulator, tmp_path: Path) -> None:
    ran, checks = checks_of(tmp_path, environ_of(service))
    assert ran.code == 0
    assert checks["configuration"]["result"].startswith("no reconciler.yaml")
    assert checks["scopes to apply"]["result"] == "project:write, batch_export:write"


def test_without_a_connection_the_local_checks_remain(tmp_path: Path) -> None:
    ran, checks = checks_of(tmp_path, {})
    assert ran.code == 1
    assert checks["connection"]["health"] == "failed"
    assert "or `api_key`" in checks["connection"]["result"]
    assert "RECONCILER_API_KEY" in checks["connection"]["fix"]
    assert {"version", "git"} <= checks.keys()


def test_an_invalid_address_of_a_variable_is_explained(tmp_path: Path) -> None:
    environ = {
        "RECONCILER_BASE_URL": "eu.posthog.com",
        "RECONCILER_ORGANIZATION": "o",
        "RECONCILER_API_KEY": "phx_0123456789abcdef",
    }
    _, checks = checks_of(tmp_path, environ)
    assert checks["connection"]["fix"] == "use a URL such as https://eu.posthog.com"


def test_an_address_without_a_service(tmp_path: Path, service: RunningEmulator) -> None:
    environ = environ_of(service, RECONCILER_BASE_URL="http://127.0.0.1:1")
    ran, checks = checks_of(tmp_path, environ)
    assert ran.code == 1
    assert "can't connect to http://127.0.0.1:1" in checks["key"]["result"]


def test_errors_in_the_files_do_not_hide_the_service(
    service: RunningEmulator, tmp_path: Path
) -> None:
    write(tmp_path, {**WORKSPACE, "b.yaml": "projects: [1]\n"})
    ran, checks = checks_of(tmp_path, environ_of(service))
    assert ran.code == 1
    assert checks["configuration"]["fix"] == "run `reconciler validate`"
    assert checks["key"]["health"] == "fine"


def test_an_unknown_key(service: RunningEmulator, tmp_path: Path) -> None:
    environ = environ_of(service, RECONCILER_API_KEY="phx_unknown_0123456789")
    ran, checks = checks_of(tmp_path, environ)
    assert checks["key"]["health"] == "failed"
    assert "401" in checks["key"]["result"]
    assert "phx_unknown" not in ran.out + ran.err


def test_least_scopes_follow_from_the_workspace(service: RunningEmulator, tmp_path: Path) -> None:
    write(tmp_path, WORKSPACE)
    _, checks = checks_of(tmp_path, environ_of(service, "phx_read"))
    assert checks["scopes to plan"]["health"] == "fine"
    assert checks["scopes to apply"]["result"] == "missing: project:write"
    assert checks["organizations"]["result"].startswith("not shown to this key")
    ran, checks = checks_of(tmp_path, environ_of(service, "phx_exports"))
    assert ran.code == 1
    assert checks["scopes to plan"]["result"] == "missing: project:read"


def test_limits_of_keys(service: RunningEmulator, tmp_path: Path) -> None:
    _, checks = checks_of(tmp_path, environ_of(service, "phx_one"))
    assert checks["key limits"]["result"].startswith("limited to projects 2")
    _, checks = checks_of(tmp_path, environ_of(service, "phx_org"))
    assert checks["key limits"]["health"] == "failed"
    assert OTHER in checks["key limits"]["result"]


@pytest.mark.parametrize("dialect", ["2025", "2026"])
def test_m8_a_key_that_is_limited_to_the_projects_of_the_files_is_enough(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    """M8: `doctor` failed for a key with which every other command works."""
    environ = environ_of(service_of(SEED, "--dialect", dialect), "phx_web")
    write(tmp_path, WORKSPACE)
    ran, checks = checks_of(tmp_path, environ)
    failed = {name: check for name, check in checks.items() if check["health"] == "failed"}
    assert (ran.code, failed) == (0, {}), ran.out
    assert checks["key limits"]["health"] == "warning"
    assert "set `id` for each project" in checks["key limits"]["fix"]
    commands = ("plan", "status", "gaps", "import --project 1 --dry-run")
    for words in map(str.split, commands):
        ran = reconciler(*words, "-C", tmp_path, "--trust-workspace", environ=environ)
        assert ran.code in (0, 2), ran.err


@pytest.mark.parametrize(("dialect", "is_known"), [("interface", False), ("2025", True)])
def test_trap_15_68_limits_come_from_the_key_or_are_unknown(
    dialect: str, *, is_known: bool, service_of: StartService, tmp_path: Path
) -> None:
    service = service_of(SEED, "--dialect", dialect)
    _, checks = checks_of(tmp_path, environ_of(service, "phx_one"))
    if is_known:
        assert checks["key limits"]["result"].startswith("limited to projects 2")
    else:
        assert checks["key"]["health"] == "warning"
        assert "scopes and limits are unknown" in checks["key"]["result"]
        assert "key limits" not in checks


def test_an_organization_that_the_key_does_not_see(
    service: RunningEmulator, tmp_path: Path
) -> None:
    environ = environ_of(service, RECONCILER_ORGANIZATION="00000000-0000-0000-0000-000000000000")
    ran, checks = checks_of(tmp_path, environ)
    assert ran.code == 1
    assert ORGANIZATION in checks["organizations"]["fix"]


def test_git_and_trust(service: RunningEmulator, tmp_path: Path) -> None:
    origin = Git.init(tmp_path / "origin")
    write(origin.folder, WORKSPACE)
    origin.commit()
    origin.commit("second")
    clone = Git(tmp_path)
    clone.run("clone", "--quiet", "--depth", "1", f"file://{origin.folder}", "clone")
    environ = environ_of(service, CI="1")
    _, checks = checks_of(tmp_path / "clone", environ)
    assert checks["git"]["result"].startswith("shallow clone")
    assert "fetch-depth: 0" in checks["git"]["fix"]
    assert checks["trusted branch"]["result"].startswith("refs/remotes/origin/main at ")
    _, checks = checks_of(origin.folder, environ)
    assert checks["trusted branch"]["health"] == "warning"
    assert "inventory" in checks


def test_a_private_authority_is_reported_with_its_fix(tmp_path: Path) -> None:
    environ = {"RECONCILER_ORGANIZATION": "o", "RECONCILER_API_KEY": "phx_0123456789abcdef"}
    with encrypted_service() as (port, _):
        environ["RECONCILER_BASE_URL"] = f"https://127.0.0.1:{port}"
        ran, checks = checks_of(tmp_path, environ)
    assert ran.code == 1
    assert "is not trusted: self" in checks["key"]["result"]
    assert "set SSL_CERT_FILE" in checks["key"]["fix"]
