"""How requests are made: settings, and rate limits counted in sliding windows."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.connection import ClientOptions, Window, is_loopback

_T = TypeVar("_T")
_FULL_SPEED = 8
"""Calls at once after which a limiter that slowed down has no limit of its own again."""
HOUR = 3_600.0
DEFAULT_WINDOWS = (Window(460, 60.0), Window(4_600, 3_600.0))
"""A little below 480 a minute and 4,800 an hour, since others may use the key as well."""


class Delay(Struct, frozen=True):
    """Seconds until calls may be sent, infinite where another call has to end before."""

    seconds: float
    reason: str = ""


class Limiter(Struct):
    """Counts the calls of one key, or those to one organization of a host.

    The service counts a call at some time between its sending and its response. So a call counts
    from the moment in which it is held or sent, until `Window.seconds` after it ended.

    `width` limits the calls at once after a pause. `pauses` counts pauses without a success since.
    """

    windows: tuple[Window, ...] = ()
    held: int = 0
    sending: int = 0
    resumes: float = -inf
    reason: str = ""
    width: int | None = None
    pauses: int = 0
    _divisor: int = 1
    _since: float = inf
    _ended: deque[float] = field(default_factory=deque)

    def restrict(self, windows: Sequence[Window]) -> None:
        """Add windows."""
        self.windows = tuple(dict.fromkeys((*self.windows, *windows)))

    def holdable(self, calls: int) -> int:
        """Return how many of so many calls may be held: half of a window stays free for others."""
        return min([calls, *(self._allowed(window) // 2 for window in self.windows)])

    def hold_delay(self, calls: int) -> Delay | None:
        """Return the wait until so many calls more may be held, None if they may be held now."""
        return None if self.held + calls == self.holdable(self.held + calls) else Delay(inf)

    def delay(self, calls: int, now: float) -> Delay | None:
        """Return the wait until so many calls fit into every window, None if they fit now."""
        delays = [self._delay(window, calls, now) for window in self.windows]
        return max(filter(None, delays), key=lambda delay: delay.seconds, default=None)

    def pause_delay(self, now: float) -> Delay | None:
        """Return the wait until one more call may be sent after a pause, None if it may now."""
        if now < self.resumes:
            return Delay(self.resumes - now, self.reason)
        return Delay(inf) if self.width is not None and self.sending >= self.width else None

    def end(self, now: float, *, counted: bool) -> None:
        """End a call. One that did not reach the service is not counted."""
        self.sending -= 1
        if not counted:
            return
        self._since = min(self._since, now)
        self._ended.append(now)
        longest = max((window.seconds for window in self.windows), default=0.0)
        while self._ended and self._ended[0] + longest <= now:
            self._ended.popleft()

    def pause(self, until: float, reason: str) -> None:
        """Send nothing until a time, then one call, then more and more."""
        if until >= self.resumes:
            self.resumes, self.reason = until, reason
        self.width = 1

    def succeed(self, sent: float) -> None:
        """Note a success of a call. One that was sent before the last pause ended says nothing."""
        if sent < self.resumes:
            return
        self.pauses = 0
        if self.width is not None:
            self.width = self.width * 2 if self.width * 2 < _FULL_SPEED else None

    def halve(self) -> Window | None:
        """Halve the rate. Return the shortest window as it is now, None without any."""
        self._divisor *= 2
        shortest = min(self.windows, key=lambda window: window.seconds, default=None)
        return shortest and Window(self._allowed(shortest), shortest.seconds)

    def is_shared(self, now: float) -> bool:
        """Return whether a refusal now means that others send calls, too: our count has room.

        In the first window it may mean those of a run that ended, such as the plan before an apply.
        """
        shortest = min((window.seconds for window in self.windows), default=inf)
        return self._since + shortest <= now and all(
            self._counted(window, now) < self._allowed(window) for window in self.windows
        )

    def history(self, now: float) -> list[float]:
        """Return when the calls of the longest window ended; calls that did not count as now."""
        return [*self._ended, *(now for _ in range(self.sending + self.held))]

    def allowed(self) -> list[Window]:
        """Return the windows as they are now."""
        return [Window(self._allowed(window), window.seconds) for window in self.windows]

    def _allowed(self, window: Window) -> int:
        return max(1, window.calls // self._divisor)

    def _counted(self, window: Window, now: float) -> int:
        ended = sum(1 for end in self._ended if end + window.seconds > now)
        return ended + self.sending + self.held

    def _delay(self, window: Window, calls: int, now: float) -> Delay | None:
        allowed = self._allowed(window)
        # A rate that was halved may be less than what is held, and holders must be able to go on.
        room = allowed - self.sending - min(self.held, allowed // 2) - calls
        if room < 0:
            return Delay(inf)
        if len(self._ended) <= room:
            return None
        wait = self._ended[-room - 1] + window.seconds - now
        if wait <= 0:
            return None
        return Delay(wait, f"rate limit ({Window(allowed, window.seconds)})")


class Limiters(Struct):
    """The limiters of a process by what they count for, and who waits for a call to end."""

    _limiters: dict[object, Limiter] = field(default_factory=dict)
    _waiting: set[asyncio.Future[None]] = field(default_factory=set)

    def of(self, scope: object, windows: Sequence[Window]) -> Limiter:
        """Return the limiter of a key or an organization. The strictest of all windows count."""
        limiter = self._limiters.setdefault(scope, Limiter())
        limiter.restrict(windows)
        return limiter

    def change(self) -> asyncio.Future[None]:
        """Return what is done as soon as a call ends, or a held one is released."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        waiting.add_done_callback(self._waiting.discard)
        return waiting

    def changed(self) -> None:
        """End the waits for a change."""
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)


