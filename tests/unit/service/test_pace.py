"""Calls stay below the rate limits of a service that counts when they arrive. Time is virtual."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.event import Event, Waiting
from reconciler.model.live import Repeat, Request
from reconciler.model.settings import Window
from reconciler.service.pace import DEFAULT_WINDOWS, ClientSettings, Pace, together
from reconciler.service.transport import Transport
from tests.support.transport import mocked, virtually
from tests.support.virtual_loop import LoopClock, run_virtually

READ = Request("GET", "/x/", Repeat.SAFE)
_ROUNDING = 1e-6


@dataclass
class Service:
    """Counts calls in sliding windows when they arrive, like the real one.

    A call arrives at once, and its response takes `ways[n]` seconds.
    """

    windows: Sequence[Window] = ()
    ways: Sequence[float] = (0.1,)
    arrivals: list[float] = field(default_factory=list)
    refused: int = 0
    most_at_once: int = 0
    at_once: int = 0

    async def __call__(self, _: httpx.Request) -> httpx.Response:
        way = self.ways[(len(self.arrivals) + self.at_once) % len(self.ways)]
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        response = self._answer(asyncio.get_running_loop().time())
        await asyncio.sleep(way)
        self.at_once -= 1
        return response

    def _answer(self, now: float) -> httpx.Response:
        waits = [0.0]
        for window in self.windows:
            inside = [time for time in self.arrivals if time > now - window.seconds + _ROUNDING]
            if len(inside) >= window.calls:
                waits.append(inside[-window.calls] + window.seconds - now)
        if max(waits) > 0:
            self.refused += 1
            headers = {"Retry-After": str(max(waits))}
            return httpx.Response(429, json={"code": "throttled", "detail": "-"}, headers=headers)
        self.arrivals.append(now)
        return httpx.Response(200, json={})


def paced(
    service: Service,
    calls: int,
    *,
    rate: tuple[Window, ...] | None,
    events: list[Event] | None = None,
    parallelism: int = 8,
) -> float:
    """Send calls that are all queued at once. Return how long that took."""

    async def run(transport: Transport) -> float:
        await asyncio.gather(*(transport.send(READ) for _ in range(calls)))
        assert transport.calls == calls + service.refused
        return transport.clock()

    listen = None if events is None else events.append
    settings = {"rate": rate, "listen": listen, "parallelism": parallelism}
    return float(virtually(service, run, **settings))


@pytest.mark.parametrize(
    ("window", "ways", "calls", "rate", "most"),
    [
        # 460 calls at 0.5 s each take 29 s; those after them must wait for the sent ones.
        (Window(460, 60.0), [0.5], 600, None, 1.2 * 60.0),
        (Window(48, 6.0), [0.005, 0.02, 0.1], 200, (Window(48, 6.0),), 1.1 * 4 * 6.0),
    ],
)
def test_a_call_counts_when_it_is_sent_and_not_when_it_is_queued(
    window: Window, ways: list[float], calls: int, rate: tuple[Window, ...] | None, most: float
) -> None:
    service = Service((window,), ways=ways)
    assert paced(service, calls, rate=rate) <= most
    assert (service.refused, service.most_at_once) == (0, 8)


@given(
    st.lists(
        st.builds(Window, st.integers(1, 12), st.integers(1, 20).map(float)),
        min_size=1,
        max_size=3,
    ),
    st.lists(st.floats(0.001, 29.0), min_size=1, max_size=8),
    st.integers(1, 40),
    st.integers(1, 8),
)
def test_no_call_is_refused_whatever_the_windows_and_the_latency(
    windows: list[Window], ways: list[float], calls: int, parallelism: int
) -> None:
    service = Service(windows, ways)
    paced(service, calls, rate=tuple(windows), parallelism=parallelism)
    assert service.refused == 0


def test_a_wait_for_the_rate_limit_is_reported_once() -> None:
    events: list[Event] = []
    paced(Service(ways=(0.0,)), 100, rate=(Window(50, 60.0),), events=events)
    waits = [event for event in events if isinstance(event, Waiting)]
    assert waits == [Waiting(60.1, "rate limit (50 a minute)")]


def test_a_short_run_never_waits_and_the_default_is_off_on_loopback() -> None:
    window = Window(48, 6.0)
    for rate, base_url, windows in (
        (None, "https://eu.posthog.com", DEFAULT_WINDOWS),
        ((), "https://eu.posthog.com", ()),
        ((window,), "http://127.0.0.1:8000", (window,)),
        *((None, f"http://{host}:8000", ()) for host in ("127.0.0.1", "localhost", "[::1]")),
    ):
        assert ClientSettings(rate=rate).windows(base_url) == windows
    assert paced(Service(ways=(0.0,)), 460, rate=None) == 0.0


def test_two_connections_with_one_key_share_its_limit_and_queued_calls_keep_their_order() -> None:
    order: list[int] = []

    async def run() -> float:
        clock, paces = LoopClock(), dict[bytes, Pace]()
        async with (
            mocked(Service(), clock=clock, paces=paces, rate=(Window(2, 10.0),)) as first,
            mocked(Service(), clock=clock, paces=paces) as second,
        ):
            for transport in (first, first, second):
                await transport.send(READ)
            shared = clock()

            async def call(number: int) -> None:
                await first.send(READ)
                order.append(number)

            await asyncio.gather(*map(call, range(6)))
        return shared

    assert run_virtually(run()) == pytest.approx(10.2)
    assert order == [0, 1, 2, 3, 4, 5]


def test_a_cancelled_call_takes_no_room() -> None:
    async def run(transport: Transport) -> None:
        await transport.send(READ)
        waiting = [asyncio.ensure_future(transport.send(READ)) for _ in range(3)]
        await asyncio.sleep(1)
        for call in waiting:
            call.cancel()
        await asyncio.wait(waiting)
        await transport.send(READ)
        assert transport.calls == 2
        assert transport.clock() == pytest.approx(5.2)

    virtually(Service(), run, rate=(Window(1, 5.0),))


def test_the_estimate_counts_what_was_sent_knows_the_hour_and_comes_true() -> None:
    async def known(transport: Transport) -> None:
        assert transport.estimate(0).seconds == 0.0
        assert transport.estimate(10).seconds < 1.0
        for _ in range(5):
            await transport.send(READ)
        assert transport.estimate(5).seconds == 0.0
        assert transport.estimate(6).seconds == pytest.approx(60.1)
        assert not transport.estimate(35).beyond_hour
        assert transport.estimate(36).beyond_hour
        assert transport.estimate(36).seconds == pytest.approx(3_600.1)

    async def true(transport: Transport) -> None:
        estimated = transport.estimate(200).seconds
        await asyncio.gather(*(transport.send(READ) for _ in range(200)))
        assert transport.clock() == pytest.approx(estimated, rel=0.1)

    virtually(Service(ways=(0.0,)), known, rate=(Window(10, 60.0), Window(40, 3_600.0)))
    window = Window(48, 6.0)
    virtually(Service((window,)), true, rate=(window,))


def test_the_first_error_cancels_the_other_calls() -> None:
    ended: list[str] = []

    async def fail() -> None:
        raise ValueError("first")

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def run() -> None:
        with pytest.raises(ValueError, match="first"):
            await together([wait(), fail(), wait()])
        assert ended == ["cancelled", "cancelled"]

    asyncio.run(run())
