"""Decide when a service is given up. No I/O."""

from __future__ import annotations

from msgspec import Struct

from reconciler.client.retry import OUTAGE, UNREACHED_FOR
from reconciler.errors import ServiceError, Unavailable

EQUAL_FAILURES = 10
"""After so many equal failures in a row the next request would fail as well."""


class Breaker(Struct):
    """Watches the attempts and the ends of all requests. `reason` says why no more are sent."""

    retry_for: float
    reason: str | None = None
    _answered: bool = False
    _silent_since: float | None = None
    _failure: object = None
    _failures: int = 0

    @property
    def patience(self) -> float:
        """Return the seconds for which failed requests are repeated."""
        return self.retry_for if self._answered else min(self.retry_for, UNREACHED_FOR)

    def attempted(self, error: ServiceError | None, *, began: float, now: float) -> None:
        """Note how an attempt ended, None for a success."""
        if not isinstance(error, Unavailable) or error.status not in OUTAGE:
            self._answered, self._silent_since = True, None
            return
        self._answered = self._answered or error.status is not None
        self._silent_since = began if self._silent_since is None else self._silent_since
        if now - self._silent_since > self.patience:
            self.give_up(f"no usable response for {now - self._silent_since:.0f} s")

    def ended(self, error: ServiceError | None) -> None:
        """Note how a request ended, repeats included; None for a success."""
        failure: object = None
        if error is not None:
            unreached = error.status in OUTAGE
            failure = "no response" if unreached else error.status
        self._failures = self._failures + 1 if failure == self._failure else 1
        self._failure = failure
        equal = failure in (401, 403, "no response")
        if equal and self._failures >= EQUAL_FAILURES:
            self.give_up(f"{self._failures} requests in a row failed ({failure})")

    def give_up(self, reason: str) -> None:
        """Send no more requests."""
        self.reason = self.reason or reason
