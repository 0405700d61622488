"""Run `apply` and `plan` as use cases in the event loop of a service, on virtual time."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from reconciler.commands.apply.execution import apply
from reconciler.commands.plan import plan
from reconciler.commands.sending import Outputs
from reconciler.commands.workspace import Runtime, Workspace
from reconciler.errors import ReconcilerError
from reconciler.model.event import Event, Failed, Report
from reconciler.model.plan import Plan
from reconciler.model.settings import PlanOptions
from reconciler.service.pace import ClientSettings, Stop
from tests.reliability.scenarios import ENVIRON, Scenario
from tests.reliability.service import KEY, ORGANIZATION, START, Line, Service


@dataclass(slots=True)
class Ran:
    """How a run ended. `seconds` are virtual; `code` is the exit code."""

    code: int
    seconds: float
    report: Report | None = None
    error: str = ""
    events: list[Event] = field(default_factory=list)

    def __str__(self) -> str:
        ends = [] if self.report is None else self.report.failed
        head = f"exit {self.code} after {self.seconds:.0f} s {self.error}"
        return "\n  ".join([head, *map(_end, ends)])


@dataclass(slots=True)
class Applier:
    """One user of the command line: a line to the service, files and an audit log.

    `base` is the scenario whose base was applied. `saved` is a saved plan to apply.
    """

    line: Line
    folder: Path
    base: Scenario | None = None
    log: Path | None = None
    stop: Stop = field(default_factory=Stop)
    settings: dict[str, Any] = field(default_factory=dict)
    key: str = KEY
    saved: Path | None = None
    dice: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311

    def runtime(self, events: list[Event]) -> Runtime:
        loop = asyncio.get_running_loop()
        return Runtime(
            environ={
                "RECONCILER_BASE_URL": self.line.base_url,
                "RECONCILER_ORGANIZATION": ORGANIZATION,
                "RECONCILER_API_KEY": self.key,
                **ENVIRON,
            },
            now=_now,
            listen=events.append,
            stop=self.stop,
            client=ClientSettings(
                clock=loop.time, sleep=asyncio.sleep, jitter=self.dice.random, **self.settings
            ),
        )

    def workspace(self, events: list[Event]) -> Workspace:
        return Workspace(self.folder, trust_workspace=True, runtime=self.runtime(events))

    @property
    def options(self) -> PlanOptions:
        no_inventory = self.base is None or self.base.base is None
        return PlanOptions(allow_replace=True, no_inventory=no_inventory)

    async def apply(self) -> Ran:
        """Apply, and return how it ended."""
        events: list[Event] = []
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            applied = await apply(
                self.workspace(events),
                self.options,
                plan_file=self.saved,
                auto_approve=True,
                outputs=Outputs(log_file=self.log),
            )
        except ReconcilerError as error:
            return Ran(error.exit_code, loop.time() - started, error=str(error), events=events)
        left, error = applied.verification.left, applied.verification.error
        message = [str(change.address) for change in left.effective] if left is not None else []
        message += [str(error)] if error is not None else []
        return Ran(
            applied.ended.exit_code,
            loop.time() - started,
            applied.ended.report,
            "; ".join(message),
            events,
        )

    async def applied_or_killed(self) -> Ran | None:
        """Apply; None if the line killed the run. Its log ends at that moment."""
        task = asyncio.create_task(self.apply())
        size = 0

        def kill() -> None:
            nonlocal size
            size = self.log.stat().st_size if self.log and self.log.exists() else 0
            task.cancel()

        self.line.signal = kill
        try:
            ran = await task
        except asyncio.CancelledError:
            if not self.line.dead:
                raise
            ran = None
        if self.line.dead and self.log is not None and self.log.exists():
            self.log.write_bytes(self.log.read_bytes()[:size])
        return None if self.line.dead else ran

    async def plan(self) -> Plan:
        """Plan, and return what is left to do."""
        return (await plan(self.workspace([]), self.options)).plan


def _end(end: Failed) -> str:
    return f"{end.change.action} {end.change.address}: {end.error}"


async def applier(service: Service, folder: Path, **settings: Any) -> Applier:
    """Return a new user with a new line."""
    user = Applier(await service.line(), folder, **settings)
    if user.base is not None:
        # Each line is another address, and so has an inventory of its own.
        user.base.record(folder, user.line.base_url, await service.state())
    return user


def _now() -> datetime:
    return START + timedelta(seconds=asyncio.get_running_loop().time())
