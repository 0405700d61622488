"""The service's rate limits: sliding windows for each key (service-facts, section 6).

Both windows are looked at each time, and a request that the minute refuses still counts for the
hour: hammering during a 429 eats the hourly budget.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from reconciler.emulator.refusal import Refusal


@dataclass(slots=True)
class Throttle:
    """Off until limits are set. Times are seconds of the service's clock."""

    per_minute: int | None = None
    per_hour: int | None = None
    _seen: dict[str, tuple[deque[float], deque[float]]] = field(default_factory=dict)

    def admit(self, key: str, now: float) -> None:
        """Raises Refusal (429) with Retry-After in whole seconds."""
        if self.per_minute is None and self.per_hour is None:
            return
        minute, hour = self._seen.setdefault(key, (deque(), deque()))
        waits = [
            _wait(seen, limit, seconds, now)
            for seen, limit, seconds in (
                (minute, self.per_minute, 60.0),
                (hour, self.per_hour, 3600.0),
            )
        ]
        if waits[0] is None:
            minute.append(now)
        if waits[1] is None:
            hour.append(now)
        refused = [wait for wait in waits if wait is not None]
        if refused:
            seconds = max(1, math.ceil(max(refused)))
            raise Refusal(
                429,
                "throttled_error",
                "throttled",
                f"Request was throttled. Expected available in {seconds} seconds.",
                headers={"Retry-After": str(seconds)},
            )

    def clear(self) -> None:
        """Forget what was counted."""
        self._seen.clear()


def _wait(seen: deque[float], limit: int | None, seconds: float, now: float) -> float | None:
    """How long until there is room, None if there is now."""
    while seen and seen[0] <= now - seconds:
        seen.popleft()
    if limit is None or len(seen) < limit:
        return None
    return seen[0] + seconds - now
