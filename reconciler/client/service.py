"""Sends requests: the key, the retries that are allowed, time-outs, and counts.

What may be repeated is a word on the request (`Repeat`), decided where the request is made. This
module reads the word and knows nothing of kinds.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

import orjson

from reconciler.client.faults import refusal
from reconciler.client.pacing import DEFAULT_WINDOWS, Pacer, Window
from reconciler.client.secrets import SecretResolver
from reconciler.errors import AmbiguousOutcome, ServiceError, Throttled, Unavailable
from reconciler.model.connection import Connection
from reconciler.model.event import Sent
from reconciler.model.request import Answer, Repeat, Request
from reconciler.version import __version__

if TYPE_CHECKING:
    # Imported where a request is made: commands that make none start in two thirds of the time.
    import httpx

_PASSING = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How requests are made.

    attempts
        How often a request that may be repeated is tried, at most.
    first_pause, longest_pause
        Seconds before the second attempt, doubling from there; `Retry-After` is honoured in full.
    timeout
        Seconds for one request, connecting included.
    connections
        How many at once. Around ten is best: httpx's pool costs more than it gives above that.
    clock, sleep, jitter
        Monotonic seconds, waiting, and a number from 0 to 1: handed in so that tests need not wait.
    """

    attempts: int = 5
    first_pause: float = 0.5
    longest_pause: float = 30.0
    timeout: float = 30.0
    connections: int = 10
    windows: tuple[Window, ...] = DEFAULT_WINDOWS
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.SystemRandom().random


@dataclass(slots=True)
class CallCounts:
    """How many requests were sent, by method."""

    by_method: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """All of them, repeated ones included."""
        return sum(self.by_method.values())


class Service:
    """The API of one environment."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        connection: Connection,
        *,
        secrets: SecretResolver,
        settings: ClientSettings,
        listen: Callable[[Sent], None] | None = None,
    ) -> None:
        self.organization = connection.organization
        self.calls = CallCounts()
        self._client = client
        self._connection = connection
        self._secrets = secrets
        self._settings = settings
        self._listen = listen
        self._pacer = Pacer(settings.windows, clock=settings.clock, sleep=settings.sleep)

    async def send(self, request: Request) -> Answer:
        """Send a request and return its answer.

        Raises:
            ServiceError: the service refused (4xx, final at once), failed or can't be reached.
            AmbiguousOutcome: a request that must not be repeated ended without a clear answer.
            SecretUnavailable: the key or a secret of the body leads nowhere.

        """
        attempt = 1
        while True:
            try:
                return await self._once(request)
            except (Throttled, Unavailable) as error:
                if attempt >= self._settings.attempts or not _may_repeat(request, error):
                    raise _as_it_ended(request, error) from None
                await self._settings.sleep(self._pause(attempt, error))
                attempt += 1

    def _pause(self, attempt: int, error: ServiceError) -> float:
        if error.retry_after is not None:
            # In full, and a little more: hammering during a 429 eats the hourly budget.
            return error.retry_after + self._settings.jitter()
        doubled = self._settings.first_pause * float(2 ** (attempt - 1))
        longest = min(doubled, self._settings.longest_pause)
        return longest * (0.5 + self._settings.jitter() / 2)

    async def _once(self, request: Request) -> Answer:
        import httpx

        content = None
        headers = {
            "Authorization": f"Bearer {self._secrets.resolve(self._connection.api_key).reveal()}"
        }
        if request.body is not None:
            content = orjson.dumps(self._secrets.fill(request.body))
            headers["Content-Type"] = "application/json"
        await self._pacer.admit()
        self.calls.by_method[request.method] += 1
        status = None
        try:
            response = await self._client.request(
                request.method,
                self._connection.base_url + request.path,
                params=dict(request.query) or None,
                content=content,
                headers=headers,
            )
            status = response.status_code
        except httpx.HTTPError as error:
            raise _no_answer(request, error, self._connection.base_url) from None
        except (httpx.InvalidURL, ValueError):
            raise ServiceError(
                f"'{self._connection.base_url}' is not an address",
                hint="check `base_url` of this environment",
            ) from None
        finally:
            if self._listen is not None:
                self._listen(Sent(request.method, request.path, status))
        return self._answer(request, response)

    def _answer(self, request: Request, response: httpx.Response) -> Answer:
        if response.status_code >= 400:
            fault = refusal(request, response.status_code, response.content, response.headers)
            fault.message = self._secrets.mask(fault.message)
            fault.args = (fault.message,)
            raise fault
        if response.is_redirect:
            raise ServiceError(
                f"{request.label}: the service redirects elsewhere "
                f"({response.status_code}), and the key is not sent there",
                hint="write the address it redirects to as `base_url`, if it is yours",
                status=response.status_code,
            )
        if not response.content:
            return Answer(response.status_code, None)
        try:
            return Answer(response.status_code, orjson.loads(response.content))
        except orjson.JSONDecodeError:
            raise Unavailable(
                f"{request.label}: {response.status_code}, but no JSON in it",
                hint="check that `base_url` is the address of the API",
                status=response.status_code,
            ) from None


def _may_repeat(request: Request, error: ServiceError) -> bool:
    """A 429 means that nothing happened; the rest only if doing it twice is the same."""
    if isinstance(error, Throttled):
        return error.code != "too_many_concurrent_backfills"
    if error.status is None and error.code == "not_sent":
        return True
    passing = error.status is None or error.status in _PASSING
    return request.repeat is Repeat.SAFE and passing


def _as_it_ended(request: Request, error: ServiceError) -> ServiceError:
    """What the last attempt means: in doubt where a create may have taken effect."""
    doubtful = isinstance(error, Unavailable) and error.code != "not_sent"
    if request.repeat is Repeat.SAFE or not doubtful:
        return error
    return AmbiguousOutcome(
        f"{error.message}; it may or may not have taken effect",
        hint=error.hint,
        status=error.status,
        code=error.code,
    )


def _no_answer(request: Request, error: httpx.HTTPError, base_url: str) -> Unavailable:
    """Httpx's exceptions end here. `not_sent` marks those where nothing can have happened."""
    import httpx

    what = request.label
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol)):
        return Unavailable(
            f"{what}: can't connect to {base_url}",
            hint="check `base_url` of this environment, the network and any proxy",
            code="not_sent",
        )
    if isinstance(error, httpx.TimeoutException):
        return Unavailable(f"{what}: no answer in time from {base_url}")
    return Unavailable(f"{what}: the connection to {base_url} broke ({type(error).__name__})")


@asynccontextmanager
async def open_service(
    connection: Connection,
    *,
    secrets: SecretResolver,
    settings: ClientSettings | None = None,
    listen: Callable[[Sent], None] | None = None,
) -> AsyncIterator[Service]:
    """A service whose connections are closed at the end."""
    settings = settings if settings is not None else ClientSettings()
    import httpx

    limits = httpx.Limits(
        max_connections=settings.connections, max_keepalive_connections=settings.connections
    )
    async with httpx.AsyncClient(
        timeout=settings.timeout,
        limits=limits,
        follow_redirects=False,
        headers={"User-Agent": f"reconciler/{__version__}", "Accept": "application/json"},
    ) as client:
        yield Service(client, connection, secrets=secrets, settings=settings, listen=listen)
