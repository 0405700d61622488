"""An event loop on virtual time, over real sockets.

Where nothing can run, time jumps to the next timer. Service and clients run in one such loop, so
that half an hour of retries takes a second, and the same seed gives the same interleaving.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

_Result = TypeVar("_Result")
_DELIVERY = (0.002, 0.03)
"""Real seconds in which the kernel delivers what was written to a socket of this process: for short
and for long jumps. It does so at once, unless the machine is busy.
"""
_STUCK = 20.0
"""Real seconds without an event and without a timer, after which a run fails."""


class Stuck(AssertionError):
    """Nothing can happen any more: everything waits for something else, and no timer is set."""


class _Selector(selectors.BaseSelector):
    """Selects sockets that are ready; if there are none, it moves the time of its loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._inner = selectors.DefaultSelector()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return self._inner.select(0)
        if timeout is None or self._loop.threads:
            events = self._inner.select(_STUCK)
            if not events:
                raise Stuck("no event, no timer")
            return events
        events = self._inner.select(_DELIVERY[timeout > 0.5])
        if not events:
            self._loop.now += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose seconds pass only while all of its tasks wait."""

    def __init__(self) -> None:
        self.now = 0.0
        self.threads = 0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        """Run a function in a thread. Time does not pass meanwhile."""
        future = super().run_in_executor(executor, func, *args)
        self.threads += 1
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, _: object) -> None:
        self.threads -= 1


def run_virtually(main: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine in a loop of its own on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
