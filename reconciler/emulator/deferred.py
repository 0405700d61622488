"""Work that takes effect later than its answer, by the service's clock."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import count

from reconciler.emulator.clock import Clock

Work = Callable[[], Awaitable[object]]


class Deferred:
    """A queue of work by its moment. It runs when real time or a moved clock reaches it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: list[tuple[float, int, Work]] = []
        self._order = count()
        self._timers: set[asyncio.Task[None]] = set()

    def add(self, seconds: float, work: Work) -> None:
        """Run `work` once the clock is `seconds` ahead. Needs a running event loop."""
        due = (self._clock.now() + timedelta(seconds=seconds)).timestamp()
        heapq.heappush(self._queue, (due, next(self._order), work))
        timer = asyncio.get_running_loop().create_task(self._wait(seconds))
        self._timers.add(timer)
        timer.add_done_callback(self._timers.discard)

    async def run_due(self) -> None:
        """Run all work that is due, in order."""
        while self._queue and self._queue[0][0] <= self._clock.now().timestamp():
            _, _, work = heapq.heappop(self._queue)
            await work()

    def clear(self) -> None:
        """Cancel all work that has not run."""
        self._queue.clear()
        for timer in self._timers:
            timer.cancel()

    async def _wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.run_due()
