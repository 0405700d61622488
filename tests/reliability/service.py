"""The embedded service in the event loop of its clients, with a line for every applier.

A line is an address of its own: it counts the requests of one applier, delays them, and cuts them
off as a kill does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import uvicorn
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.server import ServerState

from reconciler.emulator.app import build
from reconciler.emulator.clock import Clock
from reconciler.emulator.dialects import DIALECTS
from reconciler.emulator.seed import plant
from reconciler.emulator.server import listening_socket
from reconciler.emulator.store import Store
from reconciler.emulator.throttle import Throttle
from reconciler.emulator.transport import Connection, abort
from reconciler.emulator.world import World

START = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
ORGANIZATION = "0188461e-0000-0000-0000-000000000001"
KEY = "phx_key_of_the_tests"


class LoopClock(Clock):
    """The clock of the event loop, in which no two moments are equal."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop

    def now(self) -> datetime:
        moment = START + timedelta(seconds=self._loop.time()) + self.offset
        if self._last is not None and moment <= self._last:
            moment = self._last + timedelta(microseconds=1)
        self._last = moment
        return moment


class _Named:
    """A transport with another name of its peer."""

    def __init__(self, transport: asyncio.Transport, peer: tuple[str, int]) -> None:
        self._transport = transport
        self._peer = peer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name in ("socket", "peername"):
            return self._peer if name == "peername" else None
        return self._transport.get_extra_info(name, default)


class _Connection(Connection):
    """A connection that the service can abort: it finds it by the name of the client."""

    def connection_made(self, transport: Any) -> None:
        """Give the end of a pair of sockets a name, since it has none."""
        if not transport.get_extra_info("peername"):
            transport = _Named(transport, ("pair", transport.get_extra_info("socket").fileno()))
        super().connection_made(transport)


@dataclass(slots=True)
class Call:
    """A request that the service answered. `made` is the id of what a POST created."""

    method: str
    path: str
    status: int
    at: float
    made: str | None = None


@dataclass(slots=True)
class Line:
    """The address of one applier.

    signal_at
        The request at which `signal` is called, counting from 1, and the moment: "before" the
        request arrives, "within", when it took effect and is not answered, or "after" its answer.
    cut
        Whether the signal ends the applier: nothing of it arrives any more.
    latency
        Seconds before a request arrives and before its answer leaves.
    """

    app: ASGIApp
    base_url: str = ""
    signal_at: tuple[int, str] | None = None
    signal: Callable[[], object] = lambda: None
    cut: bool = True
    latency: Callable[[], float] | None = None
    dead: bool = False
    arrived: int = 0
    calls: list[Call] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.arrived += 1
        moment = self.signal_at[1] if self.signal_at and self.signal_at[0] == self.arrived else None
        if moment == "before":
            self._signal()
        if self.dead:
            abort(Request(scope))
            return
        await self._delayed()

        async def relay(message: Message) -> None:
            if message["type"] == "http.response.start":
                if moment == "within":
                    self._signal()
                await self._delayed()
                now = asyncio.get_running_loop().time()
                self.calls.append(Call(scope["method"], scope["path"], message["status"], now))
            elif self.calls[-1].status == 201:
                self.calls[-1].made = _identity(message.get("body", b""))
            if not self.dead:
                await send(message)

        await self.app(scope, receive, relay)
        if self.dead:
            abort(Request(scope))
        elif moment == "after":
            self._signal()

    async def _delayed(self) -> None:
        if self.latency is not None:
            await asyncio.sleep(self.latency())

    def _signal(self) -> None:
        self.dead = self.cut
        self.signal()


@dataclass(slots=True)
class Service:
    """A running service, with its switchboard."""

    world: World
    app: ASGIApp
    http: httpx.AsyncClient
    _servers: AsyncExitStack

    async def line(self, **settings: Any) -> Line:
        """Return a new address of the service."""
        line = Line(self.app, **settings)
        listening = listening_socket("127.0.0.1", 0)
        line.base_url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        config = uvicorn.Config(
            line, log_level="critical", access_log=False, lifespan="off", http=_Connection
        )
        config.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: config.http_protocol_class(config=config, server_state=state, app_state={}),
            sock=listening,
        )
        self._servers.push_async_callback(_closed, server, state)
        return line

    async def reset(self) -> None:
        """Restore the seed and real time, and close all lines."""
        await self._servers.aclose()
        await self.admin("POST", "reset")

    async def admin(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the switchboard."""
        answer = await self.http.request(method, f"/_emulator/{path}", json=body)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    async def fail(self, *rules: Mapping[str, Any]) -> None:
        """Replace the rules of faults."""
        await self.admin("PUT", "faults", list(rules))

    async def throttle(self, calls: int, seconds: float) -> None:
        """Limit the calls of each key."""
        await self.admin("PUT", "throttle", {"windows": [{"calls": calls, "seconds": seconds}]})

    async def state(self) -> dict[str, Any]:
        """Return all stored objects, with everything that is due by now."""
        await self.world.deferred.run_due()
        state: dict[str, Any] = await self.admin("GET", "state")
        return state

    async def requests(self) -> list[dict[str, Any]]:
        """Return every request so far."""
        requests: list[dict[str, Any]] = (await self.admin("GET", "requests"))["requests"]
        return requests


def _identity(body: bytes) -> str | None:
    """Return the id in the answer of a create, None where a fault removed it."""
    try:
        return str(json.loads(body)["id"])
    except (ValueError, KeyError, TypeError):
        return None


async def _closed(server: asyncio.Server, state: ServerState) -> None:
    """Close the connections and the socket of a server."""
    server.close()
    for connection in list(state.connections):
        connection.transport.abort()
    for task in list(state.tasks):
        task.cancel()
    await asyncio.gather(*state.tasks, return_exceptions=True)


@asynccontextmanager
async def running_service(
    seed: Mapping[str, Any], dialect: str = "interface"
) -> AsyncIterator[Service]:
    """Yield a service in this event loop."""
    loop = asyncio.get_running_loop()
    world = World(Store(":memory:"), LoopClock(loop), DIALECTS[dialect])

    def replant() -> None:
        with world.store.transaction():
            world.store.clear()
            plant(world, seed)

    replant()
    app = build(world, replant, throttle=Throttle(()))
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")
    async with AsyncExitStack() as servers, http:
        yield Service(world, app, http, servers)
    world.deferred.clear()
    world.store.close()
