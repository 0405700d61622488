"""Faults of the answer: errors, broken connections and unexpected bodies."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime
from typing import Any
from uuid import UUID, uuid4

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from reconciler.emulator.answers import JSONAnswer
from reconciler.emulator.clock import Clock
from reconciler.emulator.connections import abort
from reconciler.emulator.faults.effect import Exchange, effect, object_of
from reconciler.emulator.inputs import BadInput
from reconciler.emulator.refusal import Refusal

_PROXY_PAGE = b"<html><head><title>Bad Gateway</title></head><body>Bad Gateway</body></html>"
_SPACES = b" " * 2**20
_UNSET = object()


@effect("latency")
@dataclass(frozen=True, slots=True)
class Latency:
    """Wait `seconds`, then answer."""

    seconds: float = 1.0

    async def answer(self, exchange: Exchange) -> Response:
        """Answer late."""
        await asyncio.sleep(self.seconds)
        return await exchange.answer()


@effect("error")
@dataclass(frozen=True, slots=True)
class Error:
    """Answer `status`, before or after the write took effect.

    `echo` repeats the body of the request in the message, as some validators do.
    """

    status: int = 500
    when: str = "before"
    code: str = "error"
    detail: str = "A server error occurred."
    echo: bool = False

    async def answer(self, exchange: Exchange) -> Response:
        """Answer with an error in the service's shape."""
        await exchange.take_effect(self.when)
        detail = self.detail
        if self.echo:
            detail = (
                f"{detail} Received: {(await exchange.request.body()).decode(errors='replace')}"
            )
        kind = "server_error" if self.status >= 500 else "validation_error"
        return Refusal(self.status, kind, self.code, detail).response()


@effect("throttle")
@dataclass(frozen=True, slots=True)
class Throttled:
    """Answer 429 (or `status`) with `retry_after`, which is sent as written.

    A number is in seconds, null sends no header, and `{date_in: n}` sends the date in n seconds.
    """

    retry_after: Any = 1
    status: int = 429

    def __post_init__(self) -> None:
        if isinstance(self.retry_after, Mapping):
            seconds = self.retry_after.get("date_in")
            if set(self.retry_after) != {"date_in"} or not isinstance(seconds, int | float):
                raise BadInput("'retry_after' must be a number, text, null or {date_in: seconds}")

    async def answer(self, exchange: Exchange) -> Response:
        """Answer that the caller must wait."""
        value = self.retry_after
        if isinstance(value, Mapping):
            value = _http_date(exchange.world.clock, float(value["date_in"]))
        headers = {} if value is None else {"Retry-After": str(value)}
        return Refusal(
            self.status, "throttled_error", "throttled", "Request was throttled.", headers=headers
        ).response()


@effect("drop")
@dataclass(frozen=True, slots=True)
class Drop:
    """Break the connection, before or after the write took effect."""

    when: str = "before"

    async def answer(self, exchange: Exchange) -> Response:
        """End the connection without an answer."""
        await exchange.take_effect(self.when)
        return dropped(exchange.request)


@effect("hang")
@dataclass(frozen=True, slots=True)
class Hang:
    """Never answer, before or after the write took effect, until the client disconnects."""

    when: str = "before"

    async def answer(self, exchange: Exchange) -> Response:
        """Wait for the client to give up."""
        await exchange.take_effect(self.when)
        return await hung(exchange.request)


