"""Two and three appliers at once, each with its own line and its own delays."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import LONG
from tests.reliability.accounting import (
    duplicate_exports,
    duplicate_projects,
    foreign_deletes,
    records,
    unasked_deletes,
    unlogged_writes,
)
from tests.reliability.runs import Applier, Ran, applier
from tests.reliability.scenarios import Scenario, drawn, standard
from tests.reliability.service import Service, running_service
from tests.reliability.virtual import run_virtually
from tests.support.emulator import DIALECTS

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
        problems = [f"duplicate: {name}" for name in duplicate_exports(after)]
        problems += _twin_projects(users, runs, duplicate_projects(after), dialect)
        problems += [f"deleted: {name}" for name in unasked_deletes(scenario, before, after)]
        for user, ran in zip(users, runs, strict=True):
            assert user.log is not None
            calls = user.line.calls
            problems += [f"deleted: {it}" for it in foreign_deletes(scenario, before, calls)]
            problems += [
                f"not logged: {it}" for it in unlogged_writes(user.log, calls, answers=True)
            ]
            if ran.code not in (0, 1, 3, 4):
                problems.append(str(ran))
        again = await users[0].apply()
        if again.code != 0 and not duplicate_projects(after):
            problems.append(f"again: {again}")
        problems += [
            f"again: duplicate {name}" for name in duplicate_exports(await service.state())
        ]
    return [f"seed {seed}, {dialect}: {problem}" for problem in problems]


async def _user(
    service: Service, scenario: Scenario, files: Path, number: int, dice: random.Random
) -> Applier:
    user = await applier(service, files, base=scenario.base_ref, log=files / f"{number}.jsonl")
    own = random.Random(dice.random())  # noqa: S311
    user.line.latency = lambda: latency_of(own)
    return user


async def _after(seconds: float, user: Applier) -> Ran:
    await asyncio.sleep(seconds)
    return await user.apply()


def _twin_projects(
    users: list[Applier], runs: list[Ran], names: list[str], dialect: str
) -> list[str]:
    """Return the twin projects that no run reports, and what a run built in one that it reports."""
    if names and dialect == "2026":
        return [f"two projects {name} in a dialect of unique names" for name in names]
    if names and not any(ran.code == 3 for ran in runs):
        return [f"two projects {name}, and no run exits with 3" for name in names]
    return [problem for user in users for problem in _built_in_twins(user)]


def _built_in_twins(user: Applier) -> Iterator[str]:
    """Yield the exports that a run created in a project after it saw another one of its name."""
    assert user.log is not None
    twins: set[str] = set()
    for line in records(user.log):
        if line["event"] == "twins" and line["address"].startswith("project."):
            twins |= {line["id"], *line["twin_ids"]}
        if line["event"] == "sending" and line["method"] == "POST":
            parts = line["path"].split("/")
            if parts[-2] == "batch_exports" and parts[-3] in twins:
                yield f"an export in {parts[-3]}, one of two projects of a name"


@pytest.mark.parametrize("appliers", [2, 3])
def test_f6_appliers_that_run_at_once_duplicate_nothing(appliers: int, tmp_path: Path) -> None:
    problems = [
        problem
        for seed in SEEDS
        for problem in run_virtually(race(seed, appliers, tmp_path / str(seed)))
    ]
    assert not problems, "\n".join(problems)
