"""Faults of lists: pages that are capped, miscounted, repeated, cut or outdated."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from reconciler.emulator.answers import JSONAnswer
from reconciler.emulator.faults.effect import Exchange, effect, object_of
from reconciler.emulator.inputs import BadInput

_UNSET = object()


@effect("page")
@dataclass(frozen=True, slots=True)
class Page:
    """Answer a list that is not complete or not consistent.

    cap
        The largest page that the service gives, whatever `limit` asks for.
    count
        What the list says about its length: a number, "omit" for none, "+1" or "-1" for a number
        that is off by so many, or any other JSON.
    repeat, drop
        How many of the first items appear again at the end, and how many of the last are missing.
    """

    cap: int | None = None
    count: Any = _UNSET
    repeat: int = 0
    drop: int = 0

    def __post_init__(self) -> None:
        if self.cap is not None and self.cap < 1:
            raise BadInput("'cap' must be at least 1")
        if self.repeat < 0 or self.drop < 0:
            raise BadInput("'repeat' and 'drop' must not be negative")
        if _is_relative(self.count) and not self.count[1:].isdecimal():
            raise BadInput("'count' must be a number, 'omit', or a difference such as '+1'")

    async def answer(self, exchange: Exchange) -> Response:
        """Answer the page with its faults."""
        request = exchange.request
        if self.cap is not None:
            request = await _with_limit(request, self.cap)
        response = await exchange.proceed(request)
        body = object_of(bytes(response.body))
        items = body.get("results")
        if not isinstance(items, list):
            return response
        body["results"] = items[: max(0, len(items) - self.drop)] + items[: self.repeat]
        self._miscount(body)
        return JSONAnswer(body, response.status_code)

    def _miscount(self, body: dict[str, Any]) -> None:
        if self.count is _UNSET:
            return
        if self.count == "omit":
            body.pop("count", None)
        elif _is_relative(self.count):
            body["count"] = max(0, int(body.get("count", 0)) + int(self.count))
        else:
            body["count"] = self.count


@effect("lag")
@dataclass(frozen=True, slots=True)
class Lag:
    """Answer a GET from the state of `seconds` ago, but not from before the rule was set."""

    seconds: float = 5.0

    async def answer(self, exchange: Exchange) -> Response:
        """Answer from the past. Nothing is awaited meanwhile, so no other call reads the past."""
        if exchange.request.method != "GET":
            return await exchange.answer()
        world = exchange.world
        moment = world.clock.now() - timedelta(seconds=self.seconds)
        with world.store.as_of(moment.timestamp()):
            return await exchange.answer()


def _is_relative(count: Any) -> bool:
    return isinstance(count, str) and count[:1] in ("+", "-")


async def _with_limit(request: Request, cap: int) -> Request:
    """Return the same request with `limit` at most the cap."""
    query = dict(request.query_params)
    try:
        limit = min(int(query.get("limit", cap)), cap)
    except ValueError:
        limit = cap
    query["limit"] = str(limit if limit > 0 else cap)
    body = await request.body()

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request({**request.scope, "query_string": urlencode(query).encode()}, receive)
