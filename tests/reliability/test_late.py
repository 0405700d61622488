"""Creates that take effect after their failure, and lists that lag behind: nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.accounting import (
    duplicates,
    unlogged_writes,
)
from tests.reliability.runs import applier
from tests.reliability.scenarios import Scenario, small, standard
from tests.reliability.service import running_service
from tests.support.emulator import DIALECTS
from tests.support.limits import LONG
from tests.support.virtual_loop import run_virtually

PATHS = ("*/projects/", "*/batch_exports/")


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
        assert not duplicates(settled), first
        again = await user.apply()
        after = await service.state()
        assert not duplicates(after), again
        assert not (await user.plan()).effective
        return first.code, again.code


def late(path: str, delay: float, answer_with: str) -> list[Mapping[str, Any]]:
    """Return a rule for a create that takes effect after its failure."""
    match = {"method": "POST", "path": path, "times": 1}
    return [{"match": match, "fault": "late", "seconds": delay, "answer_with": answer_with}]


def lists(**match: str) -> list[Mapping[str, Any]]:
    """Return rules for lists that are two seconds behind."""
    return [{"match": {**match, "path": path}, "fault": "lag", "seconds": 2} for path in PATHS]


HIDDEN = {"match": {"method": "POST", "path": PATHS[1], "times": 3}, "fault": "hidden"}
LOST = {"match": {"method": "POST", "times": 2}, "fault": "drop", "when": "after"}
CASES = {
    **{
        f"late {path[2:-1]}, {delay} s, {answer}": (late(path, delay, answer), small, (0, 3))
        for path in PATHS
        for delay in (0.3, 1.5, 31)
        for answer in ("error", "drop", "hang")
    },
    "hidden": ([{**HIDDEN, "seconds": 8, "status": None}], small, (0, 3)),
    "hidden with 503": ([{**HIDDEN, "seconds": 8, "status": 503}], small, (0, 3)),
    # Lists that are two seconds behind change nothing.
    "lists behind": (lists(), standard, (0,)),
    "lost answers and lists behind": ([LOST, *lists(method="GET")], standard, (0, 3)),
}


@pytest.mark.parametrize("dialect", DIALECTS if LONG else ["2026"])
@pytest.mark.parametrize("case", CASES)
def test_f3_f6_what_takes_effect_or_is_visible_later_is_made_once(
    case: str, dialect: str, tmp_path: Path
) -> None:
    rules, scenario, codes = CASES[case]
    first, again = run_virtually(apply_twice(scenario(dialect), tmp_path, *rules))
    assert first in codes
    assert again == 0
