"""A stop ends every wait at once, and requests in flight after five seconds. Time is virtual."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from reconciler.errors import AmbiguousOutcome, Interrupted
from reconciler.exit_codes import ExitCode
from reconciler.model.live import Answer, Repeat, Request
from reconciler.model.settings import Window
from reconciler.service.pace import Stop
from reconciler.service.transport import Transport
from tests.support.transport import virtually

READ = Request("GET", "/x/", Repeat.SAFE)
PATCH = Request("PATCH", "/x/1/", Repeat.SAFE, body={})
CREATE = Request("POST", "/x/", Repeat.AFTER_LOOKING, body={})


async def at_once(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json={})


def after(seconds: float, *, status: int = 200) -> Callable[[httpx.Request], Awaitable[Any]]:
    async def handle(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(seconds)
        return httpx.Response(status, json={})

    return handle


def throttled(seconds: int) -> Callable[[httpx.Request], httpx.Response]:
    headers = {"Retry-After": str(seconds)}
    return lambda _: httpx.Response(429, json={}, headers=headers)


def stopped(
    handler: Callable[[httpx.Request], Any],
    main: Callable[[Transport], Awaitable[Any]],
    *,
    at: float = 1.0,
    again: float | None = None,
    **settings: Any,
) -> tuple[Any, float, int]:
    """Stop a coroutine. Return its result or exception, when it ended, and the number of calls."""

    stop = Stop()

    async def run(transport: Transport) -> tuple[Any, float, int]:
        for time in (at,) if again is None else (at, again):
            asyncio.get_running_loop().call_at(time, stop.request)
        results = await asyncio.gather(main(transport), return_exceptions=True)
        return results[0], round(transport.clock(), 3), transport.calls

    return tuple(virtually(handler, run, stop=stop, **settings))


def test_f5_a_stop_ends_the_wait_for_the_rate_limit_of_every_queued_call() -> None:
    async def main(transport: Transport) -> list[Any]:
        sends = (transport.send(CREATE) for _ in range(50))
        return await asyncio.gather(*sends, return_exceptions=True)

    results, ended, calls = stopped(at_once, main, rate=(Window(2, 60.0),))
    assert [type(result) for result in results] == [Answer, Answer] + [Interrupted] * 48
    assert (ended, calls) == (1.0, 2)


def test_f5_after_a_stop_a_free_place_is_not_used() -> None:
    async def main(transport: Transport) -> None:
        sending = asyncio.ensure_future(transport.send(PATCH))
        await asyncio.sleep(0)
        with pytest.raises(Interrupted):
            await transport.send(PATCH)
        await sending

    result, ended, calls = stopped(after(3.0), main, parallelism=1)
    assert (result, ended, calls) == (None, 3.0, 1)


def test_after_a_stop_nothing_is_sent_and_nothing_waits() -> None:
    async def main(transport: Transport) -> None:
        await asyncio.sleep(2.0)
        for call in (
            lambda: transport.send(READ),
            lambda: transport.pause(5.0, "search"),
            lambda: transport.pause(0.0, "search"),
        ):
            with pytest.raises(Interrupted):
                await call()

    result, ended, calls = stopped(at_once, main)
    assert (result, ended, calls) == (None, 2.0, 0)


@pytest.mark.parametrize(
    ("handler", "request_", "again", "error", "ended"),
    [
        # A wait ends at once.
        (throttled(600), PATCH, None, Interrupted, 1.0),
        (after(0.8, status=504), PATCH, None, AmbiguousOutcome, 1.0),
        # A request in flight may end within five seconds, or until the second stop.
        (after(5.5), CREATE, None, None, 5.5),
        *((after(29.0), request, None, AmbiguousOutcome, 6.0) for request in (PATCH, CREATE)),
        (after(29.0), READ, None, Interrupted, 6.0),
        (after(29.0), CREATE, 2.0, AmbiguousOutcome, 2.0),
        # Nothing is repeated.
        (after(2.0, status=504), READ, None, Interrupted, 2.0),
        (after(2.0, status=504), PATCH, None, AmbiguousOutcome, 2.0),
    ],
)
def test_f5_a_stop_ends_a_request(
    handler: Callable[[httpx.Request], Any],
    request_: Request,
    again: float | None,
    error: type[Exception] | None,
    ended: float,
) -> None:
    result, at, calls = stopped(handler, lambda transport: transport.send(request_), again=again)
    assert type(result) is (error or Answer)
    assert (at, calls) == (ended, 1)


def test_a_write_that_hangs_says_that_it_was_stopped_and_a_pause_ends() -> None:
    result, _, _ = stopped(after(29.0), lambda transport: transport.send(CREATE))
    assert "stopped while waiting for the response; outcome unknown" in result.message
    result, ended, _ = stopped(at_once, lambda transport: transport.pause(30.0, "search"))
    assert (type(result), ended) == (Interrupted, 1.0)
    assert result.exit_code == ExitCode.INTERRUPTED
