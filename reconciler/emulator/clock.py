"""The service's own clock, and work that takes effect later than its answer."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import count

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR, _LAST_YEAR = 1971, 9000
Work = Callable[[], Awaitable[object]]

# Thousands of exports share their ticks: most conversions repeat.
_remembered = lru_cache(maxsize=8_192)


class Clock:
    """Real time plus an offset that the switchboard can move."""

    def __init__(self) -> None:
        self.offset = timedelta()
        self._last: datetime | None = None

    def now(self) -> datetime:
        """Return the current moment, strictly later than any returned since the last move."""
        moment = datetime.now(tz=UTC) + self.offset  # noqa: TID251 - a service has a clock
        if self._last is not None and self._last - timedelta(seconds=1) < moment <= self._last:
            moment = self._last + timedelta(microseconds=1)
        self._last = moment
        return moment

    def move(self, by: timedelta) -> None:
        """Move the clock forwards or backwards. Raise OverflowError outside of 1971 to 9000.

        Everything that happens then must still be a date.
        """
        if not _FIRST_YEAR <= (self.now() + by).year <= _LAST_YEAR:
            raise OverflowError
        self.offset += by


@_remembered
def iso(moment: datetime) -> str:
    """Return UTC with `Z`, microseconds only when not zero (service.md, 1.1)."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


@_remembered
def parsed(text: str) -> datetime:
    """Return an ISO 8601 moment; naive means UTC. Raise ValueError."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


@_remembered
def stamp(moment: datetime) -> int:
    """Return microseconds since the epoch: moments that the database can compare."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def unstamp(microseconds: int) -> datetime:
    """Return the moment of a stamp."""
    return _EPOCH + timedelta(microseconds=microseconds)


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
