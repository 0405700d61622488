"""Decide whether a failed request is repeated, when, and what its last failure means. No I/O."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.errors import AmbiguousOutcome, ServiceError, Throttled, Unavailable
from reconciler.model.request import Repeat, Request

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds before the second attempt, and the limit up to which they double."""

_TRANSIENT = frozenset({None, 502, 503, 504})


def may_repeat(request: Request, error: Throttled | Unavailable) -> bool:
    """Return whether a repeat can't apply a change twice and may succeed."""
    if isinstance(error, Throttled):
        return error.code not in request.final_codes
    if not error.sent:
        return True
    return request.repeat is Repeat.SAFE and error.status in _TRANSIENT


def pause(attempt: int, error: ServiceError, *, jitter: Callable[[], float]) -> float:
    """Return the seconds to wait after an attempt, counted from 1.

    `Retry-After` is honoured in full, since requests before its end count against the limit.
    """
    if error.retry_after is not None:
        return error.retry_after + jitter()
    longest = min(FIRST_PAUSE * float(2 ** (attempt - 1)), LONGEST_PAUSE)
    return longest * (0.5 + jitter() / 2)


def final_error(request: Request, error: Throttled | Unavailable) -> ServiceError:
    """Return what the last failure means: an unknown outcome if a repeat is not safe."""
    not_applied = isinstance(error, Throttled) or not error.sent
    if request.repeat is Repeat.SAFE or not_applied:
        return error
    return AmbiguousOutcome(
        f"{error.message.rstrip('.')}; outcome unknown, the request may have taken effect",
        hint=error.hint,
        status=error.status,
        code=error.code,
    )
