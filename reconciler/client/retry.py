"""Decide whether a failed request is repeated, when, and what its last failure means. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from reconciler.errors import AmbiguousOutcome, ServiceError, Throttled, Unavailable
from reconciler.model.request import Repeat, Request

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds before the second attempt, and the limit up to which they double."""
THROTTLED_PAUSE = 30.0
"""Seconds after the first 429 without `Retry-After`; they double, too."""
UNREACHED_FOR = 5.0
"""Seconds for which a service is tried that has not answered any request of this run yet."""

OUTAGE = frozenset({None, 502, 503, 504, *range(520, 525)})
"""Statuses of a service that does not answer, None for no response."""
_TRANSIENT = OUTAGE | {408, 500}
_READINGS = 3
"""How often a response is read that is no JSON, such as the page of a proxy."""

Failure: TypeAlias = Throttled | Unavailable


def concerns_all(error: Failure) -> bool:
    """Return whether other requests would fail as well, so that all have to wait."""
    if isinstance(error, Throttled):
        return error.code in (None, "throttled")
    return error.status in (None, 503)


def may_repeat(request: Request, error: Failure, *, attempt: int) -> bool:
    """Return whether a repeat can't apply a change twice and may succeed."""
    if isinstance(error, Throttled) or not error.sent:
        return True
    if request.repeat is not Repeat.SAFE:
        return False
    unreadable = error.status is not None and error.status < 400
    return attempt < _READINGS if unreadable else error.status in _TRANSIENT


def pause(failures: int, error: Failure, *, jitter: Callable[[], float]) -> float:
    """Return the seconds to wait after so many failures in a row, counted from 1.

    `Retry-After` is honoured in full, since requests before its end count against the limit. A
    service that asks for no time again and again gets the pauses of other failures.
    """
    doubled = float(2 ** min(failures - 1, 20))
    growing = min(FIRST_PAUSE * doubled, LONGEST_PAUSE) * (0.5 + jitter() / 2)
    if error.retry_after is not None:
        return max(error.retry_after + jitter(), growing)
    return THROTTLED_PAUSE * doubled + jitter() if isinstance(error, Throttled) else growing


class Attempts(Struct):
    """The attempts of one request so far. Times are monotonic seconds.

    began, sent
        When the first and the last one were sent.
    unclear
        Whether one before the last may have taken effect although it failed.
    pause
        The seconds to wait after the last one.
    """

    request: Request
    began: float = 0.0
    sent: float = 0.0
    count: int = 0
    unclear: bool = False
    pause: float = 0.0
    _last_unclear: bool = False
    _failing_since: float | None = None
    _throttled: float = 0.0

    def begin(self, now: float) -> None:
        """Note that an attempt begins."""
        self.began = self.began if self.count else now
        self.sent = now
        self.count += 1
        self.unclear = self.may_have_applied

    @property
    def may_have_applied(self) -> bool:
        """Whether the request may have taken effect although it failed."""
        return self.request.method != "GET" and (self.unclear or self._last_unclear)

    def failed(self, error: ServiceError) -> None:
        """Note how the last attempt failed."""
        self._last_unclear = isinstance(error, Unavailable) and error.sent
        if not isinstance(error, Unavailable):
            self._failing_since = None
        elif self._failing_since is None:
            self._failing_since = self.sent
        error.attempts, error.unclear = self.count, self.unclear

    def wait(self, error: Failure, seconds: float, *, max_wait: float) -> bool:
        """Note a pause. Return whether it is not longer than the service may ask for."""
        self.pause = seconds
        asked = 0.0
        if isinstance(error, Throttled):
            self._throttled += seconds
            asked = self._throttled
        elif error.retry_after is not None:
            asked = seconds
        return asked <= max_wait

    def in_time(self, error: Failure, *, now: float, retry_for: float) -> bool:
        """Return whether the next attempt would begin early enough."""
        if self._failing_since is None:
            return True
        pause = 0.0 if error.retry_after is not None else self.pause
        return now - self._failing_since + pause <= retry_for

    def final(self, error: Failure, *, now: float) -> ServiceError:
        """Return what the last failure means: an unknown outcome of a write, if one is unclear."""
        message = error.message.rstrip(".")
        if self.count > 1:
            message += f" (after {self.count} attempts in {now - self.began:.0f} s)"
        if not self.may_have_applied:
            error.message, error.args = message, (message,)
            return error
        # An attempt that was interrupted counts, too.
        error.attempts = self.count
        return AmbiguousOutcome.after(
            error, f"{message}; outcome unknown, the request may have taken effect"
        )
