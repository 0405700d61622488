"""Approval: what is asked, when, and that nothing is sent without it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.commands.applying import Applied, ApplyRequest, Screen, apply
from reconciler.commands.options import PlanRequest, WorkspaceOptions
from reconciler.commands.runtime import Runtime
from reconciler.errors import BadUsage, ReconcilerError, RefusedByPolicy
from tests.support.cli import write
from tests.support.emulator import RunningEmulator


def workspace(folder: Path, policy: str = "{}") -> PlanRequest:
    files = {
        "reconciler.yaml": f"version: 1\npolicy: {policy}\n",
        "web.yaml": "projects:\n  web: {name: Web}\n",
    }
    return PlanRequest(WorkspaceOptions(write(folder, files)), no_inventory=True)


def run(
    request: ApplyRequest, emulator: RunningEmulator, *, answer: bool, log: list[str]
) -> Applied:
    runtime = Runtime(emulator.environ(), now=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def show(*_: object) -> None:
        log.append("show")

    async def approve(_: object) -> bool:
        log.append("approve")
        return answer

    def report(_: object) -> None:
        log.append("report")

    return asyncio.run(apply(request, runtime, Screen(show, approve, report)))


def test_a_plan_that_is_not_approved_is_not_applied(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    log: list[str] = []
    with pytest.raises(ReconcilerError, match="not approved; nothing was sent"):
        run(ApplyRequest(workspace(tmp_path)), emulator, answer=False, log=log)
    assert log == ["show", "approve"]
    assert emulator.writes() == []


def test_an_empty_plan_needs_no_approval(emulator: RunningEmulator, tmp_path: Path) -> None:
    log: list[str] = []
    request = ApplyRequest(workspace(tmp_path))
    assert run(request, emulator, answer=True, log=log).ended.report.done
    assert not run(request, emulator, answer=False, log=log).ended.report.done
    assert log == ["show", "approve", "report", "show", "report"]


def test_a_refused_plan_is_shown_and_needs_no_approval(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    log: list[str] = []
    request = ApplyRequest(workspace(tmp_path, "{deny: [new-api-token]}"))
    with pytest.raises(RefusedByPolicy):
        run(request, emulator, answer=True, log=log)
    assert log == ["show"]
    assert emulator.writes() == []


def test_without_a_way_to_approve_nothing_is_read(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    log: list[str] = []
    request = ApplyRequest(workspace(tmp_path), can_ask=False)
    with pytest.raises(BadUsage, match="no terminal to ask for approval"):
        run(request, emulator, answer=True, log=log)
    assert log == []
