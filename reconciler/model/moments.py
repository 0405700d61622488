"""Times and durations: as people write them in options, and the intervals of schedules."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from reconciler.errors import BadUsage
from reconciler.model.text import quoted
from reconciler.model.values import JSON

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


def moment_or_ago(text: str, now: datetime, *, option: str) -> datetime:
    """Return a time, or the moment that is a duration before now. Raises BadUsage."""
    if _DURATION.fullmatch(text):
        return now - duration_of(text, option=option)
    return moment_of(text, option=option)


def is_date(text: str) -> bool:
    """Return whether a text is a date without a time."""
    return _DATE.fullmatch(text) is not None


def step_of(interval: JSON) -> timedelta | None:
    """Return the nominal length of an interval, None if it is unknown."""
    minutes = _MINUTES.fullmatch(str(interval))
    return timedelta(minutes=int(minutes[1])) if minutes else _STEPS.get(str(interval))
