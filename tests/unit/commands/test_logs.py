"""The log entries of one run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reconciler.commands.logs import window_of
from reconciler.model.run import Run

NOON = datetime(2026, 10, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
RUN = Run("r", "Completed", NOON - HOUR, NOON, NOON, NOON + timedelta(minutes=1))


def test_the_window_of_a_run_ends_with_it_or_now() -> None:
    now = NOON + 5 * HOUR
    runs = (RUN, *(Run("r", status, None, NOON, NOON) for status in ("Running", "FailedBilling")))
    ended, running, billing = (window.end for run in runs if (window := window_of(run, now)))
    assert billing < ended < now < running
    assert window_of(Run("r", "Running", None, NOON), now) is None
