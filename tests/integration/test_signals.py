"""Signals on an event loop without handlers for them, such as that of Windows."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import Iterator

import pytest

from reconciler.cli.signals import stop_on_signals
from reconciler.client.stop import Stop
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
