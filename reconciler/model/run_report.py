"""Runs and log entries of one object, as `runs` and `logs` show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.run import LogEntry, LogLevel, Run

STATUSES = (
    *("Starting", "Running", "Completed", "Failed", "FailedRetryable", "FailedBilling"),
    *("Cancelled", "ContinuedAsNew", "Terminated", "TimedOut"),
)
"""The statuses of a run (docs/service.md, 7.1)."""
LEVELS = (LogLevel.DEBUG.value, "LOG", LogLevel.INFO.value, LogLevel.WARNING.value, "ERROR")
"""The levels of log entries, the least important first (docs/service.md, 3)."""
NO_END = frozenset({"FailedBilling"})
"""Statuses that are final although servers give no end of the run (docs/service.md, 15.62)."""


class RunOrder(StrEnum):
    """By what runs are ordered, the newest first. Runs without a start have no interval."""

    CREATED = "created"
    INTERVAL = "interval"


class Subject(Struct, frozen=True):
    """The object whose runs or logs are shown. Texts are those of the service, unescaped."""

    environment: str
    address: Address
    name: str
    parent_name: str | None = None
    page: str | None = None


class RunReport(Struct, frozen=True):
    """Runs, the newest first. `detail`: one run was asked for.

    more
        Whether there are further runs that were not read.
    hides_unbounded
        Whether the server leaves out runs without a start.
    """

    subject: Subject
    runs: tuple[Run, ...]
    more: bool = False
    detail: bool = False
    hides_unbounded: bool = False

    @property
    def settled(self) -> frozenset[str]:
        """The ids of the runs that failed, and whose interval another run exported."""
        exported = {_interval(run) for run in self.runs if run.completed}
        return frozenset(run.id for run in self.runs if run.failed and _interval(run) in exported)


class RunChange(Struct, frozen=True):
    """A run that is new, or has another status than before."""

    run: Run
    before: str | None = None


class Matched(StrEnum):
    """How the entries of one run were selected (docs/service.md, 9)."""

    BY_SERVICE = "service"
    """The service selected them."""
    BY_MESSAGE = "message"
    """The instance was selected whose messages have the interval of the run."""
    BY_TIME = "time"
    """They were logged while it ran: entries of other runs may be among them."""


class LogReport(Struct, frozen=True):
    """Log entries, the oldest first. `run` and `matched` are None for those of the whole object.

    `more`: there are older entries that were not read.
    """

    subject: Subject
    entries: tuple[LogEntry, ...]
    more: bool = False
    run: Run | None = None
    matched: Matched | None = None


def duration_of_run(run: Run) -> timedelta | None:
    """Return how long a run took, None if it has not ended or its end is unknown."""
    if run.created_at is None or run.finished_at is None:
        return None
    return run.finished_at - run.created_at


def changes(known: dict[str, str], runs: Iterable[Run]) -> list[RunChange]:
    """Return new runs and changes of status, the oldest first, and remember them in `known`."""
    changed = []
    for run in sorted(runs, key=_created):
        if known.get(run.id) != run.status:
            changed.append(RunChange(run, known.get(run.id)))
            known[run.id] = run.status
    return changed


def levels_from(level: str) -> tuple[str, ...]:
    """Return a level and those that are more important."""
    return LEVELS[LEVELS.index(level.upper()) :]


def _interval(run: Run) -> tuple[datetime | None, datetime | None]:
    return run.start, run.end


def _created(run: Run) -> str:
    return run.created_at.isoformat() if run.created_at is not None else ""


def oldest_pending(runs: Sequence[Run]) -> datetime | None:
    """Return when the first run began that has not ended, None if all have."""
    return min((run.created_at for run in runs if run.pending and run.created_at), default=None)
