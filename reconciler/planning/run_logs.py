"""Select the log entries of one run: no key of the service joins them (docs/service.md, 9)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from reconciler.model.intervals import Interval
from reconciler.model.run import LogEntry, Run
from reconciler.model.run_report import Matched

_RANGE = re.compile(r"\brange (?P<start>None|\d\S+) - (?P<end>\d\S+)")
_BEFORE = timedelta(minutes=1)
_AFTER = timedelta(minutes=5)
"""Entries are written before the run has a row, and after it has ended."""


def window_of(run: Run, now: datetime) -> Interval | None:
    """Return when a run may have logged, None if its creation is unknown."""
    if run.created_at is None:
        return None
    end = run.finished_at
    # A run that billing refused has no end, and logs once.
    if end is None:
        end = now if run.pending else run.created_at
    return Interval(run.created_at - _BEFORE, end + _AFTER)


def entries_of(run: Run, entries: Sequence[LogEntry]) -> tuple[Matched, tuple[LogEntry, ...]]:
    """Return the entries of a run among those of its time, and how they were matched.

    A message with the interval of the run shows its instance. Another run of the same interval may
    have the same message, so of several instances the one closest to the run is taken.
    """
    instances = {
        entry.instance: entry.timestamp
        for entry in entries
        if entry.instance is not None and interval_in(entry.message) == (run.start, run.end)
    }
    if run.created_at is None or not instances:
        return Matched.BY_TIME, tuple(entries)
    began = run.created_at
    first = {
        instance: min(entry.timestamp for entry in entries if entry.instance == instance)
        for instance in instances
    }
    own = min(first, key=lambda instance: abs(first[instance] - began))
    return Matched.BY_MESSAGE, tuple(entry for entry in entries if entry.instance == own)


def interval_in(message: str) -> tuple[datetime | None, datetime] | None:
    """Return the interval that a message names, None without one."""
    match = _RANGE.search(message)
    if match is None:
        return None
    try:
        start = None if match["start"] == "None" else _moment(match["start"])
        return start, _moment(match["end"])
    except ValueError:
        return None


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
