"""The length of an interval."""

from __future__ import annotations

import re
from datetime import timedelta

from reconciler.model.values import JSON

_DAY = timedelta(days=1)
_STEPS = {"hour": timedelta(hours=1), "day": _DAY, "week": 7 * _DAY}
_MINUTES = re.compile(r"every ([1-9][0-9]{0,3}) minutes")


def step_of(interval: JSON) -> timedelta | None:
    """Return the nominal length of an interval, None if it is unknown."""
    minutes = _MINUTES.fullmatch(str(interval))
    return timedelta(minutes=int(minutes[1])) if minutes else _STEPS.get(str(interval))
