"""`doctor` against the embedded service: each check, its fix, and what it never prints.

With names, the service tests destinations with the real credentials, and nothing is saved.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import DIALECTS, RunningEmulator
from tests.support.git import Git
from tests.support.simulated import no_op_export

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


def environ_of(service: RunningEmulator, key: str = "phx_all", **more: str) -> dict[str, str]:
    value = next(item["value"] for item in SEED["keys"] if item["value"].startswith(key))
    return {**service.environ(), "RECONCILER_API_KEY": value, **more}


def checks_of(folder: Path, environ: Mapping[str, str]) -> tuple[Ran, dict[str, dict[str, Any]]]:
    """Return how the command ended, and its checks by name."""
    ran = reconciler("doctor", "-C", folder, "--format", "json", environ=environ)
    report = json.loads(ran.out)
    assert report["failed"] is (ran.code == 1)
    return ran, {check["name"]: check for check in report["checks"]}


SEEN = ORGANIZATION
NO_FILE = "configuration: no reconciler.yaml"
LEAST = ("scopes to plan: project:read", "scopes to apply: missing: project:write")
NOWHERE = {"RECONCILER_BASE_URL": "http://127.0.0.1:1"}
UNKNOWN_KEY = {"RECONCILER_API_KEY": "phx_unknown_0123456789"}
UNSEEN = {"RECONCILER_ORGANIZATION": "00000000-0000-0000-0000-000000000000"}
NO_URL = {"RECONCILER_BASE_URL": "eu.posthog.com"}
NO_ID = {**WORKSPACE, "a.yaml": "projects: {web: {name: Web}}\n"}
INVALID = {**WORKSPACE, "b.yaml": "projects: [1]\n"}
CASES: dict[str, tuple[str, dict[str, str], dict[str, str], int, tuple[str, ...]]] = {
    "no workspace": ("phx_all", {}, {}, 0, (NO_FILE, "scopes to apply: project:write, batch")),
    "no connection": ("", {}, {}, 1, ("connection: RECONCILER_API_KEY", "git: not in a", NO_FILE)),
    "no URL": ("phx_all", NO_URL, {}, 1, ("connection: use a URL such as https://eu.posthog.com",)),
    "nowhere": (
        "phx_all",
        NOWHERE,
        {},
        1,
        ("key: can't connect to http://127.0.0.1:1", "key: refused check `base_url`"),
    ),
    "invalid files": ("phx_all", {}, INVALID, 1, ("configuration: run `reconciler v", 'key: "Ev')),
    "invalid files and no variables": (
        *("", {}, INVALID, 1),
        ("configuration: failed 1 error", "connection: warning not checked"),
    ),
    "unknown key": ("phx_all", UNKNOWN_KEY, {}, 1, ("key: 401",)),
    "least scopes": ("phx_read", {}, WORKSPACE, 0, (*LEAST, "organizations: not shown to this")),
    "a scope": ("phx_exports", {}, WORKSPACE, 1, ("scopes to plan: missing: project:read",)),
    "trap_15_68 of 2025": ("phx_one", {}, {}, 0, ("key limits: limited to projects 2",)),
    "trap_15_68 of interface": (
        *("phx_one", {}, {}, 0),
        ("key: warning ", "key: scopes and limits are unknown"),
    ),
    **{
        # M8: `doctor` failed. The matrix runs every other command with such a key.
        f"m8 a key of one project of {dialect}": (
            *("phx_web", {}, WORKSPACE, 0),
            ("key limits: warning limited to projects 1", "key limits: set `id` for each project"),
        )
        for dialect in ("2025", "2026")
    },
    **{
        f"a limited key and a project without id of {dialect}": (
            *("phx_web", {}, NO_ID, 1),
            ("projects: failed the API key may not list", "projects: or set `id` for each project"),
        )
        for dialect in DIALECTS
    },
    "organizations": ("phx_org", {}, WORKSPACE, 1, (f"key limits: {OTHER}",)),
    "unseen": ("phx_all", UNSEEN, {}, 1, (f"organizations: set `organization` to one of {SEEN}",)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_checks_and_their_fixes(case: str, service_of: StartService, tmp_path: Path) -> None:
    key, environ, content, code, expected = CASES[case]
    dialect = case.rpartition(" of ")[2] if " of " in case else "2026"
    service = service_of(SEED, "--dialect", dialect)
    write(tmp_path, content)
    ran, checks = checks_of(tmp_path, environ_of(service, key, **environ) if key else {})
    assert ran.code == code, ran.out
    for name, _, text in (line.partition(": ") for line in expected):
        assert text in f"{checks[name]['health']} {checks[name]['result']} {checks[name]['fix']}"
    assert "interface" not in case or "key limits" not in checks
    assert UNKNOWN_KEY["RECONCILER_API_KEY"] not in ran.out + ran.err


def test_all_is_well(service_of: StartService, tmp_path: Path) -> None:
    Git.init(write(tmp_path, WORKSPACE)).commit()
    environ = environ_of(service_of(SEED, "--dialect", "2026"))
    ran = reconciler("doctor", "-C", tmp_path, "--trust-workspace", environ=environ)
    others = [line for line in ran.out.splitlines() if line and not line.startswith("✓")]
    assert (ran.code, others) == (0, ["0 checks failed, 0 warnings."]), ran.out


def test_git_and_trust(service_of: StartService, tmp_path: Path) -> None:
    origin = Git.init(tmp_path / "origin")
    write(origin.folder, WORKSPACE)
    origin.commit()
    origin.commit("second")
    clone = Git(tmp_path)
    clone.run("clone", "--quiet", "--depth", "1", f"file://{origin.folder}", "clone")
    environ = environ_of(service_of(SEED, "--dialect", "2026"), CI="1")
    _, checks = checks_of(tmp_path / "clone", environ)
    assert checks["git"]["result"].startswith("shallow clone")
    assert "fetch-depth: 0" in checks["git"]["fix"]
    assert checks["trusted branch"]["result"].startswith("refs/remotes/origin/main at ")
    _, checks = checks_of(origin.folder, environ)
    assert checks["trusted branch"]["health"] == "warning"
    assert "refs/reconciler/" in checks["inventory"]["result"]
    _, checks = checks_of(origin.folder, {})
    assert checks["inventory"]["result"] == "not known without a connection"


# Tests of destinations


SECRET = "hunter2-hunter2-hunter2"
PASSWORD = "${secret:env:PASSWORD}"
TABLE = {"database": "d", "schema": "s", "table_name": "t"}
FLAKES = {**TABLE, "warehouse": "w"}
CAPTURE = {"url": "https://eu.i.posthog.com/batch/", "token": PASSWORD}


def files(**exports: tuple[str, dict[str, Any]]) -> dict[str, str]:
    """Return a workspace of exports, each with the key of its project and its destination."""
    content = {
        "projects": {"web": {"id": 1, "name": "Default project"}, "later": {"name": "Later"}},
        "batch_exports": {
            key: {**no_op_export(key.title()), "project": project, "destination": destination}
            for key, (project, destination) in exports.items()
        },
    }
    settings = "version: 1\nsecrets: [PASSWORD]\n"
    return {"reconciler.yaml": settings, "a.yaml": json.dumps(content)}


TESTED = files(
    flakes=("web", {"type": "Snowflake", "integration": 7, "config": FLAKES}),
    rows=("web", {"type": "Postgres", "integration": 8, "config": TABLE}),
    soon=("later", {"type": "HTTP", "config": CAPTURE}),
)
KEYED = {**FLAKES, "account": "a", "user": PASSWORD, "password": PASSWORD}
OLD = files(flakes=("web", {"type": "Snowflake", "config": KEYED}))


def seed(*exports: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return an organization with exports, as the service starts with it."""
    project = {"id": 1, "name": "Default project", "batch_exports": exports}
    own = {"id": ORGANIZATION, "name": "Acme", "projects": [project]}
    return {
        "organizations": [{**own, **fields}],
        "keys": [{"value": "phx_all_0123456789abcdef", "scopes": ["*", "INTERNAL"]}],
        "integrations": [
            {"id": 7, "project": 1, "kind": "snowflake"},
            {"id": 8, "project": 1, "kind": "postgresql"},
        ],
    }


