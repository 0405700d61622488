"""Random plans, faults and kills. A failure names its seed: `reproduced(SEED, folder)`."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.accounting import (
    differences,
    duplicates,
    foreign_deletes,
    normal,
    unasked_deletes,
    unlogged_writes,
)
from tests.reliability.runs import applier
from tests.reliability.scenarios import Scenario, drawn
from tests.reliability.service import Service, running_service
from tests.support.emulator import DIALECTS
from tests.support.limits import LONG
from tests.support.virtual_loop import run_virtually

SEEDS = range(2_000) if LONG else range(15)
CHUNK = 250 if LONG else 15
STATUSES = (408, 429, 500, 502, 503, 504, 520, 524)
BODIES: tuple[Mapping[str, Any], ...] = (
    {"text": ""},
    {"value": None},
    {"value": []},
    {"value": {}},
)

Dice = random.Random
FAULTS: tuple[Callable[[Dice], Mapping[str, Any]], ...] = (
    lambda dice: {"fault": "error", "status": dice.choice(STATUSES), "when": _when(dice)},
    lambda dice: {"fault": "drop", "when": _when(dice)},
    lambda dice: {"fault": "hang", "when": _when(dice)},
    lambda dice: {"fault": "html", "status": dice.choice((200, 502)), "when": _when(dice)},
    lambda dice: {"fault": "body", **dice.choice(BODIES)},
    lambda dice: {
        "fault": "late",
        "seconds": dice.choice((0.3, 1.5, 5, 31)),
        "answer_with": dice.choice(("error", "drop", "hang")),
    },
    lambda dice: {
        "fault": "hidden",
        "seconds": dice.uniform(0, 8),
        "status": dice.choice((None, 503)),
    },
    lambda dice: {"fault": "throttle", "retry_after": dice.choice((1, 7, None, {"date_in": 5}))},
    lambda dice: {"fault": "page", dice.choice(("repeat", "drop")): 1},
    lambda dice: {"fault": "page", "count": dice.choice(("omit", "+1", "-1", 0, "many"))},
    lambda dice: {"fault": "lag", "seconds": dice.uniform(0.5, 4)},
    lambda dice: {"fault": dice.choice(("truncate", "other_id"))},
    lambda dice: {"fault": "slow", "seconds": dice.uniform(1, 60)},
)
METHODS = {"late": ("POST",), "hidden": ("POST",), "page": ("GET",), "lag": ("GET",)}
PATHS = ("*", "*", "*/projects/", "*/batch_exports/", "*/batch_exports/?*/", "*/projects/?*/")


def _when(dice: Dice) -> str:
    return dice.choice(("before", "after"))


def rule_of(dice: Dice) -> dict[str, Any]:
    """Return a random fault of a few random calls."""
    fault = dice.choice(FAULTS)(dice)
    methods = METHODS.get(fault["fault"], ("GET", "POST", "PATCH", "DELETE", "*"))
    match: dict[str, Any] = {"method": dice.choice(methods), "path": dice.choice(PATHS)}
    match["times"] = dice.choice((1, 1, 2, 5))
    if dice.random() < 0.5:
        match["probability"] = dice.choice((0.1, 0.3, 0.6))
    return {"match": match, "seed": dice.randrange(1_000), **fault}


async def world(seed: int, folder: Path) -> list[str]:
    """Run a plan under faults, perhaps kill it, and repeat it; return what is wrong."""
    dice = random.Random(seed)  # noqa: S311
    dialect = DIALECTS[seed % 3]
    scenario = drawn(dice, dialect)
    rules = [rule_of(dice) for _ in range(dice.randint(1, 3))]
    async with running_service(scenario.seed, dialect) as service:
        files = scenario.written(folder)
        assert (await (await applier(service, files, base=scenario)).apply()).code == 0
        end = normal(await service.state())
        await service.reset()
        before = await service.state()
        await service.fail(*rules)
        problems, reports = [], []
        for number, killed in enumerate((dice.random() < 0.5, dice.random() < 0.2, False)):
            ran, wrong = await _run(service, scenario, files / f"{number}.jsonl", dice, kill=killed)
            reports.append(ran)
            problems += wrong
            # What is late has happened by then. The last run is without faults.
            await asyncio.sleep(90)
            if number == 1:
                await service.fail()
        after = await service.state()
        problems += [f"deleted: {name}" for name in unasked_deletes(scenario, before, after)]
        # What a replacement left that was cut short is for a person: the plan has both ids.
        if not reports[-1].startswith("exit 5"):
            problems += [f"duplicate: {name}" for name in duplicates(after)]
            problems += [f"end: {difference}" for difference in differences(end, normal(after))]
            if not reports[-1].startswith("exit 0"):
                problems.append("the last run did not end well")
    if problems:
        problems += [f"rules: {rules}", *reports]
    return [f"seed {seed}, {dialect}: {problem}" for problem in problems]


async def _run(
    service: Service, scenario: Scenario, log: Path, dice: Dice, *, kill: bool
) -> tuple[str, list[str]]:
    """Run once; return how it ended, and what is wrong with its log and its deletions."""
    before = await service.state()
    user = await applier(service, log.parent, base=scenario, log=log)
    own = Dice(dice.random())
    user.line.latency = lambda: own.expovariate(20)
    if kill:
        moment = dice.choice(("before", "within", "after"))
        user.line.signal_at = (dice.randint(1, 40), moment)
    ran = await user.applied_or_killed()
    calls = user.line.calls
    problems = [f"not in the log: {it}" for it in unlogged_writes(log, calls, answers=False)]
    problems += [f"deleted: {it}" for it in foreign_deletes(scenario, before, calls)]
    fine = (0, 1, 3, 4, 5) if duplicates(before) else (0, 1, 3, 4)
    if ran is not None and ran.code not in fine:
        problems.append("an unexpected exit code")
    return (str(ran) if ran is not None else f"killed at {user.line.signal_at}"), problems


def reproduced(seed: int, folder: Path) -> list[str]:
    """Run the world of a seed and return what is wrong."""
    return run_virtually(world(seed, folder))


@pytest.mark.parametrize("first", range(0, len(SEEDS), CHUNK))
def test_whatever_fails_nothing_is_lost_or_made_twice(first: int, tmp_path: Path) -> None:
    problems = [
        problem
        for seed in SEEDS[first : first + CHUNK]
        for problem in reproduced(seed, tmp_path / str(seed))
    ]
    assert not problems, "\n".join(problems)
