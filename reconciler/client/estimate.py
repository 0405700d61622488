"""Estimate how long calls take under the rate limits. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from reconciler.client.limiter import Limiter
from reconciler.model.client_options import Window

HOUR = 3_600.0


class Estimate(Struct, frozen=True):
    """`seconds` that `calls` take; `beyond_hour`: more than the limit of an hour allows.

    `limit` is the limit that slows them down, None if there is none.
    """

    calls: int
    seconds: float
    beyond_hour: bool
    limit: Window | None = None


def estimate(limiters: Sequence[Limiter], calls: int, *, now: float, interval: float) -> Estimate:
    """Return the estimate for calls that are sent one after another, as fast as is allowed.

    `interval` is the time between two calls without limits, in seconds.
    """
    time, beyond = now, False
    slowest: Window | None = None
    sent = {id(limiter): limiter.history(now) for limiter in limiters}
    for _ in range(calls):
        time += interval
        for limiter in limiters:
            ended = sent[id(limiter)]
            for window in limiter.allowed():
                if len(ended) >= window.calls and ended[-window.calls] + window.seconds > time:
                    time = ended[-window.calls] + window.seconds
                    beyond = beyond or window.seconds >= HOUR
                    slowest = window
        for ended in sent.values():
            ended.append(time)
    return Estimate(calls, time - now, beyond, slowest)
