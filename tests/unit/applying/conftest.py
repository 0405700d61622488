from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from reconciler.applying import execute
from reconciler.model.event import Event, Report
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.reading import Depth, read_live
from tests.conftest import StartService
from tests.support.emulator import RunningEmulator
from tests.support.transport import VirtualClock, connected, resolver
from tests.support.worlds import KINDS, desired_of

SEED = {
    "organizations": [{"id": "org", "name": "O", "projects": [{"name": "Other"}]}],
    "keys": [{"value": "phx_all"}],
}


@dataclass
class World:
    """A running service, and what a run reports."""

    running: RunningEmulator
    clock: VirtualClock = field(default_factory=VirtualClock)
    events: list[Event] = field(default_factory=list)
    environ: dict[str, str] = field(default_factory=dict)

    def apply(self, plan: Plan, listen: Callable[[Event], None] | None = None) -> Report:
        """Apply a plan to the service."""
        self.running.clear_requests()

        async def run() -> Report:
            secrets = resolver(**self.running.environ(), **self.environ)
            async with connected(self.running, self.clock, secrets=secrets) as transport:
                return await execute(
                    plan,
                    transport,
                    kinds=KINDS,
                    secrets=secrets,
                    listen=listen or self.events.append,
                    stop=asyncio.Event(),
                )

        return asyncio.run(run())

    def live(self) -> Live:
        """Return what the service has, in full."""

        async def run() -> Live:
            async with connected(self.running) as transport:
                depth = Depth(in_full=lambda _: True)
                return await read_live(transport, desired_of(), kinds=KINDS, depth=depth)

        return asyncio.run(run())

    def fail(self, match: dict[str, Any], **fault: Any) -> None:
        """Let matching calls fail."""
        self.running.admin("PUT", "faults", [{"match": match, **fault}])

    def names(self) -> list[str]:
        """Return the names of all exports, and of all projects but the first."""
        projects = self.running.state()["projects"]
        exports = [export["name"] for project in projects for export in project["batch_exports"]]
        return sorted([*exports, *(project["name"] for project in projects if project["id"] > 1)])


@pytest.fixture
def world(service_of: StartService) -> World:
    return World(service_of(SEED))