@dataclass
class Checked:
    """A service and a workspace."""

    service: RunningEmulator
    folder: Path

    def doctor(self, *words: str, command: str = "doctor", **environ: str) -> Ran:
        return reconciler(
            *(command, *words, "-C", self.folder, "--trust-workspace"),
            environ={**self.service.environ(), "PASSWORD": SECRET, **environ},
        )

    def results(self, *words: str, code: int = 0) -> dict[str, list[tuple[str, str]]]:
        """Test exports; return the health and the result of the checks by export."""
        ran = self.doctor(*words, "--auto-approve", "--format", "json")
        assert ran.code == code, ran.out + ran.err
        assert "may create and drop test tables" in ran.err
        found: dict[str, list[tuple[str, str]]] = {}
        for check in json.loads(ran.out)["checks"]:
            results = found.setdefault(check["name"].removeprefix("batch_export."), [])
            results.append((check["health"], check["result"]))
        return found


@pytest.fixture
def newest(service_of: StartService, tmp_path: Path) -> Checked:
    return Checked(service_of(seed(), "--dialect", "2026"), write(tmp_path, TESTED))


def test_the_steps_of_every_destination(newest: Checked) -> None:
    before = newest.service.state()
    results = newest.results("*")
    assert results["flakes"] == [
        ("fine", "Establish connection to Snowflake"),
        ("fine", "Verify Snowflake warehouse"),
        ("fine", "Verify Snowflake database"),
        ("fine", "Verify Snowflake schema"),
    ]
    only = "only the files, the policy and the secrets were checked"
    for name, reason in (
        ("rows", "the service has no test for Postgres"),
        ("soon", "its project does not exist yet"),
    ):
        assert results[name] == [("warning", f"not tested: {reason}; {only}")]
    assert newest.service.state() == before


