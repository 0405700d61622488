"""The service's rate limits: sliding windows for each key (service.md, 6).

A request that one window refuses still counts for the others: retries during a 429 use up the
longer budget.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.emulator.inputs import BadInput, list_of, mapping_of, typed
from reconciler.emulator.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Window:
    """A limit of calls in a number of seconds."""

    calls: int
    seconds: float

    def __post_init__(self) -> None:
        if self.calls < 1 or not 0 < self.seconds < math.inf:
            raise BadInput("a window must have at least 1 call and more than 0 seconds")


SERVICE_WINDOWS = (Window(480, 60), Window(4_800, 3_600))
"""The limits of the service for a key."""


@dataclass(slots=True)
class Throttle:
    """Off until windows are set. Times are seconds of the service's clock."""

    windows: tuple[Window, ...] = ()
    _calls: dict[tuple[str, Window], deque[float]] = field(default_factory=dict)

    def set(self, windows: Sequence[Window]) -> None:
        """Replace the windows and reset the counts."""
        self.windows = tuple(windows)
        self._calls.clear()

    def admit(self, key: str, now: float) -> None:
        """Count a call. Raise Refusal (429) with Retry-After in whole seconds."""
        waits = [self._wait(key, window, now) for window in self.windows]
        longest = max(waits, default=0.0)
        if longest > 0:
            seconds = max(1, math.ceil(longest))
            detail = f"Request was throttled. Expected available in {seconds} seconds."
            headers = {"Retry-After": str(seconds)}
            raise Refusal(429, "throttled_error", "throttled", detail, headers=headers)

    def _wait(self, key: str, window: Window, now: float) -> float:
        """Count a call if the window allows it. Return the seconds to wait, 0 if it was counted."""
        calls = self._calls.setdefault((key, window), deque())
        while calls and calls[0] <= now - window.seconds:
            calls.popleft()
        if len(calls) >= window.calls:
            return calls[0] + window.seconds - now
        calls.append(now)
        return 0.0


def windows_of(sent: Any) -> tuple[Window, ...]:
    """Return the windows of a list of {calls, seconds}, or of a mapping. Raise BadInput."""
    return tuple(_window_of(item) for item in list_of(sent, "windows"))


def _window_of(item: Any) -> Window:
    window = mapping_of(item, "window", ("calls", "seconds"))
    calls = typed("calls", window.get("calls"), int)
    return Window(calls, float(typed("seconds", window.get("seconds"), float)))


def windows_from_text(text: str) -> tuple[Window, ...]:
    """Return the windows of `CALLS/SECONDS[,CALLS/SECONDS…]`. Raise BadInput."""
    windows = []
    for part in text.split(","):
        calls, _, seconds = part.strip().partition("/")
        try:
            windows.append(Window(int(calls), float(seconds)))
        except ValueError:
            raise BadInput(f"'{part.strip()}' is not CALLS/SECONDS, such as 480/60") from None
    return tuple(windows)
