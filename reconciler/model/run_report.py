"""Runs and log entries of one object, as `runs` and `logs` show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from reconciler.model.address import Address
from reconciler.model.public import Public
from reconciler.model.run import LogEntry, LogLevel, Run

STATUSES = (
    *("Starting", "Running", "Completed", "Failed", "FailedRetryable", "FailedBilling"),
    *("Cancelled", "ContinuedAsNew", "Terminated", "TimedOut"),
)
"""The statuses of a run (service.md, 7.1)."""
LEVELS = (LogLevel.DEBUG.value, "LOG", LogLevel.INFO.value, LogLevel.WARNING.value, "ERROR")
"""The levels of log entries, the least important first (service.md, 3)."""
NO_END = frozenset({"FailedBilling"})
"""Statuses that are final although servers give no end of the run (service.md, 15.62)."""


class RunOrder(StrEnum):
    """By what runs are ordered, the newest first. Runs without a start have no interval."""

    CREATED = "created"
    INTERVAL = "interval"


class Subject(Public, frozen=True, kw_only=True):
    """The object whose runs or logs are shown. Texts are those of the service, unescaped."""

    version = 1

    environment: str
    """Name of the environment."""
    address: Address
    name: str
    """Its live name."""
    parent_name: str | None = None
    """Live name of its parent."""
    page: str | None = None
    """Address of its page on the service, null if unknown."""


class RunReport(Subject, frozen=True, kw_only=True):
    """The runs of an object, as `runs --format json` prints them."""

    schema = "runs"
    internal = frozenset({"detail", "hides_unbounded"})

    more: bool = False
    """Whether there is more than was read."""
    runs: tuple[Run, ...]
    """The newest first."""
    detail: bool = False
    """One run was asked for."""
    hides_unbounded: bool = False
    """Whether the server leaves out runs without a start."""

    @property
    def settled(self) -> frozenset[str]:
        """The ids of the runs that failed, and whose interval another run exported."""
        exported = {_interval(run) for run in self.runs if run.completed}
        return frozenset(run.id for run in self.runs if run.failed and _interval(run) in exported)


class RunChange(Public, frozen=True):
    """A line of `runs --follow`: a run that is new, or whose status changed."""

    run: Run
    before: str | None = None
    """Its former status, null if it is new."""


class Matched(StrEnum):
    """How the entries of one run were selected (docs/inside/service.md, 9)."""

    BY_SERVICE = "service"
    """The service selected them."""
    BY_MESSAGE = "message"
    """The instance was selected whose messages have the interval of the run."""
    BY_TIME = "time"
    """They were logged while it ran: entries of other runs may be among them."""


class LogReport(Subject, frozen=True, kw_only=True):
    """The log of an object or a run, as `logs --format json` prints it."""

    schema = "logs"

    more: bool = False
    """Whether there is more than was read."""
    run: Run | None = None
    """The run, null for the log of the whole object."""
    matched: Matched | None = None
    """How the entries of the run were selected."""
    entries: tuple[LogEntry, ...]
    """The oldest first."""


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
