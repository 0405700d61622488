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
from tests.reliability.scenarios import Scenario, many_exports, standard
from tests.reliability.service import running_service
from tests.support.emulator import DIALECTS
from tests.support.limits import LONG
from tests.support.virtual_loop import run_virtually

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
        assert not duplicates(settled), first
        again = await user.apply()
        after = await service.state()
        assert not duplicates(after), again
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


HIDDEN = {"match": {"method": "POST", "path": PATHS["export"], "times": 3}, "fault": "hidden"}
LOST = {"match": {"method": "POST", "times": 2}, "fault": "drop", "when": "after"}


def lists(**match: str) -> list[Mapping[str, Any]]:
    """Return rules for lists that are two seconds behind."""
    paths = PATHS.values()
    return [{"match": {**match, "path": path}, "fault": "lag", "seconds": 2} for path in paths]


@pytest.mark.parametrize("dialect", DIALECTS if LONG else ["2026"])
@pytest.mark.parametrize(
    ("rules", "exports", "codes"),
    [
        *(([{**HIDDEN, "seconds": 8, "status": status}], 6, (0, 3)) for status in (None, 503)),
        # Lists that are two seconds behind change nothing.
        (lists(), None, (0,)),
        ([LOST, *lists(method="GET")], None, (0, 3)),
    ],
    ids=["hidden", "hidden with 503", "lists behind", "lost answers and lists behind"],
)
def test_f3_f6_what_is_visible_later_is_made_once(
    rules: list[Mapping[str, Any]],
    exports: int | None,
    codes: tuple[int, ...],
    dialect: str,
    tmp_path: Path,
) -> None:
    scenario = many_exports(dialect, exports) if exports else standard(dialect)
    first, again = run_virtually(apply_twice(scenario, tmp_path, *rules))
    assert first in codes
    assert again == 0
