"""The log entries of one run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.run import LogEntry, Matched, Run
from reconciler.operations.logs import entries_of, interval_in, window_of

NOON = datetime(2026, 10, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
RANGE = "2026-10-20T11:00:00+00:00 - 2026-10-20T12:00:00+00:00"
RUN = Run("r", "Completed", NOON - HOUR, NOON, NOON, NOON + timedelta(minutes=1))


def entry(minutes: float, message: str, instance: str | None = "i") -> LogEntry:
    return LogEntry(NOON + timedelta(minutes=minutes), "INFO", message, instance)


@pytest.mark.parametrize(
    ("message", "interval"),
    [
        (f"Batch export for range {RANGE} was cancelled", (NOON - HOUR, NOON)),
        (f"Exporting data for range {RANGE}", (NOON - HOUR, NOON)),
        ("Batch export for range None - 2026-10-20T12:00:00+00:00 failed", (None, NOON)),
        ("Batch export for range 1 - 2 failed", None),
        ("The range is large", None),
    ],
)
def test_the_interval_in_a_message(message: str, interval: object) -> None:
    assert interval_in(message) == interval


def test_all_entries_of_the_instance_with_the_interval_are_selected() -> None:
    own = [entry(0, "Starting"), entry(1, f"Batch export for range {RANGE} was cancelled")]
    other = [entry(0, "Starting", "j"), entry(0.5, "Backfilling", None)]
    assert entries_of(RUN, [*own, *other]) == (Matched.BY_MESSAGE, tuple(own))


def test_of_two_instances_of_the_interval_the_closest_to_the_run_is_taken() -> None:
    message = f"Batch export for range {RANGE} was cancelled"
    own, later = entry(0.1, message), entry(3, message, "j")
    assert entries_of(RUN, [later, own]) == (Matched.BY_MESSAGE, (own,))


def test_without_a_message_with_the_interval_the_time_decides() -> None:
    entries = [entry(0, "No data."), entry(0.5, "Batch export for range 1 - 2 failed", "j")]
    assert entries_of(RUN, entries) == (Matched.BY_TIME, tuple(entries))


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
