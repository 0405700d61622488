"""The statuses of runs, as the API names them (service.md 7)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

COMPLETED = "Completed"
BILLING = "FailedBilling"
COUNTED_FAILURE = "Failed"
"""The status of a run that counts for an automatic pause."""
FAILURES_OF_A_PAUSE = 3
"""The least number of failures after which servers pause an export (service.md, 14)."""


def failures_in_a_row(statuses: Iterable[str]) -> int:
    """Return how many of the newest runs failed in a way that counts for an automatic pause."""
    return sum(1 for _ in takewhile(COUNTED_FAILURE.__eq__, statuses))