class Readings(Struct):
    """What several environments of one run read once, by service, key and what it is.

    A reading that fails is not kept: the next environment makes its own.
    """

    _made: dict[object, Any] = field(default_factory=dict)
    _turns: dict[object, asyncio.Lock] = field(default_factory=dict)

    async def once(self, key: object, read: Callable[[], Awaitable[_T]]) -> _T:
        """Return a reading, made if no environment made it. Others wait for one that is made."""
        async with self._turns.setdefault(key, asyncio.Lock()):
            if key not in self._made:
                self._made[key] = await read()
        made: _T = self._made[key]
        return made


class Estimate(Struct, frozen=True):
    """`seconds` that `calls` take; `beyond_hour`: more than the limit of an hour allows.

    `limit` is the limit that slows them down, None without one.
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


class ClientSettings(Struct, frozen=True):
    """How requests are made. The first five are those of `ClientOptions`.

    rate
        None for the default: DEFAULT_WINDOWS, and no limit for a service on loopback.
    insecure_http
        Whether to send the key unencrypted to a service that is not on loopback.
    clock, sleep, jitter
        Monotonic seconds, waiting, and a number from 0 to 1: parameters, so that no test waits.
    limiters
        The calls of this process, so that connections with one key share its limit.
    readings
        What the environments of a report read once, None where each reading is its own.
    """

    parallelism: int = 8
    rate: tuple[Window, ...] | None = None
    timeout: float = 30.0
    max_wait: float = 900.0
    retry_for: float = 300.0
    insecure_http: bool = False
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.SystemRandom().random
    limiters: Limiters = field(default_factory=Limiters)
    readings: Readings | None = None

    def changed_by(self, options: ClientOptions) -> ClientSettings:
        """Return these settings with the options that are given in their place."""
        return replace(self, **options.given())

    def windows(self, base_url: str) -> tuple[Window, ...]:
        """Return the limits of calls to a service."""
        if self.rate is not None:
            return self.rate
        return () if is_loopback(_host_of(base_url)) else DEFAULT_WINDOWS


def _host_of(base_url: str) -> str:
    try:
        return urlsplit(base_url).hostname or ""
    except ValueError:
        return ""
