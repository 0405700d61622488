"""Measure runs under faults: the calls, the exit codes, and what exists twice afterwards.

Service and program share an event loop on virtual time, so its lines are the same every time. With
a provider, Terraform runs on the same service under the same faults, in real time.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.measuring import Settings
from benchmarks.results import Result
from benchmarks.scenarios.terraform import TerraformUser, adopt, supports
from reconciler.model.connection import Window
from reconciler.model.plan import encode
from tests.reliability.accounting import duplicate_exports, duplicate_projects
from tests.reliability.runs import Applier, Ran
from tests.reliability.scenarios import Scenario, creates_of, projects_of
from tests.reliability.service import KEY, ORGANIZATION, Service, running_service
from tests.reliability.virtual import run_virtually

LOST = {
    "match": {"method": "POST", "nth": 3},
    "fault": "error",
    "status": 503,
    "when": "after",
}
ZONE = "Europe/Berlin"


class _Ours(Applier):
    """A user of the program, with the methods of `TerraformUser`."""

    async def planned(self) -> Ran:
        await self.plan()
        return Ran(0, 0)

    async def save(self) -> None:
        self.saved = self.folder / "plan.json"
        self.saved.write_bytes(encode(await self.plan()))

    async def run(self) -> Ran | None:
        killed = self.line.signal_at is not None and self.line.cut
        return await (self.applied_or_killed() if killed else self.apply())

    def stop_at(self, call: int, *, kill: bool) -> None:
        self.line.signal_at, self.line.cut = (call, "within"), kill
        self.line.signal = self.stop.request


@dataclass(frozen=True, slots=True)
class Side:
    """A tool in a folder, for a service: Terraform if there is a provider.

    `settings` are those of our client.
    """

    service: Service
    folder: Path
    provider: Path | None
    settings: Mapping[str, Any] = field(default_factory=dict)

    async def user(self) -> _Ours | TerraformUser:
        """Return a user whose requests take 20 ms."""
        line = await self.service.line(latency=lambda: 0.01)
        if self.provider is not None:
            return TerraformUser(line, self.folder)
        return _Ours(line, self.folder, settings=dict(self.settings))


Running = Callable[[Side], Awaitable[list[str]]]


@dataclass(frozen=True, slots=True)
class Row:
    """What happens in a line of the table."""

    what: str
    run: Running
    scenario: Scenario


def _outcome(user: _Ours | TerraformUser, ran: Ran | None) -> str:
    """Return the exit code, the calls, and the errors of the service.

    A 500 is the end of a connection that Terraform closed when it was interrupted.
    """
    statuses = [call.status for call in user.line.calls]
    errors = Counter(status for status in statuses if status >= 400 and status != 500)
    return ", ".join(
        [
            "killed" if ran is None else f"exit {ran.code}",
            f"{user.line.arrived} calls",
            *(f"{count} x {status}" for status, count in sorted(errors.items())),
        ]
    )


async def _planned(side: Side) -> list[str]:
    user = await side.user()
    return [_outcome(user, await user.planned())]


async def _applied(side: Side) -> list[str]:
    user = await side.user()
    return [_outcome(user, await user.run())]


async def _faulty(side: Side) -> list[str]:
    """Apply while the answer of a create is lost, then again."""
    await side.service.fail(LOST)
    return [*await _applied(side), *await _applied(side)]


def _cut(*, kill: bool) -> Running:
    """Return a run that is interrupted or killed at the 16th create, and repeated."""

    async def run(side: Side) -> list[str]:
        planner, user = await side.user(), await side.user()
        await planner.planned()
        user.stop_at(planner.line.arrived + 16, kill=kill)
        first = _outcome(user, await user.run())
        await asyncio.sleep(1)
        return [first, *await _applied(side)]

    return run


async def _with_another_key(side: Side) -> list[str]:
    user = await side.user()
    user.key = "phx_unknown"
    return [_outcome(user, await user.run())]


async def _edited(side: Side) -> list[str]:
    """Save a plan, edit an object of it, and apply the plan."""
    user = await side.user()
    await user.save()
    path = f"/api/organizations/{ORGANIZATION}/projects/1/"
    headers = {"Authorization": f"Bearer {KEY}"}
    await side.service.http.patch(path, json={"timezone": "Asia/Tokyo"}, headers=headers)
    outcome = _outcome(user, await user.run())
    [project] = (await side.service.state())["projects"]
    return [f"{outcome}, {project['timezone']}"]


def _paced(run: Running, limit: Window) -> Running:
    """Return a run against a limit of the service, which our client knows."""

    async def paced(side: Side) -> list[str]:
        await side.service.throttle(limit.calls, limit.seconds)
        await side.service.admin("DELETE", "requests")
        begun = asyncio.get_running_loop().time()
        [outcome] = await run(replace(side, settings={"rate": (limit,)}))
        seconds = asyncio.get_running_loop().time() - begun
        admitted = sum(request["status"] != 429 for request in await side.service.requests())
        shortest = (admitted - 1) // limit.calls * limit.seconds
        return [f"{outcome}, {seconds:.1f} s (limit: {shortest:.0f} s)"]

    return paced


def _changed(count: int, **fields: object) -> Scenario:
    """Return a plan that changes each project."""
    scenario = projects_of(count)
    projects = {key: {**own, **fields} for key, own in scenario.head["projects"].items()}
    return replace(scenario, head={"projects": projects})


def rows() -> list[Row]:
    """Return the table."""
    forty, many = projects_of(40, live=False), projects_of(500)
    minute, short = Window(480, 60), Window(48, 6)
    both = [
        Row("5 creates, a lost answer", _faulty, projects_of(5, live=False)),
        Row("SIGINT at create 16 of 40", _cut(kill=False), forty),
        Row("SIGKILL at create 16 of 40", _cut(kill=True), forty),
        Row("100 deletes", _applied, _changed(100, state="absent")),
    ]
    newest = [
        Row("unknown time zone", _applied, _changed(5, timezone="Europe/Berlni")),
        Row("unknown key", _with_another_key, projects_of(5, live=False)),
        Row("saved plan, then an edit", _edited, _changed(1, timezone=ZONE)),
        Row("plan, 100 projects", _planned, projects_of(100)),
        Row("plan, 500 projects", _planned, many),
        Row("the same, 480 calls a minute", _paced(_planned, minute), many),
        Row("100 creates", _applied, projects_of(100, live=False)),
        Row("100 updates", _applied, _changed(100, timezone=ZONE)),
        Row("100 updates of settings", _applied, _changed(100, anonymize_ips=True)),
        Row("100 exports", _applied, creates_of(100)),
        Row("190 creates, 48 in 6 s", _paced(_applied, short), projects_of(190, live=False)),
        Row("190 exports, 48 in 6 s", _paced(_applied, short), creates_of(190)),
        Row("300 updates, 480 a minute", _paced(_applied, minute), _changed(300, timezone=ZONE)),
    ]
    return [
        Row(f"{row.what}, {dialect}", row.run, replace(row.scenario, dialect=dialect))
        for table, dialects in ((both, ("2026", "2025")), (newest, ("2026",)))
        for row in table
        for dialect in dialects
    ]


async def _measured(row: Row, provider: Path | None) -> list[str]:
    with tempfile.TemporaryDirectory() as name:
        async with running_service(row.scenario.seed, row.scenario.dialect) as service:
            side = Side(service, row.scenario.written(Path(name)), provider)
            if provider is not None:
                user = TerraformUser(await service.line(), side.folder)
                await adopt(user, provider, row.scenario)
            outcomes = await row.run(side)
            state = await service.state()
    twice = len(duplicate_exports(state)) + len(duplicate_projects(state))
    return [outcomes[0], " ".join(outcomes[1:]), str(twice)]


def faults(settings: Settings) -> Result:
    """Run every row once, and return the table."""
    provider = settings.terraform_provider if shutil.which("terraform") else None
    table = [["what happens", "tool", "first run", "second run", "duplicates"]]
    for row in rows():
        table.append([row.what, "reconciler", *run_virtually(_measured(row, None))])
        if provider is not None and supports(row.scenario):
            table.append(["", "Terraform", *asyncio.run(_measured(row, provider))])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    ]
    return Result("runs under faults", lines=lines)
