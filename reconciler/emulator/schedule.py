"""Schedules: the ticks and intervals of an export (service.md, 7.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import inf
from typing import Any
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEPS = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "every 5 minutes": timedelta(minutes=5),
    "every 15 minutes": timedelta(minutes=15),
}
END_OF_TIME = datetime.max.replace(tzinfo=UTC)
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


@dataclass(frozen=True, slots=True)
class Schedule:
    """The ticks of an export: each ends an interval.

    zone
        Where days and weeks are cut, at `offset_hour` and on `offset_day` (0 is Sunday). None
        aligns every interval to the epoch in UTC: days begin at 00:00.
    works
        False for an interval that the service accepts and never runs.
    """

    interval: str
    zone: ZoneInfo | None = None
    offset_day: int = 0
    offset_hour: int = 0
    works: bool = True

    @property
    def step(self) -> timedelta:
        """Return the length of an interval. Days and weeks in a zone vary with daylight saving."""
        return _STEPS[self.interval]

    def align(self, moment: datetime) -> datetime:
        """Return the last tick that is not later than a moment."""
        return next(self._ticks(moment))

    def _ticks(self, moment: datetime) -> Iterator[datetime]:
        """Yield every tick from the last one that is not later than a moment."""
        if self._local is None:
            tick = moment - (moment - _EPOCH) % self.step
            while True:
                yield tick
                tick += self.step
        day = self.local_start(moment.astimezone(self._local))
        while _utc(day, self._local) > moment:
            day -= self.step
        while True:
            yield _utc(day, self._local)
            day += self.step

    def local_start(self, moment: datetime) -> datetime:
        """Return the start of the interval of a date, as local time without a zone."""
        day = moment.replace(hour=self.offset_hour, minute=0, second=0, microsecond=0, tzinfo=None)
        if self.interval == "week":
            day -= timedelta(days=(weekday(day) - self.offset_day) % 7)
        return day

    def on_date(self, date: datetime) -> datetime:
        """Return the tick of a date: local `offset_hour`, in UTC."""
        return _utc(date.replace(hour=self.offset_hour, tzinfo=None), self.zone or ZoneInfo("UTC"))

    def plus(self, moment: datetime, steps: int = 1) -> datetime:
        """Return the moment some intervals later, by wall clock where days are local.

        Later moments become the last possible one.
        """
        try:
            if self._local is None:
                return moment.astimezone(UTC) + steps * self.step
            local = moment.astimezone(self._local).replace(tzinfo=None)
            return _utc(local + steps * self.step, self._local)
        except OverflowError:
            return END_OF_TIME

    def tick_after(self, moment: datetime) -> datetime:
        """Return the first tick later than a moment."""
        return next(tick for tick in self._ticks(moment) if tick > moment)

    def intervals(self, after: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yield (start, end) of every interval with an end later than `after`, up to `until`."""
        if not self.works:
            return
        for start, end in pairwise(self._ticks(after)):
            if end > until:
                return
            yield start, end

    def due_after(self, moment: datetime, jitter: timedelta) -> float:
        """Return when the next run starts, in seconds since the epoch; infinity for never."""
        if not self.works:
            return inf
        return (self.tick_after(moment - jitter) + jitter).timestamp()

    def whole_steps(self, start: datetime, end: datetime) -> int:
        """Return how many whole intervals fit into a range that begins at its start."""
        steps = max(0, (end - start) // self.step - 1)
        while self.plus(start, steps + 1) <= end:
            steps += 1
        return steps

    @property
    def _local(self) -> ZoneInfo | None:
        return self.zone if self.step >= timedelta(days=1) else None


def schedule_of(body: dict[str, Any], *, local: bool, weekly: bool = True) -> Schedule:
    """Return the schedule of an export's body.

    `local`: days follow the zone and the offsets of the export. `weekly`: weeks run at all.
    """
    interval = body["interval"]
    if not local:
        return Schedule(interval, works=weekly or interval != "week")
    return Schedule(
        interval,
        zone=ZoneInfo(body.get("timezone") or "UTC"),
        offset_day=(body.get("offset_day") or 0) if interval == "week" else 0,
        offset_hour=body.get("offset_hour") or 0,
    )


def weekday(moment: datetime) -> int:
    """Return the day of the week; 0 is Sunday."""
    return (moment.weekday() + 1) % 7


def _utc(local: datetime, zone: ZoneInfo) -> datetime:
    return local.replace(tzinfo=zone).astimezone(UTC)
