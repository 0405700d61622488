"""Exchange one request for its response over HTTP, within bounds of time and size."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from reconciler.client.errors import service_error
from reconciler.client.settings import ClientSettings
from reconciler.client.waits import Waits
from reconciler.errors import ServiceError, Unavailable
from reconciler.model.request import Request
from reconciler.model.values import JSON
from reconciler.version import __version__

if TYPE_CHECKING:
    # Imported where a request is made: commands that make none start in two thirds of the time.
    import httpx

MOST_BYTES = 32 * 2**20
"""The largest response body, after decompression."""
IDLE_SECONDS = 2.0
"""After so much idle time a connection is not used again: the other end may just close it, and
then it would be unknown whether a request took effect."""
_CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Received:
    """A response. `too_large`: its body was longer than MOST_BYTES, and is cut."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    too_large: bool = False

    def body(self, request: Request) -> JSON:
        """Return the decoded body, None without one. Raises ServiceError for an error response."""
        if self.status >= 400:
            raise service_error(request, self.status, self.content, self.headers)
        if 300 <= self.status < 400:
            raise ServiceError(
                f"{request.label}: {self.status} redirect, not followed with the API key",
                hint="set `base_url` to the address it redirects to, if you trust that address",
                status=self.status,
            )
        if self.too_large:
            raise Unavailable(
                f"{request.label}: {self.status} with a body of more than {MOST_BYTES >> 20} MB",
                hint="check that `base_url` is the address of the API",
                status=self.status,
            )
        if not self.content:
            return None
        try:
            decoded: JSON = orjson.loads(self.content)
        except orjson.JSONDecodeError:
            raise Unavailable(
                f"{request.label}: {self.status} with a body that is not JSON",
                hint="check that `base_url` is the address of the API",
                status=self.status,
            ) from None
        return decoded


@asynccontextmanager
async def open_http(base_url: str, settings: ClientSettings) -> AsyncIterator[httpx.AsyncClient]:
    """Yield an HTTP client whose connections are closed at the end."""
    import httpx

    # Calls wait for their turn before they get here, so the pool need not limit them.
    limits = httpx.Limits(
        max_connections=None,
        max_keepalive_connections=settings.parallelism,
        keepalive_expiry=IDLE_SECONDS,
    )
    connect = min(_CONNECT_SECONDS, settings.timeout / 2)
    # Reading the certificate authorities takes 60 ms, and plain HTTP needs none.
    plain = base_url.lower().startswith("http:")
    async with httpx.AsyncClient(
        timeout=httpx.Timeout(settings.timeout, connect=connect),
        limits=limits,
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True,
        follow_redirects=False,
        headers={
            "User-Agent": f"reconciler/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
        },
    ) as client:
        yield client


@dataclass(frozen=True, slots=True)
class Exchange:
    """Sends requests of one service once. `timeout` is for the whole exchange, in seconds."""

    client: httpx.AsyncClient
    base_url: str
    timeout: float
    waits: Waits

    async def run(
        self, request: Request, *, headers: Mapping[str, str], content: bytes | None
    ) -> Received:
        """Send a request and return its response. Raises ServiceError."""
        import httpx

        try:
            async with self.waits.deadline(self.timeout):
                return await self._received(request, headers=headers, content=content)
        except TimeoutError:
            raise self._too_late(request) from None
        except httpx.HTTPError as error:
            raise self._no_response(request, error) from None
        except (httpx.InvalidURL, ValueError):
            raise ServiceError(
                f"'{self.base_url}' is not a URL", hint="check `base_url` of this environment"
            ) from None

    async def _received(
        self, request: Request, *, headers: Mapping[str, str], content: bytes | None
    ) -> Received:
        received = bytearray()
        async with self.client.stream(
            request.method,
            self.base_url + request.path,
            params=dict(request.query) or None,
            content=content,
            headers=dict(headers),
        ) as response:
            async for chunk in response.aiter_bytes():
                received += chunk
                if len(received) > MOST_BYTES:
                    return Received(response.status_code, response.headers, b"", too_large=True)
        return Received(response.status_code, response.headers, bytes(received))

    def _too_late(self, request: Request) -> Unavailable:
        if self.waits.stopped:
            return Unavailable(f"{request.label}: stopped while waiting for the response")
        return Unavailable(
            f"{request.label}: no complete response from {self.base_url} in {self.timeout:g} s"
        )

    def _no_response(self, request: Request, error: httpx.HTTPError) -> Unavailable:
        """Convert an exception of httpx, which no other module sees."""
        import httpx

        unsent = (
            httpx.ConnectError,
            httpx.ConnectTimeout,
            httpx.PoolTimeout,
            httpx.ProxyError,
            httpx.UnsupportedProtocol,
        )
        if isinstance(error, unsent):
            unreachable = Unavailable(
                f"{request.label}: can't connect to {self.base_url}",
                hint="check `base_url` of this environment, the network and any proxy",
            )
            unreachable.sent = False
            return unreachable
        if isinstance(error, httpx.TimeoutException):
            return self._too_late(request)
        reason = type(error).__name__
        return Unavailable(f"{request.label}: connection to {self.base_url} lost ({reason})")
