"""Measure runs under faults: the calls, the exit codes, and what exists twice afterwards.

Service and runs share an event loop on virtual time, so the table is the same every time. The last
column is what Terraform 1.11.4 with the provider at a771afa did under the same faults on the same
service; it was measured once (docs/terraform.md).
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.measuring import Settings
from benchmarks.results import Result
from reconciler.model.connection import Window
from reconciler.model.plan import encode
from tests.reliability.accounting import duplicate_exports, duplicate_projects
from tests.reliability.runs import Applier, Ran, applier
from tests.reliability.scenarios import Scenario, creates_of, projects_of
from tests.reliability.service import KEY, ORGANIZATION, Service, running_service
from tests.reliability.virtual import run_virtually

LOST = {
    "match": {"method": "POST", "nth": 3},
    "fault": "error",
    "status": 503,
    "when": "after",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table."""

    what: str
    run: Callable[[Service, Path], Awaitable[list[str]]]
    scenario: Scenario
    terraform: str


async def _user(service: Service, folder: Path, **settings: Any) -> Applier:
    """Return a user whose requests take 20 ms."""
    user = await applier(service, folder, settings=settings)
    user.line.latency = lambda: 0.01
    return user


async def _apply(user: Applier) -> str:
    """Apply, and return the exit code, the calls and the virtual seconds."""
    before = user.line.arrived
    ran = await user.apply()
    return _outcome(ran, user.line.arrived - before)


def _outcome(ran: Ran | None, calls: int) -> str:
    if ran is None:
        return f"killed, {calls} calls"
    return f"exit {ran.code}, {calls} calls, {ran.seconds:.1f} s"


async def _faulty(service: Service, folder: Path) -> list[str]:
    """Apply while the answer of a create is lost, then again."""
    await service.fail(LOST)
    user = await _user(service, folder)
    return [await _apply(user), await _apply(user)]


def _cut(*, kill: bool) -> Callable[[Service, Path], Awaitable[list[str]]]:
    """Return a run that is stopped or killed at the 16th create, and repeated."""

    async def run(service: Service, folder: Path) -> list[str]:
        user = await _user(service, folder)
        plan_calls = await _calls_of_a_plan(service, folder)
        user.line.signal_at = (plan_calls + 16, "within")
        user.line.cut = kill
        if kill:
            ran = await user.applied_or_killed()
        else:
            user.line.signal = user.stop.request
            ran = await user.apply()
        first = _outcome(ran, user.line.arrived)
        await asyncio.sleep(1)
        return [first, await _apply(await _user(service, folder))]

    return run


async def _calls_of_a_plan(service: Service, folder: Path) -> int:
    user = await _user(service, folder)
    await user.plan()
    return user.line.arrived


async def _plain(service: Service, folder: Path) -> list[str]:
    return [await _apply(await _user(service, folder))]


async def _with_another_key(service: Service, folder: Path) -> list[str]:
    user = await _user(service, folder)
    user.key = "phx_unknown"
    return [await _apply(user)]


async def _edited(service: Service, folder: Path) -> list[str]:
    """Save a plan, edit an object of it, and apply the plan."""
    user = await _user(service, folder)
    user.saved = folder / "plan.json"
    user.saved.write_bytes(encode(await user.plan()))
    await service.http.patch(
        f"/api/organizations/{ORGANIZATION}/projects/1/",
        json={"timezone": "Asia/Tokyo"},
        headers={"Authorization": f"Bearer {KEY}"},
    )
    return [await _apply(user)]


def _paced(
    calls: int, seconds: float, **settings: Any
) -> Callable[[Service, Path], Awaitable[list[str]]]:
    """Return a run against a limit of the service."""

    async def run(service: Service, folder: Path) -> list[str]:
        await service.throttle(calls, seconds)
        user = await _user(service, folder, **settings)
        outcome = await _apply(user)
        throttled = sum(call.status == 429 for call in user.line.calls)
        shortest = (len(user.line.calls) - 1) // calls * seconds
        took = user.line.calls[-1].at - user.line.calls[0].at
        ratio = f", {took / shortest:.2f} of the shortest time" if shortest else ""
        return [f"{outcome}, {throttled} x 429{ratio}"]

    return run


def _of(dialect: str, scenario: Scenario) -> Scenario:
    return replace(scenario, dialect=dialect)


def _zone(name: str) -> Scenario:
    """Return a plan that sets the time zone of a project."""
    scenario = projects_of(1)
    return replace(scenario, head={"projects": {"p0": {"name": "P0", "timezone": name}}})


def rows() -> list[Row]:
    """Return the table: what happens, how to run it, and what Terraform did."""
    five, forty = projects_of(5, live=False), projects_of(40, live=False)
    return [
        Row("5 creates, a lost answer, 2026", _faulty, _of("2026", five), "409, again 409"),
        Row("5 creates, a lost answer, 2025", _faulty, _of("2025", five), "silent duplicate"),
        Row("SIGINT at create 16 of 40, 2026", _cut(kill=False), _of("2026", forty), "3 x 409"),
        Row(
            "SIGINT at create 16 of 40, 2025", _cut(kill=False), _of("2025", forty), "6 duplicates"
        ),
        Row("SIGKILL at create 16 of 40, 2026", _cut(kill=True), _of("2026", forty), "9 x 409"),
        Row(
            "SIGKILL at create 16 of 40, 2025", _cut(kill=True), _of("2025", forty), "23 duplicates"
        ),
        Row("unknown time zone", _plain, _zone("Europe/Berlni"), "fails one by one"),
        Row("unknown key", _with_another_key, _of("2026", five), "an error for each"),
        Row("saved plan, then an edit", _edited, _zone("Europe/Berlin"), "overwritten"),
        Row("100 projects, no change", _plain, _of("2026", projects_of(100)), "100 calls"),
        Row("500 projects, no change", _plain, _of("2026", projects_of(500)), "500 calls"),
        Row(
            "500 projects, 480 calls a minute",
            _paced(480, 60),
            _of("2026", projects_of(500)),
            "80 x 429, exit 1",
        ),
        Row(
            "100 creates of projects",
            _plain,
            _of("2026", projects_of(100, live=False)),
            "100 calls",
        ),
        Row("100 creates of exports", _plain, creates_of(100), "not supported"),
        Row(
            "190 creates, 48 calls in 6 s",
            _paced(48, 6, rate=(Window(48, 6),)),
            creates_of(190),
            "not supported",
        ),
    ]


async def _measured(row: Row) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        async with running_service(row.scenario.seed, row.scenario.dialect) as service:
            outcomes = await row.run(service, row.scenario.written(Path(folder)))
            state = await service.state()
    twice = len(duplicate_exports(state)) + len(duplicate_projects(state))
    return [row.what, outcomes[0], " ".join(outcomes[1:]), str(twice), row.terraform]


def faults(settings: Settings) -> Result:
    """Run every row, and return the table. There is nothing to repeat."""
    del settings
    table = [["what happens", "first run", "second run", "duplicates", "Terraform"]]
    table += [run_virtually(_measured(row)) for row in rows()]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    ]
    return Result("runs under faults", lines=lines)
