"""Exports of the embedded service in simulated time, and commands that run at that time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from msgspec.structs import replace

from reconciler.commands.workspace import Runtime, Workspace
from reconciler.service.pace import ClientSettings
from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator

_Result = TypeVar("_Result")
BEGIN = "2026-10-20T10:30:00Z"
NO_START = {
    "type": "HTTP",
    "config": {"token": "x", "url": "https://eu.i.posthog.com/batch/"},
}
"""A destination of which servers of 2025 accept backfills without a start."""
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
COMPLETED = {"status": "Completed", "records": 1000, "seconds": 10}


Begin: TypeAlias = Callable[..., "Simulated"]
"""Starts a service of a dialect at a moment (`start_simulated`)."""


@dataclass
class Simulated:
    """A service whose time only moves when a test or a wait of the client moves it.

    `waits` are the seconds that the client waited.
    """

    service: RunningEmulator
    workspace: Workspace
    waits: list[float]

    def create(self, name: str = "Lake", **fields: Any) -> str:
        """Create an export and return its id."""
        body = no_op_export(name, **fields)
        answer = self.service.call("POST", "/api/projects/1/batch_exports/", body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def call(self, method: str, export: str, path: str = "", body: Any = None) -> Any:
        """Send a request about an export and return the body of the answer."""
        answer = self.service.call(method, f"/api/projects/1/batch_exports/{export}/{path}", body)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def outcomes(self, *rules: dict[str, Any]) -> None:
        """Let runs end by rules; all others complete."""
        self.service.admin("PUT", "outcomes", [*rules, {"match": {}, **COMPLETED}])

    def advance(self, **duration: float) -> None:
        """Move the time."""
        self.service.advance(**duration)

    def live(self, export: str, *steps: str | dict[str, Any]) -> None:
        """Go through steps: times such as `8h`, `pause`, `unpause`, rules of outcomes."""
        for step in steps:
            if isinstance(step, dict):
                self.outcomes(step)
            elif step.endswith("pause"):
                self.call("POST", export, f"{step}/", {})
            else:
                self.advance(**{_UNITS[step[-1]]: float(step[:-1])})

    def ran(self, *words: str | Path, code: int = 0) -> Ran:
        """Run a command in the workspace, and check its exit code."""
        folder = f"--workspace={self.workspace.folder}"
        ended = reconciler(*words, folder, environ=self.service.environ())
        assert ended.code == code, ended.out + ended.err
        return ended

    def now(self) -> datetime:
        """Return the time of the service."""
        return datetime.fromisoformat(self.service.admin("GET", "clock")["now"])

    def run(self, work: Callable[[Workspace], Coroutine[Any, Any, _Result]]) -> _Result:
        """Run a use case at the time of the service.

        Its waits move that time, and take none.
        """
        elapsed = [0.0]

        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)
            elapsed[0] += seconds
            self.service.advance(seconds=seconds)

        client = ClientSettings(clock=lambda: elapsed[0], sleep=sleep, jitter=lambda: 0.0)
        runtime = Runtime(environ=self.service.environ(), now=self.now, client=client)
        return asyncio.run(work(replace(self.workspace, runtime=runtime)))


def no_op_export(name: str, interval: str = "hour", **fields: Any) -> dict[str, Any]:
    """Return the body of an export that writes nowhere."""
    destination = {"type": "NoOp", "config": {}}
    return {"name": name, "interval": interval, "destination": destination, **fields}


def start_simulated(
    service_of: StartService,
    folder: Path,
    dialect: str,
    at: str = BEGIN,
    *,
    auto_pause: bool = True,
) -> Simulated:
    """Return a service of a dialect at a moment. Without `auto_pause`, failures pause nothing."""
    world = simulated(service_of(None, "--dialect", dialect), folder, at=at)
    world.service.admin("PUT", "settings", {"auto_pause": auto_pause})
    return world


def simulated(service: RunningEmulator, folder: Path, *, at: str) -> Simulated:
    """Return a service at a moment, and an empty workspace for it."""
    service.admin("POST", "clock", {"set": at})
    write(folder, {"reconciler.yaml": "version: 1\n", "a.yaml": "batch_exports: {}\n"})
    world = Simulated(service, Workspace(folder), [])
    world.outcomes()
    return world
