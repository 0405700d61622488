"""Times in options, and schedules of exports: ticks, and intervals (service.md, 7.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from reconciler.errors import BadUsage
from reconciler.model.kind import SINCE_2026, Dialect
from reconciler.model.schemas import Instant, instant_of
from reconciler.model.text import quoted
from reconciler.model.values import JSON, JSONObject

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

Moment: TypeAlias = datetime | timedelta
"""A time, or how long ago it was."""
_DURATION = re.compile(r"([0-9]{1,5})(m|h|d|w)")
_UNITS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DAY = timedelta(days=1)
_STEPS = {"hour": timedelta(hours=1), "day": _DAY, "week": 7 * _DAY}
_MINUTES = re.compile(r"every ([1-9][0-9]{0,3}) minutes")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_JITTER = {
    "hour": timedelta(minutes=15),
    "day": timedelta(minutes=20),
    "week": timedelta(minutes=30),
}
_GRACE = timedelta(minutes=5)
"""How long a run may take to appear after its delayed start."""
_HOURS = 24


def rough_duration(duration: timedelta) -> str:
    """Return a duration, rounded down: `< 1 min`, `40 min`, `1 h 40 min`, `12 h`, `3 d`."""
    hours, minutes = divmod(int(duration / timedelta(minutes=1)), 60)
    if not hours:
        return f"{minutes} min" if minutes else "< 1 min"
    if hours < 10 and minutes:
        return f"{hours} h {minutes} min"
    return f"{hours} h" if hours < 48 else f"{hours // 24} d"


def moment_as_option(value: datetime) -> str:
    """Return a time as options take it."""
    return str(Instant().canonical(value.replace(microsecond=0)))


def time_as_shown(text: str) -> str:
    """Return the time of a text as options take it, text that is no time as it is."""
    with suppress(ValueError):
        return moment_as_option(instant_of(text))
    return text


def duration_of(text: str) -> timedelta:
    """Return the duration of --since, such as `90m`, `6h`, `7d` or `2w`. Raises BadUsage."""
    match = _DURATION.fullmatch(text)
    if match is None or not int(match[1]):
        raise BadUsage(
            f"invalid duration {quoted(text)} in --since", hint="write it like 90m, 6h, 7d or 2w"
        )
    return int(match[1]) * _UNITS[match[2]]


def moment_of(text: str, *, option: str, zone: tzinfo = UTC) -> datetime:
    """Return an ISO 8601 time in UTC. Without an offset it is in `zone`. Raises BadUsage."""
    try:
        moment = datetime.fromisoformat(text)
        return instant_of((moment if moment.tzinfo else moment.replace(tzinfo=zone)).isoformat())
    except ValueError:
        raise BadUsage(
            f"invalid time {quoted(text)} in {option}", hint="write it like 2026-01-31T00:00:00Z"
        ) from None


def window_at(
    now: datetime, first: Moment | None, last: datetime | None
) -> tuple[datetime | None, datetime | None]:
    """Return the start and the end of a range: `first` may be how long before the end it is.

    Raises BadUsage for an empty range.
    """
    end = now if last is None else last
    start = end - first if isinstance(first, timedelta) else first
    if start is not None and start >= end:
        raise BadUsage("empty time range", hint="set --from to a time before --to and now")
    return start, last


def step_of(interval: JSON) -> timedelta | None:
    """Return the nominal length of an interval, None if it is unknown."""
    minutes = _MINUTES.fullmatch(str(interval))
    return timedelta(minutes=int(minutes[1])) if minutes else _STEPS.get(str(interval))


class UnknownSchedule(ValueError):
    """The schedule of an export cannot be computed, for example because of its time zone."""


class Interval(Struct, frozen=True, order=True):
    """A range of time. The end is exclusive, and the tick that runs the interval."""

    start: datetime
    end: datetime

    def overlaps(self, other: Interval) -> bool:
        """Return whether the two have time in common."""
        return self.start < other.end and other.start < self.end


class Schedule(Struct, frozen=True):
    """The ticks of an export."""

    interval: str
    step: timedelta
    zone: ZoneInfo | None = None
    """Where days and weeks begin at `offset_hour`, on `offset_day` (0 is Sunday). None aligns every
    interval to the epoch in UTC."""
    offset_day: int = 0
    offset_hour: int = 0
    created_at: datetime | None = None
    """Ticks are after it, None for an open end."""
    start_at: datetime | None = None
    """Ticks are not before it, None for an open end."""
    end_at: datetime | None = None
    """Ticks are not after it, None for an open end."""
    paused: bool = False
    last_paused_at: datetime | None = None
    """When the last pause began, None if that is unknown. It stays after the pause."""
    dialect: Dialect | None = None

    @classmethod
    def of(cls, body: JSONObject, dialect: Dialect | None) -> Schedule:
        """Return the schedule of the body of a live export. Raises UnknownSchedule."""
        interval = body.get("interval")
        step = step_of(interval)
        if step is None:
            raise UnknownSchedule(f"unknown interval {interval!r}")
        if dialect is Dialect.V2025 and interval == "week":
            # ValueError in the worker (service.md, 7.3).
            raise UnknownSchedule("the server never runs exports with interval 'week'")
        local = dialect in SINCE_2026 and step >= _DAY
        return cls(
            str(interval),
            step,
            zone=_zone(body) if local else None,
            offset_day=_offset(body, "offset_day", 7) if interval == "week" else 0,
            offset_hour=_offset(body, "offset_hour", _HOURS),
            created_at=_moment(body, "created_at"),
            start_at=_moment(body, "start_at"),
            end_at=_moment(body, "end_at"),
            paused=body.get("paused") is True,
            last_paused_at=_moment(body, "last_paused_at"),
            dialect=dialect,
        )

    # The grid, without bounds

    def floor(self, moment: datetime) -> datetime:
        """Return the last tick of the grid that is not after a moment."""
        return next(self._ticks(moment))

    def ceiling(self, moment: datetime) -> datetime:
        """Return the first tick of the grid that is not before a moment."""
        return next(tick for tick in self._ticks(moment) if tick >= moment)

    def grid(self, first: datetime, last: datetime) -> Iterator[Interval]:
        """Yield the intervals that end after `first`, and not after `last`."""
        for start, end in pairwise(self._ticks(first)):
            if end > last:
                return
            yield Interval(start, end)

    def outward(self, start: datetime, end: datetime) -> Interval:
        """Return the smallest range of whole intervals that contains a range."""
        return Interval(self.floor(start), self.ceiling(end))

    # Ticks that run

    def expected(self, first: datetime, last: datetime) -> Iterator[Interval]:
        """Yield the intervals that end after `first` and not after `last`, and are to be run.

        Those of a pause are among them. None ends before the export was created, or outside of
        its `start_at` and `end_at`.
        """
        for interval in self.grid(max(filter(None, (first, self.created_at))), last):
            if self.end_at is not None and interval.end > self.end_at:
                return
            if self.start_at is None or interval.end >= self.start_at:
                yield interval

    def due_after(self, tick: datetime) -> datetime:
        """Return when the run of a tick has begun, unless it is late.

        Servers delay each run by up to a part of its interval (service.md, 7.3).
        """
        if self.dialect in SINCE_2026:
            return tick + _JITTER.get(self.interval, self.step / 5) + _GRACE
        return tick + self.step / 6 + _GRACE

    def last_due(self, now: datetime) -> Interval | None:
        """Return the last interval whose run has begun unless it is late, None without one."""
        delay = self.due_after(now) - now
        end = now - delay if self.end_at is None else min(self.end_at, now - delay)
        # A day with a change of daylight saving has 25 hours.
        return max(self.expected(end - self.step - timedelta(hours=2), end), default=None)

    def next_tick(self, now: datetime) -> datetime | None:
        """Return the next tick that runs, None if no tick is left or the export is paused."""
        if self.paused:
            return None
        first = now if self.start_at is None else max(now, self.start_at - timedelta.resolution)
        tick = next(tick for tick in self._ticks(first) if tick > first)
        return tick if self.end_at is None or tick <= self.end_at else None

    def _ticks(self, moment: datetime) -> Iterator[datetime]:
        """Yield the ticks of the grid from the last one that is not after a moment."""
        if self.zone is None:
            tick = moment.astimezone(UTC) - (moment - _EPOCH) % self.step
            while True:
                yield tick
                tick += self.step
        # By wall clock: a day of a change of daylight saving has 23 or 25 hours.
        local = self._local_start(moment.astimezone(self.zone))
        while _utc(local, self.zone) > moment:
            local -= self.step
        last = None
        while True:
            tick = _utc(local, self.zone)
            # A date that a zone skips has no interval.
            if tick != last:
                yield tick
            last = tick
            local += self.step

    def _local_start(self, moment: datetime) -> datetime:
        day = moment.replace(
            hour=self.offset_hour, minute=0, second=0, microsecond=0, tzinfo=None, fold=0
        )
        if self.interval == "week":
            day -= timedelta(days=(day.isoweekday() - self.offset_day) % 7)
        return day


def bound(schedule: Schedule | None, text: str, *, option: str) -> datetime:
    """Return the time that an option names. Raises BadUsage.

    A date of a schedule with days of a time zone is the begin of that day there.
    """
    if schedule is None or schedule.zone is None or not _DATE.fullmatch(text):
        return moment_of(text, option=option)
    return moment_of(f"{text}T{schedule.offset_hour:02}:00", option=option, zone=schedule.zone)


def _utc(local: datetime, zone: ZoneInfo) -> datetime:
    return local.replace(tzinfo=zone).astimezone(UTC)


def _zone(body: JSONObject) -> ZoneInfo:
    # Consequences of plans use this module, and no zones: importing this takes 2 ms.
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    name = body.get("timezone") or "UTC"
    try:
        return ZoneInfo(str(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UnknownSchedule(f"unknown time zone {name!r}") from None


def _offset(body: JSONObject, name: str, limit: int) -> int:
    value = body.get(name)
    number = value if isinstance(value, int) and not isinstance(value, bool) else -1
    return number if 0 <= number < limit else 0


def _moment(body: JSONObject, name: str) -> datetime | None:
    value = body.get(name)
    try:
        return instant_of(value) if isinstance(value, str) else None
    except ValueError:
        raise UnknownSchedule(f"{name} is no time: {value!r}") from None
