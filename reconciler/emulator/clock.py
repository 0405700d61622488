"""The service's own clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR, _LAST_YEAR = 1971, 9000
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
