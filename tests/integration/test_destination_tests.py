"""`doctor NAME`: the service tests destinations with the real credentials, and nothing is saved."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.simulated import no_op_export

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


FILES = files(
    flakes=("web", {"type": "Snowflake", "integration": 7, "config": FLAKES}),
    rows=("web", {"type": "Postgres", "integration": 8, "config": TABLE}),
    soon=("later", {"type": "HTTP", "config": CAPTURE}),
)
KEYED = {**FLAKES, "account": "a", "user": PASSWORD, "password": PASSWORD}
OLD = files(flakes=("web", {"type": "Snowflake", "config": KEYED}))
EXPORTS = "/api/projects/1/batch_exports/"


def seed(*exports: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return an organization with exports, as the service starts with it."""
    project = {"id": 1, "name": "Default project", "batch_exports": exports}
    own = {"id": "4dc8564d-bd82-1065-2f40-97f7c50f67cf", "name": "Acme", "projects": [project]}
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
    return Checked(service_of(seed(), "--dialect", "2026"), write(tmp_path, FILES))


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


@pytest.mark.parametrize(
    ("case", "words"),
    [
        pytest.param(
            ("2026", seed(), FILES, 64, "pass --auto-approve"), "flakes", id="no approval"
        ),
        pytest.param(("2026", seed(), FILES, 64, "missing"), "missing -y", id="nothing"),
        pytest.param(("2026", seed(), FILES, 64, "name the exports to test"), "-y", id="no name"),
        pytest.param(("2026", seed(), {}, 1, "✗ destinations"), "*", id="other checks are shown"),
        pytest.param(("2026", seed(KNOWN), OLD, 1, "✗ batch_export.flakes"), "* -y", id="policy"),
        pytest.param(("2025", seed(KNOWN, features=[]), OLD, 1, LACKING), "*", id="fidelity_f3"),
        *(
            pytest.param(
                (dialect, seed(KNOWN), OLD, code, text), words, id=f"{dialect} {words or 'tests'}"
            )
            for dialect in ("interface", "2025")
            for words, code, text in (
                (
                    "*",
                    0,
                    f"not tested: servers of dialect {dialect} do not offer tests to API keys",
                ),
                ("* PASSWORD=", 1, "secret ${secret:env:PASSWORD} is empty"),
            )
        ),
    ],
)
def test_nothing_is_sent(case: Any, words: str, service_of: StartService, tmp_path: Path) -> None:
    dialect, live, content, code, text = case
    tested = Checked(service_of(live, "--dialect", dialect), write(tmp_path, content))
    environ = dict(word.split("=") for word in words.split() if "=" in word)
    ran = tested.doctor(*(word for word in words.split() if "=" not in word), **environ)
    assert ran.code == code, ran.out + ran.err
    assert text in ran.out + ran.err
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
