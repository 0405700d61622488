"""`plan -e A -e B` and `plan -e '*'`: one document, and one that fails does not stop the others."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.cli.exit_codes import worst_of
from reconciler.client import ClientSettings
from reconciler.commands.options import PlanRequest, WorkspaceOptions
from reconciler.commands.planning import plan_many
from reconciler.commands.runtime import Runtime
from reconciler.errors import ExitCode
from reconciler.model.connection import Window
from tests.conftest import ROOT
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.transport import VirtualClock

FILES = {
    "reconciler.yaml": (
        "version: 1\n"
        "environments:\n"
        "  dev: {}\n"
        "  staging: {}\n"
        "  production: {policy: {deny: [new-api-token]}}\n"
    ),
    "exports.yaml": (
        "projects:\n"
        "  web: {name: Web}\n"
        "batch_exports:\n"
        "  lake:\n"
        "    project: web\n"
        "    name: Lake\n"
        "    interval: hour\n"
        "    destination: {type: NoOp, config: {}}\n"
        "    overrides: {dev: {interval: '${var:every}'}}\n"
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "w", FILES)


def plan(folder: Path, running: RunningEmulator, *words: str | Path) -> Ran:
    return reconciler("plan", "-C", folder, *words, environ=running.environ())


def test_every_environment_has_a_section_and_a_line(
    folder: Path, emulator: RunningEmulator
) -> None:
    ran = plan(folder, emulator, "-e", "*")
    assert ran.code == 1
    assert ran.out.startswith(
        "Environment dev\nerror: exports.yaml:9:33: unknown variable 'every'\n\n"
    )
    assert ran.out.count("  + batch_export.lake") == 2
    assert ran.out.endswith(
        "3 environments:\n"
        "  dev         error\n"
        "  staging     2 to create\n"
        "  production  2 to create; refused by policy\n"
    )
    assert "error: unknown variable 'every'" in ran.err
    assert "  in dev\n" in ran.err
    assert "8 API calls\n" in ran.err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("-e", "staging", "-e", "production"), 5),
        (("-e", "stag*"), 0),
        (("-e", "stag*", "--detailed-exitcode"), 2),
        (("-e", "*"), 1),
    ],
)
def test_the_exit_code_is_the_worst(
    folder: Path, emulator: RunningEmulator, words: tuple[str, ...], code: int
) -> None:
    assert plan(folder, emulator, *words).code == code


def test_the_page_has_the_order_of_exit_codes() -> None:
    text = (ROOT / "docs/planning.md").read_text(encoding="utf-8")
    numbers = text.partition("worst, in this order: ")[2].partition(".\n")[0]
    order = [ExitCode(int(number)) for number in numbers.split(", ")]
    assert set(order) == set(ExitCode)
    assert [worst_of(order[n:]) for n in range(len(order))] == order
    assert worst_of([]) is ExitCode.FINE


def test_json_is_a_list_and_markdown_one_comment(folder: Path, emulator: RunningEmulator) -> None:
    dev, staging, production = json.loads(plan(folder, emulator, "-e", "*", "--format", "json").out)
    assert (dev["plan"], dev["exit_code"]) == (None, 1)
    assert dev["error"]["diagnostics"][0]["code"] == "unknown-variable"
    assert (staging["environment"], staging["exit_code"]) == ("staging", 0)
    assert staging["plan"]["summary"]["create"] == 2
    assert (production["exit_code"], production["error"]) == (5, None)
    comment = plan(folder, emulator, "-e", "*", "--format", "markdown").out
    assert comment.startswith("<!-- reconciler: dev staging production -->\n### dev: error\n")
    assert comment.count("<!-- reconciler:") == 1
    assert "### staging: 2 to create\n" in comment


def test_each_plan_is_saved_to_a_file_that_can_be_applied(
    folder: Path, emulator: RunningEmulator, tmp_path: Path
) -> None:
    out = tmp_path / "plans"
    stale = write(out, {"dev.json": "{}"}) / "dev.json"
    ran = plan(folder, emulator, "-e", "*", "--out", out)
    assert sorted(path.name for path in out.iterdir()) == ["production.json", "staging.json"]
    assert not stale.exists()
    assert f"apply one with: reconciler apply -e staging {out}/staging.json\n" in ran.err
    applied = reconciler(
        *("apply", "-C", folder, "-e", "staging", out / "staging.json"), environ=emulator.environ()
    )
    assert applied.code == 0, applied.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-e", "prod*", "-e", "nope"), "unknown environment 'nope'"),
        (("-e", "*", "--undo", "x.json"), "--undo takes one environment"),
        (("-e", "*", "--out", "-"), "--out - takes one environment"),
        (("-e", "staging", "--out", "."), "--out . is a folder"),
    ],
)
def test_wrong_combinations_are_usage_errors(
    folder: Path, emulator: RunningEmulator, words: tuple[str, ...], message: str
) -> None:
    ran = plan(folder, emulator, *words)
    assert (ran.code, message in ran.err) == (64, True)


def test_other_commands_take_one_environment(folder: Path, emulator: RunningEmulator) -> None:
    ran = reconciler(
        *("apply", "-C", folder, "-e", "staging", "-e", "dev"), environ=emulator.environ()
    )
    assert ran.code == 64
    assert "several environments: staging, dev" in ran.err
    assert emulator.writes() == []


def test_environments_share_the_limit_of_their_key(folder: Path, emulator: RunningEmulator) -> None:
    """Six calls, two in ten seconds: one environment alone would need ten seconds."""
    clock = VirtualClock()
    settings = ClientSettings(rate=(Window(2, 10.0),), clock=clock, sleep=clock.sleep)
    runtime = Runtime(emulator.environ(), lambda: datetime(2026, 1, 1, tzinfo=UTC), client=settings)
    request = PlanRequest(WorkspaceOptions(folder))
    planned = asyncio.run(plan_many(request, ("staging", "production"), runtime))
    assert [item.error for item in planned] == [None, None]
    assert clock.now >= 20


def test_progress_names_the_environment(folder: Path, emulator: RunningEmulator) -> None:
    ran = plan(folder, emulator, "-e", "staging", "-e", "production", "--debug")
    assert "debug: staging: workspace" in ran.err
    assert "debug: production: workspace" in ran.err
