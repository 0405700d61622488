"""Approval: what is asked, when, and that nothing is sent without it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.commands.apply.changes import Applied, Screen, apply
from reconciler.commands.workspace import Runtime, Workspace
from reconciler.errors import BadUsage, ReconcilerError, RefusedByPolicy
from reconciler.model.settings import PlanOptions
from tests.support.cli import write
from tests.support.emulator import RunningEmulator


def workspace(folder: Path, policy: str = "{}") -> Path:
    files = {
        "reconciler.yaml": f"version: 1\npolicy: {policy}\n",
        "web.yaml": "projects:\n  web: {name: Web}\n",
    }
    return write(folder, files)


def run(folder: Path, emulator: RunningEmulator, *, answer: bool | None, log: list[str]) -> Applied:
    """Apply, and answer the question; there is none without an answer."""
    runtime = Runtime(emulator.environ(), now=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def show(*_: object) -> None:
        log.append("show")

    async def approve(_: object) -> bool:
        log.append("approve")
        return bool(answer)

    def report(_: object) -> None:
        log.append("report")

    return asyncio.run(
        apply(
            Workspace(folder, runtime=runtime),
            PlanOptions(no_inventory=True),
            approve=approve if answer is not None else None,
            screen=Screen(show, report),
        )
    )


def test_a_plan_that_is_not_approved_is_not_applied(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    log: list[str] = []
    with pytest.raises(ReconcilerError, match="not approved; nothing was sent"):
        run(workspace(tmp_path), emulator, answer=False, log=log)
    assert log == ["show", "approve"]
    assert emulator.writes() == []


def test_an_empty_plan_needs_no_approval(emulator: RunningEmulator, tmp_path: Path) -> None:
    log: list[str] = []
    folder = workspace(tmp_path)
    assert run(folder, emulator, answer=True, log=log).ended.report.done
    assert not run(folder, emulator, answer=False, log=log).ended.report.done
    assert log == ["show", "approve", "report", "show", "report"]


def test_a_refused_plan_is_shown_and_needs_no_approval(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    log: list[str] = []
    folder = workspace(tmp_path, "{deny: [new-api-token]}")
    with pytest.raises(RefusedByPolicy):
        run(folder, emulator, answer=True, log=log)
    assert log == ["show"]
    assert emulator.writes() == []


def test_without_a_way_to_approve_nothing_is_read(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    log: list[str] = []
    with pytest.raises(BadUsage, match="no terminal to ask for approval"):
        run(workspace(tmp_path), emulator, answer=None, log=log)
    assert log == []
