"""A transport to the embedded service with a virtual clock, for tests that must not wait."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from reconciler.model.event import Listener
from reconciler.model.settings import Connection, SecretSettings
from reconciler.model.values import SecretRef
from reconciler.service.http import SecretResolver
from reconciler.service.pace import ClientSettings, Stop
from reconciler.service.transport import Transport, open_transport
from tests.support.emulator import RunningEmulator
from tests.support.virtual_loop import LoopClock, run_virtually

KEY = SecretRef.of("env", "RECONCILER_API_KEY")


@dataclass
class VirtualClock:
    """Seconds that pass only in `sleep`, which returns at once."""

    now: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def client_settings(clock: VirtualClock | LoopClock, **settings: Any) -> ClientSettings:
    """Return settings on a virtual clock and without jitter."""
    return ClientSettings(clock=clock, sleep=clock.sleep, jitter=lambda: 0.0, **settings)


def resolver(**environ: str) -> SecretResolver:
    return SecretResolver(SecretSettings("."), environ)


@asynccontextmanager
async def connected(
    emulator: RunningEmulator,
    clock: VirtualClock | None = None,
    *,
    secrets: SecretResolver | None = None,
    listen: Listener | None = None,
    stop: Stop | None = None,
    settings: Mapping[str, Any] | None = None,
    **changes: Any,
) -> AsyncIterator[Transport]:
    """Yield a transport to the embedded service. `changes` replace parts of the connection."""
    parts = {"base_url": emulator.base_url, "organization": emulator.organization, **changes}
    async with open_transport(
        Connection(environment="test", api_key=KEY, **parts),
        secrets=secrets or resolver(**emulator.environ()),
        settings=client_settings(clock or VirtualClock(), **(settings or {})),
        listen=listen,
        stop=stop,
    ) as transport:
        yield transport


@asynccontextmanager
async def mocked(
    handler: Callable[[httpx.Request], Any],
    *,
    clock: VirtualClock | LoopClock | None = None,
    listen: Listener | None = None,
    stop: Stop | None = None,
    **settings: Any,
) -> AsyncIterator[Transport]:
    """Yield a transport whose responses come from a function, for what no service produces."""

    async def answered(request: httpx.Request) -> httpx.Response:
        response = handler(request)
        if inspect.isawaitable(response):
            response = await response
        if not response.is_stream_consumed:
            return response
        # The body of a response that was made from a value can't be read as a stream.
        stream = httpx.ByteStream(response.content)
        return httpx.Response(response.status_code, headers=response.headers, stream=stream)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answered)) as client:
        transport = Transport(
            client,
            Connection("test", "https://service.example", "org", KEY),
            secrets=resolver(RECONCILER_API_KEY="phx_key"),
            settings=client_settings(clock or VirtualClock(), **settings),
            listen=listen,
            stop=stop or Stop(),
        )
        try:
            yield transport
        finally:
            transport.close()


def virtually(
    handler: Callable[[httpx.Request], Any],
    main: Callable[[Transport], Awaitable[Any]],
    **settings: Any,
) -> Any:
    """Return what `main` returns with a transport on virtual time, as of `mocked`."""

    async def run() -> Any:
        async with mocked(handler, clock=LoopClock(), **settings) as transport:
            return await main(transport)

    return run_virtually(run())
