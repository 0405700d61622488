"""Creates that take effect after their failure, and lists that lag behind: nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LONG
from tests.reliability.accounting import (
    duplicate_exports,
    duplicate_projects,
    unlogged_writes,
)
from tests.reliability.runs import applier
from tests.reliability.scenarios import Scenario, many_exports, standard
from tests.reliability.service import running_service
from tests.reliability.virtual import run_virtually
from tests.support.emulator import DIALECTS

DELAYS = (0.3, 1.5, 31)
PATHS = {"project": "*/projects/", "export": "*/batch_exports/"}


async def apply_twice(
    scenario: Scenario, folder: Path, *rules: Mapping[str, Any]
) -> tuple[int, int]:
    """Apply under faults, then without; return the exit codes."""
    async with running_service(scenario.seed, scenario.dialect) as service:
        files = scenario.written(folder)
        log = folder / "log.jsonl"
        user = await applier(service, files, base=scenario, log=log)
        await service.fail(*rules)
        first = await user.apply()
        assert not unlogged_writes(log, user.line.calls, answers=False)
        # Everything late has happened by then.
        await asyncio.sleep(60)
        await service.fail()
        settled = await service.state()
        assert not duplicate_exports(settled), first
        assert not duplicate_projects(settled), first
        again = await user.apply()
        after = await service.state()
        assert not duplicate_exports(after), again
        assert not duplicate_projects(after), again
        assert not (await user.plan()).effective
        return first.code, again.code


@pytest.mark.parametrize("dialect", DIALECTS if LONG else ["2025"])
@pytest.mark.parametrize("answer_with", ["error", "drop", "hang"])
@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("kind", PATHS)
def test_f3_a_create_that_takes_effect_after_its_failure_is_made_once(
    kind: str, delay: float, answer_with: str, dialect: str, tmp_path: Path
) -> None:
    match = {"method": "POST", "path": PATHS[kind], "times": 1}
    rule = {"match": match, "fault": "late", "seconds": delay, "answer_with": answer_with}
    first, again = run_virtually(apply_twice(many_exports(dialect, 6), tmp_path, rule))
    assert first in (0, 3)
    assert again == 0


@pytest.mark.parametrize("dialect", DIALECTS if LONG else ["2026"])
@pytest.mark.parametrize("status", [None, 503])
def test_f3_a_create_that_is_visible_later_is_made_once(
    status: int | None, dialect: str, tmp_path: Path
) -> None:
    match = {"method": "POST", "path": "*/batch_exports/", "times": 3}
    rule = {"match": match, "fault": "hidden", "seconds": 8, "status": status}
    first, again = run_virtually(apply_twice(many_exports(dialect, 6), tmp_path, rule))
    assert first in (0, 3)
    assert again == 0


@pytest.mark.parametrize("dialect", DIALECTS if LONG else ["2026"])
def test_f6_lists_that_are_two_seconds_behind_change_nothing(dialect: str, tmp_path: Path) -> None:
    lists = [{"match": {"path": path}, "fault": "lag", "seconds": 2} for path in PATHS.values()]
    assert run_virtually(apply_twice(standard(dialect), tmp_path, *lists)) == (0, 0)


@pytest.mark.parametrize("dialect", DIALECTS if LONG else ["2026"])
def test_f3_a_lost_answer_and_lists_that_are_two_seconds_behind_create_once(
    dialect: str, tmp_path: Path
) -> None:
    lost = {"match": {"method": "POST", "times": 2}, "fault": "drop", "when": "after"}
    lists = [
        {"match": {"method": "GET", "path": path}, "fault": "lag", "seconds": 2}
        for path in PATHS.values()
    ]
    first, again = run_virtually(apply_twice(standard(dialect), tmp_path, lost, *lists))
    assert first in (0, 3)
    assert again == 0
