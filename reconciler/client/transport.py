"""Send requests over HTTP, with the API key, time-outs, retries and a rate limit."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

import orjson

from reconciler.client.errors import service_error
from reconciler.client.pacing import DEFAULT_WINDOWS, Pacer, Window
from reconciler.client.retry import final_error, may_repeat, pause
from reconciler.client.secrets import SecretResolver
from reconciler.errors import ServiceError, Throttled, Unavailable
from reconciler.model.connection import Connection
from reconciler.model.event import Sent
from reconciler.model.request import Answer, Request
from reconciler.version import __version__

if TYPE_CHECKING:
    # Imported where a request is made: commands that make none start in two thirds of the time.
    import httpx


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How requests are made.

    attempts
        How often a request that may be repeated is sent, at most.
    timeout
        Seconds for one request, connecting included.
    connections
        How many at once. Around ten is best: httpx's pool costs more than it gives above that.
    windows
        The rate limits to stay below.
    clock, sleep, jitter
        Monotonic seconds, waiting, and a number from 0 to 1: parameters, so that no test waits.
    """

    attempts: int = 5
    timeout: float = 30.0
    connections: int = 10
    windows: tuple[Window, ...] = DEFAULT_WINDOWS
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.SystemRandom().random


@dataclass(slots=True)
class Transport:
    """Sends the requests of one environment. `calls` counts them, repeated ones included."""

    client: httpx.AsyncClient
    connection: Connection
    secrets: SecretResolver
    settings: ClientSettings
    listen: Callable[[Sent], None] | None = None
    calls: int = 0
    _pacer: Pacer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        settings = self.settings
        self._pacer = Pacer(settings.windows, clock=settings.clock, sleep=settings.sleep)

    async def send(self, request: Request) -> Answer:
        """Send a request, repeat it if that is safe, and return its answer.

        Raises:
            ServiceError: the service refused (4xx, not repeated), failed or can't be reached.
            AmbiguousOutcome: a request that must not be repeated ended without a clear answer.
            SecretUnavailable: the key or a secret of the body can't be resolved.

        """
        attempt = 1
        while True:
            try:
                return _answer(request, await self._response(request))
            except (Throttled, Unavailable) as error:
                if attempt >= self.settings.attempts or not may_repeat(request, error):
                    raise final_error(request, error) from None
                await self.settings.sleep(pause(attempt, error, jitter=self.settings.jitter))
                attempt += 1

    async def _response(self, request: Request) -> httpx.Response:
        import httpx

        base_url = self.connection.base_url
        content = None
        headers = {
            "Authorization": f"Bearer {self.secrets.resolve(self.connection.api_key).reveal()}"
        }
        if request.body is not None:
            content = orjson.dumps(self.secrets.fill(request.body))
            headers["Content-Type"] = "application/json"
        await self._pacer.admit()
        self.calls += 1
        status = None
        try:
            response = await self.client.request(
                request.method,
                base_url + request.path,
                params=dict(request.query) or None,
                content=content,
                headers=headers,
            )
            status = response.status_code
        except httpx.HTTPError as error:
            raise _no_response(request, error, base_url) from None
        except (httpx.InvalidURL, ValueError):
            raise ServiceError(
                f"'{base_url}' is not a URL", hint="check `base_url` of this environment"
            ) from None
        finally:
            if self.listen is not None:
                self.listen(Sent(request.method, request.path, status))
        return response


def _answer(request: Request, response: httpx.Response) -> Answer:
    status = response.status_code
    if status >= 400:
        raise service_error(request, status, response.content, response.headers)
    if response.is_redirect:
        raise ServiceError(
            f"{request.label}: {status} redirect, not followed with the API key",
            hint="set `base_url` to the address it redirects to, if you trust that address",
            status=status,
        )
    if not response.content:
        return Answer(status, None)
    try:
        return Answer(status, orjson.loads(response.content))
    except orjson.JSONDecodeError:
        raise Unavailable(
            f"{request.label}: {status} with a body that is not JSON",
            hint="check that `base_url` is the address of the API",
            status=status,
        ) from None


def _no_response(request: Request, error: httpx.HTTPError, base_url: str) -> Unavailable:
    """Convert an exception of httpx, which no other module sees."""
    import httpx

    unsent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol)
    if isinstance(error, unsent):
        unreachable = Unavailable(
            f"{request.label}: can't connect to {base_url}",
            hint="check `base_url` of this environment, the network and any proxy",
        )
        unreachable.sent = False
        return unreachable
    if isinstance(error, httpx.TimeoutException):
        return Unavailable(f"{request.label}: timeout, no response from {base_url}")
    return Unavailable(f"{request.label}: connection to {base_url} lost ({type(error).__name__})")


@asynccontextmanager
async def open_transport(
    connection: Connection,
    *,
    secrets: SecretResolver,
    settings: ClientSettings,
    listen: Callable[[Sent], None] | None = None,
) -> AsyncIterator[Transport]:
    """Yield a transport whose connections are closed at the end."""
    import httpx

    limits = httpx.Limits(
        max_connections=settings.connections, max_keepalive_connections=settings.connections
    )
    # Reading the certificate authorities takes 60 ms, and plain HTTP needs none.
    plain = connection.base_url.lower().startswith("http:")
    async with httpx.AsyncClient(
        timeout=settings.timeout,
        limits=limits,
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True,
        follow_redirects=False,
        headers={"User-Agent": f"reconciler/{__version__}", "Accept": "application/json"},
    ) as client:
        yield Transport(client, connection, secrets=secrets, settings=settings, listen=listen)
