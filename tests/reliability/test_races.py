"""Two and three appliers at once, as on several machines: they share no lock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability.accounting import (
    State,
    duplicates,
    foreign_deletes,
    identities,
    unasked_deletes,
    unlogged_writes,
)
from tests.reliability.runs import Applier, Ran, applier
from tests.reliability.scenarios import Scenario, drawn, standard
from tests.reliability.service import Service, running_service
from tests.support.emulator import DIALECTS
from tests.support.limits import LONG
from tests.support.virtual_loop import run_virtually

SEEDS = range(100) if LONG else (7, 9, 11)


def latency_of(dice: random.Random) -> float:
    """Return a delay: mostly short, now and then seconds."""
    return dice.expovariate(20) if dice.random() < 0.95 else dice.uniform(0.5, 4)


async def race(seed: int, appliers: int, folder: Path) -> list[str]:
    """Let some users apply the same plan, and return what is wrong."""
    dice = random.Random(seed)  # noqa: S311
    dialect = DIALECTS[seed % 3]
    scenario = standard(dialect) if seed % 2 else drawn(dice, dialect)
    async with running_service(scenario.seed, dialect) as service:
        files = scenario.written(folder)
        before = await service.state()
        users = [await _user(service, scenario, files, number, dice) for number in range(appliers)]
        runs = await asyncio.gather(*(_after(dice.uniform(0, 1.5), user) for user in users))
        await asyncio.sleep(120)
        after = await service.state()
        problems = [f"not reported: {it}" for it in _unreported(after, runs)]
        problems += [f"deleted: {name}" for name in unasked_deletes(scenario, before, after)]
        for user, ran in zip(users, runs, strict=True):
            assert user.log is not None
            calls = user.line.calls
            problems += [f"deleted: {it}" for it in foreign_deletes(scenario, before, calls)]
            problems += [
                f"not logged: {it}" for it in unlogged_writes(user.log, calls, answers=True)
            ]
            if ran.code not in (0, 1, 3, 4, 5):
                problems.append(str(ran))
        twice = bool(duplicates(after))
        again = await users[0].apply()
        # Of two objects, the recorded one is the resource, if one is recorded.
        if again.code not in ((0, 5) if twice else (0,)):
            problems.append(f"again: {again}")
        if twice and identities(await service.state()) != identities(after):
            problems.append("again: something was created or deleted")
    return [f"seed {seed}, {dialect}: {problem}" for problem in problems]


async def _user(
    service: Service, scenario: Scenario, files: Path, number: int, dice: random.Random
) -> Applier:
    user = await applier(service, files, base=scenario, log=files / f"{number}.jsonl")
    own = random.Random(dice.random())  # noqa: S311
    user.line.latency = lambda: latency_of(own)
    return user


async def _after(seconds: float, user: Applier) -> Ran:
    await asyncio.sleep(seconds)
    return await user.apply()


def _unreported(state: State, runs: list[Ran]) -> Iterator[str]:
    """Yield each object that exists twice and that no run reports with all ids."""
    errors = [error for ran in runs for error in (ran.error, *_failures(ran)) if ran.code == 3]
    for name, ids in identities(state).items():
        if len(ids) > 1 and not any(all(item in error for item in ids) for error in errors):
            yield f"{name}, {ids}"


def _failures(ran: Ran) -> list[str]:
    return [end.error for end in ran.report.failed] if ran.report is not None else []


@pytest.mark.parametrize("appliers", [2, 3])
def test_f6_appliers_that_run_at_once_delete_nothing_and_report_what_exists_twice(
    appliers: int, tmp_path: Path
) -> None:
    problems = [
        problem
        for seed in SEEDS
        for problem in run_virtually(race(seed, appliers, tmp_path / str(seed)))
    ]
    assert not problems, "\n".join(problems)
