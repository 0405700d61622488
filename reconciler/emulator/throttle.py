"""The service's rate limits: sliding windows for each key (docs/service.md, 6).

Every window is looked at each time, and a request that one refuses still counts for the others:
hammering during a 429 uses up the longer budget.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.emulator.refusal import Refusal


class BadWindow(Exception):
    """A window that is not valid. The message says why."""


@dataclass(frozen=True, slots=True)
class Window:
    """So many calls in so many seconds."""

    calls: int
    seconds: float

    def __post_init__(self) -> None:
        if self.calls < 1 or not 0 < self.seconds < math.inf:
            raise BadWindow("a window has at least 1 call and more than 0 seconds")


SERVICE_WINDOWS = (Window(480, 60), Window(4_800, 3_600))
"""What the service allows a key."""


@dataclass(slots=True)
class Throttle:
    """Off until windows are set. Times are seconds of the service's clock."""

    windows: tuple[Window, ...] = ()
    _calls: dict[tuple[str, Window], deque[float]] = field(default_factory=dict)

    def set(self, windows: Sequence[Window]) -> None:
        """Replace the windows and forget what was counted."""
        self.windows = tuple(windows)
        self._calls.clear()

    def admit(self, key: str, now: float) -> None:
        """Count a call. Raise Refusal (429) with Retry-After in whole seconds."""
        waits = [self._wait(key, window, now) for window in self.windows]
        longest = max(waits, default=0.0)
        if longest > 0:
            seconds = max(1, math.ceil(longest))
            raise Refusal(
                429,
                "throttled_error",
                "throttled",
                f"Request was throttled. Expected available in {seconds} seconds.",
                headers={"Retry-After": str(seconds)},
            )

    def _wait(self, key: str, window: Window, now: float) -> float:
        """Count a call if there is room. Return the seconds until there is, 0 if there is now."""
        calls = self._calls.setdefault((key, window), deque())
        while calls and calls[0] <= now - window.seconds:
            calls.popleft()
        if len(calls) >= window.calls:
            return calls[0] + window.seconds - now
        calls.append(now)
        return 0.0


def windows_of(sent: Any) -> tuple[Window, ...]:
    """Return the windows of a list of {calls, seconds}. Raise BadWindow."""
    if not isinstance(sent, list):
        raise BadWindow("windows must be a list of {calls, seconds}")
    return tuple(_window_of(item) for item in sent)


def _window_of(item: Any) -> Window:
    if not isinstance(item, dict) or set(item) != {"calls", "seconds"}:
        raise BadWindow("a window is a mapping of calls and seconds")
    calls, seconds = item["calls"], item["seconds"]
    if isinstance(calls, bool) or not isinstance(calls, int):
        raise BadWindow("calls must be a whole number")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise BadWindow("seconds must be a number")
    return Window(calls, float(seconds))


def windows_from_text(text: str) -> tuple[Window, ...]:
    """Return the windows of `CALLS/SECONDS[,CALLS/SECONDS…]`. Raise BadWindow."""
    windows = []
    for part in text.split(","):
        calls, _, seconds = part.strip().partition("/")
        try:
            windows.append(Window(int(calls), float(seconds)))
        except ValueError:
            raise BadWindow(f"'{part.strip()}' is not CALLS/SECONDS, such as 480/60") from None
    return tuple(windows)
