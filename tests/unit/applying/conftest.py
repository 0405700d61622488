from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.applying import execute
from reconciler.model.event import Event, Report
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.resource import Resource
from reconciler.model.settings import Policy
from reconciler.service.live import Depth, read_live
from reconciler.service.pace import Stop
from tests.conftest import StartService
from tests.support.emulator import RunningEmulator
from tests.support.transport import VirtualClock, connected, resolver
from tests.support.worlds import KINDS, desired_of, export, planned

NO_OP = {"type": "NoOp", "config": {}}
SECRETS = {"ID": "key-id-1234", "KEY": "hunter2hunter2"}
EXPORTS = "/api/projects/2/batch_exports/"
"""Those of the first project that a test creates."""
SEED = {
    "organizations": [{"id": "org", "name": "O", "projects": [{"name": "Other"}]}],
    "keys": [{"value": "phx_all"}],
}


@dataclass
class SharedClock(VirtualClock):
    """A virtual clock that moves the clock of the service, too."""

    running: RunningEmulator | None = None

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        if self.running is not None:
            self.running.advance(seconds=seconds)


@dataclass
class World:
    """A running service, and what a run reports."""

    running: RunningEmulator
    clock: SharedClock = field(init=False)
    events: list[Event] = field(default_factory=list)
    environ: dict[str, str] = field(default_factory=dict)
    known: Live | None = None
    react: Callable[[Event], None] = lambda _: None
    """Called with every event, such as to act as another client just before a request."""

    def __post_init__(self) -> None:
        self.clock = SharedClock(running=self.running)

    def plan(self, *resources: Resource, policy: Policy | None = None, **how: Any) -> Plan:
        """Plan resources. `apply` knows the live state of the last plan."""
        self.known = self.live()
        return planned(desired_of(*resources), self.known, policy, **how)

    def run(self, *resources: Resource, **settings: Any) -> Report:
        """Plan and apply resources."""
        return self.apply(self.plan(*resources), **settings)

    def apply(
        self,
        plan: Plan,
        *,
        stop: Stop | None = None,
        age: float = 31.0,
        **settings: Any,
    ) -> Report:
        """Apply a plan that was made `age` seconds ago."""
        known, self.known = self.known or self.live(), None
        known = replace(known, read_at=self.clock() - age, details_at={})
        self.running.clear_requests()

        async def run() -> Report:
            secrets = resolver(**self.running.environ(), **self.environ)
            async with connected(
                self.running,
                self.clock,
                secrets=secrets,
                listen=self.hear,
                stop=stop,
                settings=settings,
            ) as transport:
                return await execute(plan, transport, listen=self.hear, live=known)

        return asyncio.run(run())

    def live(self) -> Live:
        """Return what the service has, in full."""

        async def run() -> Live:
            async with connected(self.running) as transport:
                depth = Depth(in_full=lambda _: True)
                return await read_live(transport, desired_of(), kinds=KINDS, depth=depth)

        return asyncio.run(run())

    def hear(self, event: Event) -> None:
        """Keep an event, and react to it."""
        self.events.append(event)
        self.react(event)

    def fail(self, match: dict[str, Any], **fault: Any) -> None:
        """Let matching calls fail."""
        self.fail_each((match, fault))

    def fail_each(self, *rules: tuple[dict[str, Any], dict[str, Any]]) -> None:
        """Let calls fail by several rules, of which the first that matches counts."""
        self.running.admin("PUT", "faults", [{"match": match, **fault} for match, fault in rules])

    def create(self, *resources: Resource) -> None:
        """Create resources, and forget the events of it."""
        report = self.run(*resources)
        assert report.complete, report
        self.events.clear()

    def act_before(self, kind: type[Event], act: Callable[[], object], method: str = "") -> None:
        """Act as another client at the first event of a kind, such as before a request is sent."""

        def react(event: Event) -> None:
            if isinstance(event, kind) and getattr(event, "method", "") == method:
                self.react = lambda _: None
                act()

        self.react = react

    def patch(self, key: str, body: dict[str, Any]) -> None:
        """Change an export of the first project as another client."""
        self.running.call("PATCH", self.running.path_of(key), body).raise_for_status()

    def delete(self, name: str) -> None:
        """Delete an export of the first project as another client."""
        self.running.call("DELETE", self.running.path_of(name)).raise_for_status()

    def calls(self, path: str = "/") -> list[str]:
        """Return the methods of the requests whose path ends so."""
        sent = self.running.requests()
        return [item["method"] for item in sent if item["path"].endswith(path)]

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object as another client."""
        answer = self.running.call("POST", path, body)
        answer.raise_for_status()
        return dict(answer.json())

    def posts(self) -> int:
        """Return how many creates the run sent."""
        return sum(
            request["method"] == "POST" and request["path"].endswith(("/projects/", "_exports/"))
            for request in self.running.requests()
        )

    def names(self) -> list[str]:
        """Return the names of all exports, and of all projects but the first."""
        projects = self.running.state()["projects"]
        exports = [export["name"] for project in projects for export in project["batch_exports"]]
        return sorted([*exports, *(project["name"] for project in projects if project["id"] > 1)])


def lake(key: str = "lake", **spec: Any) -> Resource:
    """Return an export without secrets."""
    return export(key, **{"destination": NO_OP, **spec})


@pytest.fixture
def world(service_of: StartService) -> World:
    return World(service_of(SEED))


@pytest.fixture
def world_2025(service_of: StartService) -> World:
    return World(service_of(SEED, "--dialect", "2025"))


@pytest.fixture
def world_2026(service_of: StartService) -> World:
    return World(service_of(SEED, "--dialect", "2026"))
