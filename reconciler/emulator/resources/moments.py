"""Moments in query parameters: ISO 8601 or relative (service.md, 7)."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

_RELATIVE = re.compile(r"-(\d{1,6})([ymwdhM])$")
_UNITS = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "M": timedelta(minutes=1),
}


def moment_of(text: str | None, now: datetime, zone: str) -> datetime | None:
    """Return the moment of a parameter, None for a parameter that is not there.

    `-7d`, `-2w`, `-1y`, `-24h` go back from now; `-1m` is a month, `-30M` are minutes. A naive
    time is one of the zone. What cannot be read is now, without an error.
    """
    if text is None:
        return None
    relative = _RELATIVE.match(text)
    try:
        if relative is not None:
            return _before(now, int(relative[1]), relative[2])
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return now
    return moment.replace(tzinfo=ZoneInfo(zone)) if moment.tzinfo is None else moment


def _before(now: datetime, number: int, unit: str) -> datetime:
    """Return the moment some units ago. Raise OverflowError or ValueError before year 1."""
    if unit in _UNITS:
        return now - number * _UNITS[unit]
    months = now.year * 12 + now.month - 1 - number * (12 if unit == "y" else 1)
    year, month = divmod(months, 12)
    day = min(now.day, monthrange(year, month + 1)[1])
    return now.replace(year=year, month=month + 1, day=day)
