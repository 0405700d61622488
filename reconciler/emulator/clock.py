"""The service's own clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class Clock:
    """Real time plus an offset that the switchboard can move."""

    def __init__(self) -> None:
        self.offset = timedelta()
        self._last: datetime | None = None

    def now(self) -> datetime:
        """The current moment, strictly later than any that was told since the last move."""
        moment = datetime.now(tz=UTC) + self.offset  # noqa: TID251 - a service has a clock
        if self._last is not None and self._last - timedelta(seconds=1) < moment <= self._last:
            moment = self._last + timedelta(microseconds=1)
        self._last = moment
        return moment

    def move(self, by: timedelta) -> None:
        """Move it, back or forth. Raises OverflowError outside of what dates can hold."""
        _ = self.now() + by
        self.offset += by


def iso(moment: datetime) -> str:
    """UTC with `Z`, microseconds only when not zero (service-facts 1.1)."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parsed(text: str) -> datetime:
    """An ISO 8601 moment; naive means UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
