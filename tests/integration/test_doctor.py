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


SEEN = ORGANIZATION
NO_FILE = "configuration: no reconciler.yaml"
LEAST = ("scopes to plan: project:read", "scopes to apply: missing: project:write")
NOWHERE = {"RECONCILER_BASE_URL": "http://127.0.0.1:1"}
UNKNOWN_KEY = {"RECONCILER_API_KEY": "phx_unknown_0123456789"}
UNSEEN = {"RECONCILER_ORGANIZATION": "00000000-0000-0000-0000-000000000000"}
NO_URL = {"RECONCILER_BASE_URL": "eu.posthog.com"}


INVALID = {**WORKSPACE, "b.yaml": "projects: [1]\n"}
CASES: dict[str, tuple[str, dict[str, str], dict[str, str], int, tuple[str, ...]]] = {
    "no workspace": ("phx_all", {}, {}, 0, (NO_FILE, "scopes to apply: project:write, batch")),
    "no connection": ("", {}, {}, 1, ("connection: RECONCILER_API_KEY", "git: not in a", NO_FILE)),
    "no URL": ("phx_all", NO_URL, {}, 1, ("connection: use a URL such as https://eu.posthog.com",)),
    "nowhere": ("phx_all", NOWHERE, {}, 1, ("key: can't connect to http://127.0.0.1:1",)),
    "invalid files": ("phx_all", {}, INVALID, 1, ("configuration: run `reconciler v", 'key: "Ev')),
    "unknown key": ("phx_all", UNKNOWN_KEY, {}, 1, ("key: 401",)),
    "least scopes": ("phx_read", {}, WORKSPACE, 0, (*LEAST, "organizations: not shown to this")),
    "a scope": ("phx_exports", {}, WORKSPACE, 1, ("scopes to plan: missing: project:read",)),
    "a project": ("phx_one", {}, WORKSPACE, 0, ("key limits: limited to projects 2",)),
    "organizations": ("phx_org", {}, WORKSPACE, 1, (f"key limits: {OTHER}",)),
    "unseen": ("phx_all", UNSEEN, {}, 1, (f"organizations: set `organization` to one of {SEEN}",)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_checks_and_their_fixes(case: str, service: RunningEmulator, tmp_path: Path) -> None:
    key, environ, files, code, expected = CASES[case]
    write(tmp_path, files)
    ran, checks = checks_of(tmp_path, environ_of(service, key, **environ) if key else {})
    assert ran.code == code, ran.out
    for name, _, text in (line.partition(": ") for line in expected):
        assert text in f"{checks[name]['result']} {checks[name]['fix']}"
    assert UNKNOWN_KEY["RECONCILER_API_KEY"] not in ran.out + ran.err


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
