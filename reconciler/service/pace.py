"""When requests are sent: settings, the pace of a key in sliding windows, waits, and stops."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from math import inf
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.errors import Interrupted
from reconciler.model.event import Event, Waiting
from reconciler.model.settings import ClientOptions, Window, is_loopback

HOUR = 3_600.0
_MARGIN = 0.1
"""Seconds that a window is longer here, since calls may take differently long to arrive."""
_SHOWN = 2.0
"""Waits of more seconds are reported."""
GRACE = 5.0
"""Seconds that a stop leaves to requests in flight."""
_Result = TypeVar("_Result")
DEFAULT_WINDOWS = (Window(460, 60.0), Window(4_600, 3_600.0))
"""A little below 480 a minute and 4,800 an hour, since others may use the key as well."""


class Pace(Struct):
    """The pace of one key, which all connections of a process with this key share.

    A call counts from when it is sent.
    """

    windows: tuple[Window, ...] = ()
    resumes: float = -inf
    """Nothing is sent before, in seconds of the clock."""
    reason: str = ""
    failures: int = 0
    """Counts the pauses since the last success."""
    _sent: deque[float] = field(default_factory=deque)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def delay(self, now: float) -> tuple[float, str]:
        """Return the seconds until one more call may be sent, and the reason for them."""
        delays = [(self.resumes - now, self.reason)]
        delays += [
            (self._sent[-window.calls] + window.seconds + _MARGIN - now, f"rate limit ({window})")
            for window in self.windows
            if len(self._sent) >= window.calls
        ]
        return max(delays)

    async def turn(
        self, clock: Callable[[], float], sleep: Callable[[float, str], Awaitable[None]]
    ) -> float:
        """Wait for the turn of one call, first come first served. Return the time of it."""
        async with self._turn:
            while (delay := self.delay(clock()))[0] > 0:
                await sleep(*delay)
            now = clock()
            self._sent.append(now)
            longest = max((window.seconds for window in self.windows), default=0.0)
            while self._sent[0] + longest + _MARGIN < now:
                self._sent.popleft()
            return now

    def pause(self, until: float, reason: str) -> None:
        """Send nothing until a time."""
        if until >= self.resumes:
            self.resumes, self.reason = until, reason

    def estimate(self, calls: int, *, now: float, interval: float) -> Estimate:
        """Return how long calls take that are sent one after another, as fast as is allowed.

        `interval` is the time between two calls without limits, in seconds.
        """
        time, beyond = now, False
        slowest: Window | None = None
        sent = list(self._sent)
        for _ in range(calls):
            time += interval
            for window in self.windows:
                seconds = window.seconds + _MARGIN
                if len(sent) >= window.calls and sent[-window.calls] + seconds > time:
                    time, slowest = sent[-window.calls] + seconds, window
                    beyond = beyond or window.seconds >= HOUR
            sent.append(time)
        return Estimate(calls, time - now, beyond, slowest)


class Estimate(Struct, frozen=True):
    """The `seconds` that `calls` take."""

    calls: int
    seconds: float
    beyond_hour: bool
    """Whether they are more than the limit of an hour allows."""
    limit: Window | None = None
    """The limit that slows them down, None without one."""


class ClientSettings(Struct, frozen=True):
    """How requests are made. The first six are those of `ClientOptions`."""

    parallelism: int = 8
    rate: tuple[Window, ...] | None = None
    """None for the default: DEFAULT_WINDOWS, and no limit for a service on loopback."""
    timeout: float = 30.0
    max_wait: float = 900.0
    retry_for: float = 300.0
    insecure_http: bool = False
    """Whether to send the key unencrypted to a service that is not on loopback."""
    clock: Callable[[], float] = monotonic
    """Monotonic seconds: a parameter, as the next two, so that no test waits."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.SystemRandom().random
    """A number from 0 to 1."""
    paces: dict[bytes, Pace] = field(default_factory=dict)
    """The paces of this process by key, so that connections with one key share its limit."""
    sent: list[str] = field(default_factory=list)
    """The requests of this process that may have changed something, refused ones included."""

    def changed_by(self, options: ClientOptions) -> ClientSettings:
        """Return these settings with the options that are given in their place."""
        return replace(self, **options.given())

    def windows(self, base_url: str) -> tuple[Window, ...]:
        """Return the limits of calls to a service."""
        if self.rate is not None:
            return self.rate
        return () if is_loopback(urlsplit(base_url).hostname or "") else DEFAULT_WINDOWS


class Stop(Struct, frozen=True):
    """Whether to stop."""

    requested: asyncio.Event = field(default_factory=asyncio.Event)
    """Nothing new is sent and waits end; requests in flight get a few seconds."""
    forced: asyncio.Event = field(default_factory=asyncio.Event)
    """Requests in flight are abandoned."""

    def request(self) -> None:
        """Request a stop; the second time force it."""
        if self.requested.is_set():
            self.forced.set()
        self.requested.set()


class Waits(Struct):
    """The waits and deadlines of a transport. Its tasks start with the first of them."""

    stop: Stop
    settings: ClientSettings
    emit: Callable[[Event], None]
    _deadlines: set[asyncio.Timeout] = field(default_factory=set)
    _tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    @property
    def stopped(self) -> bool:
        """Whether a stop was requested."""
        return self.stop.requested.is_set()

    def check(self) -> None:
        """Raise Interrupted after a stop."""
        if self.stopped:
            raise Interrupted("interrupted; this request had no effect")

    async def sleep(self, seconds: float, reason: str, change_id: str | None) -> None:
        """Wait, and report it if it takes long. Raises Interrupted."""
        self.check()
        if seconds > _SHOWN:
            self.emit(Waiting(round(seconds, 3), reason, change_id))
        await self.wait(self.settings.sleep(seconds))

    async def wait(self, awaited: Awaitable[object]) -> None:
        """Wait for something. Raise Interrupted at a stop, unless it ended before."""
        task = asyncio.ensure_future(awaited)
        try:
            await asyncio.wait({task, self._watch()[0]}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
            else:
                self.check()
        finally:
            task.cancel()

    @asynccontextmanager
    async def deadline(self, seconds: float) -> AsyncIterator[None]:
        """Limit the time of a block, also by a stop. Raise TimeoutError."""
        self._watch()
        async with asyncio.timeout(seconds) as timeout:
            self._deadlines.add(timeout)
            try:
                yield
            finally:
                self._deadlines.discard(timeout)

    def close(self) -> None:
        """End the tasks."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()

    def _watch(self) -> list[asyncio.Task[Any]]:
        if not self._tasks:
            self._tasks.append(asyncio.ensure_future(self.stop.requested.wait()))
            self._tasks.append(asyncio.ensure_future(self._shorten_deadlines()))
        return self._tasks

    async def _shorten_deadlines(self) -> None:
        now = asyncio.get_running_loop().time
        await self.stop.requested.wait()
        self._shorten(now() + GRACE)
        await self.stop.forced.wait()
        self._shorten(now())

    def _shorten(self, end: float) -> None:
        for timeout in self._deadlines:
            if not timeout.expired():
                timeout.reschedule(min(timeout.when() or end, end))


async def together(calls: Iterable[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """Return the results of calls, in their order.

    The first exception cancels the calls that still run, and is raised.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
