"""The service's own clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class Clock:
    """Real time plus an offset that the switchboard can move. Never goes back by itself."""

    def __init__(self) -> None:
        self.offset = timedelta()
        self._last = datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime:
        """The current moment, strictly later than any that was told before."""
        moment = datetime.now(tz=UTC) + self.offset  # noqa: TID251 - a service has a clock
        if moment <= self._last:
            moment = self._last + timedelta(microseconds=1)
        self._last = moment
        return moment


def iso(moment: datetime) -> str:
    """UTC with `Z`, microseconds only when not zero (service-facts 1.1)."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parsed(text: str) -> datetime:
    """An ISO 8601 moment; naive means UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
