"""Exchange one request for its response over HTTP, within bounds of time and size."""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import orjson
from msgspec import Struct, field

from reconciler.client.errors import service_error
from reconciler.client.network import no_response, not_a_url
from reconciler.client.waits import Waits
from reconciler.errors import ServiceError, Unavailable
from reconciler.model.redaction import Mask
from reconciler.model.request import Request
from reconciler.model.values import JSON

if TYPE_CHECKING:
    # Imported where a request is made: commands that make none start in two thirds of the time.
    import httpx

MOST_BYTES = 32 * 2**20
"""The largest response body, after decompression."""
MOST_VALUES = 1_000_000
"""The most values in a response body: each needs memory, however short its text is."""
MOST_LEVELS = 100
"""The deepest nesting of a response body: what walks through it must not run out of stack."""
_WITH_GZIP_HEADER = 16
_CONTAINERS: frozenset[type] = frozenset({dict, list})


class Received(Struct, frozen=True):
    """A response. `problem` says what about its body is not accepted; `content` is empty then."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    problem: str | None = None

    def body(self, request: Request, *, mask: Mask = str) -> JSON:
        """Return the decoded body, None without one. Raises ServiceError for an error response.

        `mask` masks secrets in texts of the service.
        """
        if self.status >= 400:
            raise service_error(request, self.status, self.content, self.headers, mask=mask)
        if 300 <= self.status < 400:
            raise ServiceError(
                f"{request.label}: {self.status} redirect, not followed with the API key",
                hint="set `base_url` to the address it redirects to, if you trust that address",
                status=self.status,
            )
        if self.problem is not None:
            raise self._unusable(request, self.problem)
        if not self.content:
            return None
        try:
            decoded: JSON = orjson.loads(self.content)
        except orjson.JSONDecodeError:
            raise self._unusable(request, "that is not JSON") from None
        if _too_deep(decoded):
            raise self._unusable(request, f"nested more than {MOST_LEVELS} levels deep")
        return decoded

    def _unusable(self, request: Request, problem: str) -> Unavailable:
        return Unavailable(
            f"{request.label}: {self.status} with a body {problem}",
            hint="check that `base_url` is the address of the API",
            status=self.status,
        )


class Exchange(Struct, frozen=True):
    """Sends requests of one service once. `timeout` is for the whole exchange, in seconds."""

    client: httpx.AsyncClient
    base_url: str
    timeout: float
    waits: Waits

    async def run(
        self,
        request: Request,
        *,
        headers: Mapping[str, str],
        content: bytes | None,
        check: Callable[[], None] | None = None,
    ) -> Received:
        """Send a request and return its response.

        `check` is called just before the first byte is sent, when connecting is over; it may raise.

        Raises ServiceError.
        """
        import httpx

        try:
            built = self.client.build_request(
                request.method,
                self.base_url + request.path,
                params=dict(request.query) or None,
                content=content,
                headers=dict(headers),
                extensions={"trace": _tracer(check)} if check else None,
            )
        except (httpx.InvalidURL, ValueError):
            raise not_a_url(self.base_url) from None
        try:
            async with self.waits.deadline(self.timeout):
                return await self._received(built)
        except TimeoutError:
            raise self._too_late(request) from None
        except httpx.HTTPError as error:
            waiting = isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout)
            late = self._too_late(request) if waiting else None
            raise late or no_response(request.label, self.base_url, error) from None
        except (httpx.InvalidURL, ValueError):
            # The address of a redirect, which httpx reads although it does not follow it.
            raise Unavailable(
                f"{request.label}: the headers of the response can't be read",
                hint="check that `base_url` is the address of the API",
            ) from None

    async def _received(self, built: httpx.Request) -> Received:
        async with aclosing(await self.client.send(built, stream=True)) as response:
            body = _Body(response.headers.get("content-encoding", ""))
            async for chunk in response.aiter_raw():
                if not body.add(chunk):
                    break
        content = body.accepted()
        return Received(response.status_code, response.headers, content, body.problem)

    def _too_late(self, request: Request) -> Unavailable:
        if self.waits.stopped:
            return Unavailable(f"{request.label}: stopped while waiting for the response")
        return Unavailable(
            f"{request.label}: no complete response from {self.base_url} in {self.timeout:g} s"
        )


class _Body(Struct):
    """The body of a response, decompressed piece by piece up to a limit."""

    encoding: str
    problem: str | None = None
    _received: bytearray = field(default_factory=bytearray)
    _gzip: zlib._Decompress = field(
        default_factory=lambda: zlib.decompressobj(zlib.MAX_WBITS | _WITH_GZIP_HEADER)
    )

    def add(self, piece: bytes) -> bool:
        """Add a piece. Return False if the body can't be accepted any more."""
        encoding = self.encoding.strip().lower()
        if encoding == "gzip":
            try:
                # A small piece may become a thousand times as large.
                piece = self._gzip.decompress(piece, MOST_BYTES + 1 - len(self._received))
            except zlib.error:
                self.problem = "that is not valid gzip"
        elif encoding not in ("", "identity"):
            self.problem = "in an encoding that was not requested"
        self._received += piece
        if len(self._received) > MOST_BYTES:
            self.problem = f"of more than {MOST_BYTES >> 20} MB"
        return self.problem is None

    def accepted(self) -> bytes:
        """Return the whole body, empty if it is not accepted."""
        if sum(self._received.count(mark) for mark in (b"{", b"[", b",")) > MOST_VALUES:
            self.problem = f"of more than {MOST_VALUES:,} values"
        return bytes(self._received) if self.problem is None else b""


def _tracer(check: Callable[[], None]) -> Callable[[str, Mapping[str, Any]], Awaitable[None]]:
    """Return a trace function of httpcore that calls `check` before a request is written."""

    async def trace(event: str, info: Mapping[str, Any]) -> None:
        # A proxy gets a CONNECT before.
        if event.endswith("send_request_headers.started") and info["request"].method != b"CONNECT":
            check()

    return trace


def _too_deep(value: JSON) -> bool:
    """Return whether a value is nested deeper than MOST_LEVELS."""
    level: list[JSON] = [value] if value.__class__ in _CONTAINERS else []
    for _ in range(MOST_LEVELS):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if outer.__class__ is dict else outer)
            if inner.__class__ in _CONTAINERS
        ]
        if not level:
            return False
    return True
