"""Calls stay below the rate limits. Time is virtual."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from reconciler.client.pacing import DEFAULT_WINDOWS, Pacer, Window
from tests.support.transport import VirtualClock


def admitted(
    windows: tuple[Window, ...], arrivals: list[float], clock: VirtualClock
) -> list[float]:
    """Return when calls are admitted that each come so many seconds after the last."""

    async def run() -> list[float]:
        pacer = Pacer(windows, clock=clock, sleep=clock.sleep)
        times = []
        for delay in arrivals:
            clock.now += delay
            await pacer.admit()
            times.append(clock.now)
        return times

    return asyncio.run(run())


def test_a_full_window_delays_a_call_until_its_first_call_leaves_it() -> None:
    clock = VirtualClock()
    times = admitted((Window(3, 10.0),), [0, 1, 1, 1, 0], clock)
    assert times == [0, 1, 2, 10, 11]
    assert clock.pauses == [7, 1]


def test_the_longest_of_several_windows_decides() -> None:
    windows = (Window(2, 1.0), Window(3, 60.0))
    assert admitted(windows, [0] * 5, VirtualClock()) == [0, 0, 1, 60, 60]


def test_a_short_run_never_waits() -> None:
    clock = VirtualClock()
    admitted(DEFAULT_WINDOWS, [0] * 460, clock)
    assert clock.pauses == []
    admitted(DEFAULT_WINDOWS, [0] * 461, clock)
    assert clock.pauses == [60.0]


def test_without_windows_nothing_waits() -> None:
    clock = VirtualClock()
    admitted((), [0] * 1000, clock)
    assert clock.pauses == []


def test_concurrent_calls_are_admitted_in_the_order_in_which_they_ask() -> None:
    async def run() -> list[tuple[int, float]]:
        clock = VirtualClock()
        pacer = Pacer((Window(2, 10.0),), clock=clock, sleep=clock.sleep)
        order: list[tuple[int, float]] = []

        async def call(number: int) -> None:
            await pacer.admit()
            order.append((number, clock.now))

        await asyncio.gather(*(call(number) for number in range(6)))
        return order

    assert asyncio.run(run()) == [(0, 0), (1, 0), (2, 10), (3, 10), (4, 20), (5, 20)]


@given(
    st.lists(
        st.builds(Window, st.integers(1, 5), st.integers(1, 20).map(float)), min_size=1, max_size=3
    ),
    st.lists(st.integers(0, 9).map(float), max_size=40),
)
def test_no_interval_of_a_window_has_more_calls_than_it_allows(
    windows: list[Window], arrivals: list[float]
) -> None:
    times = admitted(tuple(windows), arrivals, VirtualClock())
    for window in windows:
        for first, after in zip(times, times[window.calls :], strict=False):
            assert after - first >= window.seconds
