"""Keeps the number of calls under the service's rate limits (service-facts 6, trap 44).

The budget is counted in sliding windows and may be shared with other users of the key, so the
client stays a little below it. Short runs never wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """At most `calls` within `seconds`."""

    calls: int
    seconds: float


DEFAULT_WINDOWS = (Window(460, 60.0), Window(4_600, 3_600.0))
"""Nine tenths and a bit of 480 a minute and 4,800 an hour: others may use the key as well."""


class Pacer:
    """Lets a call through as soon as every window has room. `clock` is monotonic, in seconds."""

    def __init__(
        self,
        windows: tuple[Window, ...],
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._windows = windows
        self._clock = clock
        self._sleep = sleep
        self._sent: deque[float] = deque(maxlen=max((each.calls for each in windows), default=1))
        self._turn = asyncio.Lock()

    async def admit(self) -> None:
        """Wait for a place, in the order of asking, and take it."""
        async with self._turn:
            wait = self._wait()
            while wait > 0:
                await self._sleep(wait)
                wait = self._wait()
            self._sent.append(self._clock())

    def _wait(self) -> float:
        now = self._clock()
        waits = [
            self._sent[-window.calls] + window.seconds - now
            for window in self._windows
            if len(self._sent) >= window.calls
        ]
        return max(waits, default=0.0)
