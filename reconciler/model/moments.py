"""Times and durations: as people write them in options, and the intervals of schedules."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TypeAlias

from reconciler.errors import BadUsage
from reconciler.model.field_types import Instant
from reconciler.model.text import quoted
from reconciler.model.values import JSON

_DURATION = re.compile(r"([0-9]{1,5})(m|h|d|w)")
_UNITS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
Moment: TypeAlias = datetime | timedelta
"""A time, or how long ago it was."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DAY = timedelta(days=1)
_STEPS = {"hour": timedelta(hours=1), "day": _DAY, "week": 7 * _DAY}
_MINUTES = re.compile(r"every ([1-9][0-9]{0,3}) minutes")


def rough_duration(duration: timedelta) -> str:
    """Return a duration, rounded down: `40 min`, `1 h 40 min`, `12 h`, `3 d`."""
    hours, minutes = divmod(int(duration / timedelta(minutes=1)), 60)
    if not hours:
        return f"{minutes} min"
    if hours < 10 and minutes:
        return f"{hours} h {minutes} min"
    return f"{hours} h" if hours < 48 else f"{hours // 24} d"


def moment_as_option(value: datetime) -> str:
    """Return a time as options take it."""
    return str(Instant().canonical(value.replace(microsecond=0)))


def duration_of(text: str, *, option: str) -> timedelta:
    """Return a duration such as `90m`, `6h`, `7d` or `2w`. Raises BadUsage."""
    match = _DURATION.fullmatch(text)
    if match is None or not int(match[1]):
        raise BadUsage(
            f"invalid duration {quoted(text)} in {option}", hint="write it like 90m, 6h, 7d or 2w"
        )
    return int(match[1]) * _UNITS[match[2]]


def moment_of(text: str, *, option: str, zone: tzinfo = UTC) -> datetime:
    """Return an ISO 8601 time in UTC. Without an offset it is in `zone`. Raises BadUsage."""
    try:
        moment = datetime.fromisoformat(text)
        return (moment.replace(tzinfo=zone) if moment.tzinfo is None else moment).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadUsage(
            f"invalid time {quoted(text)} in {option}", hint="write it like 2026-01-31T00:00:00Z"
        ) from None


def moment_or_ago(text: str, *, option: str) -> Moment:
    """Return a time or a duration. Raises BadUsage."""
    read = duration_of if _DURATION.fullmatch(text) else moment_of
    return read(text, option=option)


def window_at(
    now: datetime, first: Moment | None, last: Moment | None
) -> tuple[datetime | None, datetime | None]:
    """Return the times of --since and --until. Raises BadUsage for an empty range."""
    start, end = (now - it if isinstance(it, timedelta) else it for it in (first, last))
    if start is not None and end is not None and start >= end:
        raise BadUsage("empty time range", hint="set --since to a time before --until")
    return start, end


def is_date(text: str) -> bool:
    """Return whether a text is a date without a time."""
    return _DATE.fullmatch(text) is not None


def step_of(interval: JSON) -> timedelta | None:
    """Return the nominal length of an interval, None if it is unknown."""
    minutes = _MINUTES.fullmatch(str(interval))
    return timedelta(minutes=int(minutes[1])) if minutes else _STEPS.get(str(interval))
