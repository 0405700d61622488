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
    ended, running = window_of(RUN, now), window_of(Run("r", "Running", None, NOON, NOON), now)
    billing = window_of(Run("r", "FailedBilling", None, NOON, NOON), now)
    assert ended is not None
    assert running is not None
    assert billing is not None
    assert ended.end < running.end
    assert running.end > now
    assert billing.end < ended.end
    assert window_of(Run("r", "Running", None, NOON), now) is None