@effect("truncate")
@dataclass(frozen=True, slots=True)
class Truncate:
    """Send half of the body, then end the connection."""

    async def answer(self, exchange: Exchange) -> Response:
        """Promise the whole length and send half."""
        response = await exchange.answer()
        body = bytes(response.body)

        async def half() -> AsyncIterator[bytes]:
            yield body[: len(body) // 2]

        return _streamed(response, half(), {"content-length": str(len(body))})


@effect("html")
@dataclass(frozen=True, slots=True)
class Html:
    """Answer with the page of a proxy instead of JSON."""

    status: int = 502
    when: str = "before"

    async def answer(self, exchange: Exchange) -> Response:
        """Answer with HTML."""
        await exchange.take_effect(self.when)
        return Response(_PROXY_PAGE, status_code=self.status, media_type="text/html")


@effect("slow")
@dataclass(frozen=True, slots=True)
class Slow:
    """Send the body in `pieces` over `seconds`."""

    seconds: float = 1.0
    pieces: int = 10

    def __post_init__(self) -> None:
        if self.pieces < 1:
            raise BadInput("'pieces' must be at least 1")

    async def answer(self, exchange: Exchange) -> Response:
        """Send the body with pauses."""
        response = await exchange.answer()
        body = bytes(response.body)
        step = max(1, -(-len(body) // self.pieces))
        pause = self.seconds / max(1, -(-len(body) // step))

        async def slowly() -> AsyncIterator[bytes]:
            for start in range(0, len(body), step):
                await asyncio.sleep(pause)
                yield body[start : start + step]

        return _streamed(response, slowly(), {"content-length": str(len(body))})


@effect("gzip")
@dataclass(frozen=True, slots=True)
class Gzip:
    """Compress the body. `megabytes` of spaces follow the JSON, which stays valid."""

    megabytes: int = 0
    status: int | None = None

    async def answer(self, exchange: Exchange) -> Response:
        """Answer with Content-Encoding: gzip."""
        response = await exchange.answer()
        if self.status is not None:
            response.status_code = self.status
        body = bytes(response.body)

        async def compressed() -> AsyncIterator[bytes]:
            packer = zlib.compressobj(wbits=31)
            yield packer.compress(body)
            for _ in range(self.megabytes):
                yield packer.compress(_SPACES)
                await asyncio.sleep(0)
            yield packer.flush()

        return _streamed(response, compressed(), {"content-encoding": "gzip"})


@effect("body")
@dataclass(frozen=True, slots=True)
class Body:
    """Answer another body with the status of the real answer, or with `status`.

    `value` is any JSON, `text` any text (empty for none), `merge` is merged over the object that
    the service answers. The write takes effect unless `when` is `before`.
    """

    value: Any = _UNSET
    text: str | None = None
    merge: Mapping[str, Any] = field(default_factory=dict)
    status: int | None = None
    when: str = "after"

    def __post_init__(self) -> None:
        if (self.value is not _UNSET) + (self.text is not None) + bool(self.merge) != 1:
            raise BadInput("body: one of 'value', 'text' and 'merge' is required")
        if self.merge and self.when == "before":
            raise BadInput("body: 'merge' needs the answer: 'when' must be 'after'")

    async def answer(self, exchange: Exchange) -> Response:
        """Answer the body of the rule."""
        status = 200
        content = b""
        if self.when == "after":
            response = await exchange.answer()
            status, content = response.status_code, bytes(response.body)
        if self.text is not None:
            content = self.text.encode()
        elif self.value is not _UNSET:
            content = orjson.dumps(self.value)
        else:
            content = orjson.dumps({**object_of(content), **self.merge})
        return Response(content, status_code=self.status or status, media_type="application/json")


@effect("other_id")
@dataclass(frozen=True, slots=True)
class OtherId:
    """Answer with the id of another object."""

    async def answer(self, exchange: Exchange) -> Response:
        """Replace `id`: a UUID by another, a number by one far beyond it."""
        response = await exchange.answer()
        body = object_of(bytes(response.body))
        identity = body.get("id")
        if isinstance(identity, int):
            body["id"] = identity + 1_000_000
        elif isinstance(identity, str):
            body["id"] = str(UUID(int=UUID(identity).int ^ 1))
        else:
            body["id"] = str(uuid4())
        return JSONAnswer(body, response.status_code)


def dropped(request: Request) -> Response:
    """End the connection. The response is for the log only."""
    abort(request)
    return Response(status_code=499)


async def hung(request: Request) -> Response:
    """Wait until the client disconnects. The response is for the log only."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    return Response(status_code=499)


def _http_date(clock: Clock, seconds: float) -> str:
    return format_datetime(clock.now() + timedelta(seconds=seconds), usegmt=True)


def _streamed(
    response: Response, pieces: AsyncIterator[bytes], headers: dict[str, str]
) -> StreamingResponse:
    return StreamingResponse(
        pieces,
        status_code=response.status_code,
        headers={"content-type": "application/json", **headers},
    )
