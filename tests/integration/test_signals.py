"""Signals on an event loop without handlers for them, such as that of Windows."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import Iterator

import pytest

from reconciler.commands.process import run, stop_on_signals
from reconciler.service.pace import Stop
from tests.support.limits import TIMEOUT


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """Restore the handlers of signals."""
    former = {number: signal.getsignal(number) for number in signal.valid_signals()}
    yield
    for number, handler in former.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


def test_a_signal_requests_a_stop_without_handlers_of_the_event_loop() -> None:
    async def interrupted() -> None:
        with pytest.raises(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, print)
        stop = Stop()
        stop_on_signals(stop)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(stop.requested.wait(), TIMEOUT)

    with asyncio.Runner(loop_factory=BaseSelectorEventLoop) as runner:
        runner.run(interrupted())


@pytest.mark.parametrize("steps", range(3))
def test_a_signal_that_arrived_just_before_a_run_stops_it_in_order(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop may have queued the call when the run starts: it must not cancel the run."""
    # A cancelled run would end this process a little later.
    monkeypatch.setattr("reconciler.commands.process._CLEAN_UP_SECONDS", 3_600.0)
    stop = Stop()

    async def work() -> str:
        signal.raise_signal(signal.SIGTERM)
        for _ in range(steps):
            await asyncio.sleep(0)
        stop_on_signals(stop)
        await asyncio.wait_for(stop.requested.wait(), TIMEOUT)
        return "in order"

    assert run(work()) == "in order"
