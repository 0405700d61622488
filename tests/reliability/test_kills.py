"""A kill or a signal before, within and after every request; then the same command again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from signal import Signals

import pytest

from tests.reliability.accounting import (
    differences,
    duplicates,
    normal,
    unasked_deletes,
    unlogged_writes,
)
from tests.reliability.processes import Command, environ_of
from tests.reliability.scenarios import Scenario, standard
from tests.reliability.service import Line, Service, running_service
from tests.support.emulator import DIALECTS
from tests.support.limits import LONG

SAMPLE = 9
SIGNALS = (Signals.SIGKILL, Signals.SIGINT, Signals.SIGTERM)
MOMENTS = ("before", "within", "after")


@dataclass(frozen=True, slots=True)
class Point:
    """Where a run is cut."""

    dialect: str
    number: Signals
    request: int
    moment: str


@dataclass(slots=True)
class Bench:
    """A scenario on disk, its end state, and the number of requests until then."""

    scenario: Scenario
    folder: Path
    service: Service
    end: object = None
    requests: int = 0

    async def apply(self, line: Line, log: Path, number: Signals | None = None) -> tuple[int, str]:
        """Apply as a process; return its exit code and what it printed."""
        self.scenario.record(self.folder, line.base_url, await self.service.state())
        words: list[str | Path] = [
            "apply",
            "-C",
            self.folder,
            "--trust-workspace",
            "--auto-approve",
        ]
        words += ["--allow-replace", "--log-file", log]
        command = Command(self.folder.parent, *words, environ=environ_of(line))
        if number is not None:
            line.signal = partial(command.signal, number)
        code = await command.run()
        return code, command.printed()

    async def undisturbed(self) -> None:
        """Apply without a disturbance, to know the end state."""
        line = await self.service.line()
        code, printed = await self.apply(line, self.folder / "undisturbed.jsonl")
        assert code == 0, printed
        self.end = normal(await self.service.state())
        self.requests = len(line.calls)

    async def cut(self, point: Point) -> list[str]:
        """Cut a run at a point, run again, and return what is wrong."""
        await self.service.reset()
        log = self.folder / "log.jsonl"
        log.unlink(missing_ok=True)
        killed = point.number is Signals.SIGKILL
        before = await self.service.state()
        line = await self.service.line(signal_at=(point.request, point.moment), cut=killed)
        code, printed = await self.apply(line, log, point.number)
        expected = (0,) if line.arrived < point.request else (-9,) if killed else (130, 0)
        unlogged = unlogged_writes(log, line.calls, answers=not killed)
        again, printed_again = await self.apply(await self.service.line(), log)
        after = await self.service.state()
        different = differences(self.end, normal(after))
        problems = {
            f"exit {code}: {printed}": code not in expected,
            f"again: exit {again}: {printed_again}": again != 0,
            f"not in the log: {unlogged}": unlogged,
            f"duplicates: {duplicates(after)}": duplicates(after),
            "deleted, although nothing asked for it": unasked_deletes(self.scenario, before, after),
            f"another end state: {different}": different,
        }
        return [f"{point}: {problem}" for problem, wrong in problems.items() if wrong]


async def cut_runs(points: Iterable[Point], folder: Path) -> list[str]:
    """Cut a run at each of the points; return what is wrong."""
    problems: list[str] = []
    benches: dict[str, Bench] = {}
    async with AsyncExitStack() as stack:
        for point in points:
            bench = benches.get(point.dialect)
            if bench is None:
                scenario = standard(point.dialect)
                running = running_service(scenario.seed, point.dialect)
                service = await stack.enter_async_context(running)
                files = scenario.written(folder / point.dialect)
                bench = benches[point.dialect] = Bench(scenario, files, service)
                await bench.undisturbed()
            if point.request <= bench.requests + 2:
                problems += await bench.cut(point)
    return problems


def sample() -> Iterator[Point]:
    """Yield points of the whole run, and some of its middle, where the writes are."""
    dice = random.Random(1)  # noqa: S311
    for number in range(SAMPLE):
        last = (75, 45)[number % 2]
        request = dice.randint(1, last)
        yield Point(DIALECTS[number % 3], SIGNALS[number // 3], request, dice.choice(MOMENTS))


def test_a_run_that_is_cut_at_a_sample_of_requests_converges_when_repeated(tmp_path: Path) -> None:
    problems = asyncio.run(cut_runs(sample(), tmp_path))
    assert not problems, "\n".join(problems)


@pytest.mark.skipif(not LONG, reason="half an hour")
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_run_that_is_cut_at_any_request_converges_when_repeated(
    dialect: str, number: Signals, tmp_path: Path
) -> None:
    points = (Point(dialect, number, n, moment) for n in range(1, 200) for moment in MOMENTS)
    problems = asyncio.run(cut_runs(points, tmp_path))
    assert not problems, "\n".join(problems)
