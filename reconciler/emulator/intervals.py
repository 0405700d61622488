"""When runs are due: intervals by the clock of a time zone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

_FIXED = {
    "hour": timedelta(hours=1),
    "every 5 minutes": timedelta(minutes=5),
    "every 15 minutes": timedelta(minutes=15),
}


def length_of(interval: str) -> timedelta:
    """About how much time one run covers; days and weeks vary with summer time."""
    return _FIXED.get(interval) or timedelta(days=7 if interval == "week" else 1)


def first_end_after(body: dict[str, Any], moment: datetime, zone: str) -> datetime:
    """The first end of an interval that is later than a moment, in UTC."""
    interval = body["interval"]
    if interval in _FIXED:
        step = _FIXED[interval]
        begun = moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        while begun <= moment:
            begun += step
        return begun
    local = moment.astimezone(ZoneInfo(zone))
    hour = body.get("offset_hour") or 0
    day = local.replace(hour=hour, minute=0, second=0, microsecond=0, tzinfo=None)
    if interval == "week":
        # Sunday is day 0 here, and day 6 of Python's week.
        day -= timedelta(days=(day.weekday() + 1 - (body.get("offset_day") or 0)) % 7)
    while _utc(day, zone) <= moment:
        day += length_of(interval)
    return _utc(day, zone)


def ends_between(
    body: dict[str, Any], start: datetime, end: datetime, zone: str
) -> Iterator[tuple[datetime, datetime]]:
    """Every interval whose end is later than `start` and not later than `end`: (start, end)."""
    interval = body["interval"]
    due = first_end_after(body, start, zone)
    while due <= end:
        if interval in _FIXED:
            yield due - _FIXED[interval], due
            due += _FIXED[interval]
        else:
            local = due.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
            yield _utc(local - length_of(interval), zone), due
            due = _utc(local + length_of(interval), zone)


def _utc(local: datetime, zone: str) -> datetime:
    return local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
