"""Keep the number of calls below the service's rate limits (docs/service.md, 6 and 15.44)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Window:
    """At most `calls` within `seconds`."""

    calls: int
    seconds: float


DEFAULT_WINDOWS = (Window(460, 60.0), Window(4_600, 3_600.0))
"""A little below 480 a minute and 4,800 an hour, since others may use the key as well."""


@dataclass(slots=True)
class Pacer:
    """Admits a call as soon as every sliding window has room. `clock` is monotonic, in seconds."""

    windows: tuple[Window, ...]
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _sent: deque[float] = field(init=False)

    def __post_init__(self) -> None:
        self._sent = deque(maxlen=max((window.calls for window in self.windows), default=1))

    async def admit(self) -> None:
        """Wait until a call is allowed, first come first served, and count it."""
        async with self._turn:
            while (wait := self._wait()) > 0:
                await self.sleep(wait)
            self._sent.append(self.clock())

    def _wait(self) -> float:
        now = self.clock()
        waits = (
            self._sent[-window.calls] + window.seconds - now
            for window in self.windows
            if len(self._sent) >= window.calls
        )
        return max(waits, default=0.0)