def test_trap_15_65_a_failed_step_is_http_200(newest: Checked) -> None:
    """The steps after a failure are not run."""
    rule = {"step": "Verify Snowflake warehouse", "status": "Failed", "message": "No warehouse."}
    newest.service.admin("PUT", "test_steps", [rule])
    assert newest.results("flakes", code=1)["flakes"] == [
        ("fine", "Establish connection to Snowflake"),
        ("failed", "Verify Snowflake warehouse: No warehouse."),
    ]


def test_trap_15_65_an_existing_export_is_tested_with_what_would_be_applied(
    newest: Checked,
) -> None:
    """A plan runs no test."""
    assert newest.doctor(command="plan").code == 0
    assert newest.service.writes() == []
    applied = newest.doctor("-y", "--target", "flakes", command="apply")
    assert applied.code == 0, applied.out + applied.err
    newest.service.clear_requests()
    assert len(newest.results("flakes")["flakes"]) == 4
    assert [path for _, path in newest.service.writes()] == ["run_test_step"] * 4


LACKING = "the organization lacks the feature data_pipelines: add the addon"
DENIED = {"status": "Failed", "message": f"denied for {SECRET}"}
KNOWN = no_op_export("Known")
EMPTY = "secret ${secret:env:PASSWORD} is empty"
NEWEST, OLDER = ("2026", seed(), TESTED), ("2025", seed(KNOWN), OLD)
NOT_OFFERED = "not tested: servers of dialect %s do not offer tests to API keys"


@pytest.mark.parametrize(
    ("given", "words", "code", "text"),
    [
        pytest.param(NEWEST, "flakes", 64, "pass --auto-approve", id="no approval"),
        (NEWEST, "missing -y", 64, "nothing matches 'missing'"),
        (NEWEST, "-y", 64, "name the exports to test"),
        pytest.param(("2026", seed(), {}), "*", 1, "✗ destinations", id="other checks are shown"),
        pytest.param(("2026", seed(KNOWN), OLD), "* -y", 1, "✗ batch_export.flakes", id="policy"),
        pytest.param(("2025", seed(KNOWN, features=[]), OLD), "*", 1, LACKING, id="fidelity_f3"),
        (("interface", *OLDER[1:]), "*", 0, NOT_OFFERED % "interface"),
        (OLDER, "*", 0, NOT_OFFERED % "2025"),
        (OLDER, "*", 1, EMPTY),
    ],
)
def test_nothing_is_sent(
    given: Any, words: str, code: int, text: str, service_of: StartService, tmp_path: Path
) -> None:
    dialect, live, content = given
    tested = Checked(service_of(live, "--dialect", dialect), write(tmp_path, content))
    ran = tested.doctor(*words.split(), **({"PASSWORD": ""} if text == EMPTY else {}))
    assert (ran.code, text in ran.out + ran.err) == (code, True), ran.out + ran.err
    assert code == 64 or "✓ git" in ran.out or "▲ git" in ran.out
    assert tested.service.writes() == []
    if text == LACKING:  # A write that is refused has the same hint.
        applied = tested.doctor("-y", command="apply")
        assert applied.code == 3
        assert "add the addon in the billing settings" in applied.err + applied.out


def test_messages_of_the_service_do_not_show_secrets(
    service_of: StartService, tmp_path: Path
) -> None:
    old = Checked(service_of(seed(), "--dialect", "2025"), write(tmp_path, OLD))
    old.service.admin("PUT", "test_steps", [DENIED])
    # The dialect is unknown in an organization without exports, so the test is tried.
    ran = old.doctor("*", "--auto-approve")
    assert ran.code == 1, ran.out + ran.err
    assert "denied for" in ran.out
    assert SECRET not in ran.out + ran.err
