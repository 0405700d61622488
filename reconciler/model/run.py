"""Runs, backfills and log entries as the API returns them and commands show them; pauses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from itertools import takewhile
from typing import ClassVar, Literal

import orjson
from msgspec import Struct

from reconciler.exit_codes import ExitCode
from reconciler.model.live import id_text
from reconciler.model.plan import Consequence, PlanSource, Severity
from reconciler.model.public import Count, Public, Term, derived
from reconciler.model.schemas import instant_of
from reconciler.model.text import json_shown
from reconciler.model.values import JSON, Address, JSONObject

COMPLETED = "Completed"
BILLING = "FailedBilling"
COUNTED_FAILURE = "Failed"
"""The status of a run that counts for an automatic pause."""
FAILURES_OF_A_PAUSE = 3
"""The least number of failures after which servers pause an export (service.md, 14)."""
_PENDING = frozenset({"Starting", "Running"})
FAILED = frozenset({"Failed", "FailedRetryable", BILLING, "TimedOut", "Terminated"})
STATUSES = (
    *("Starting", "Running", "Completed", "Failed", "FailedRetryable", "FailedBilling"),
    *("Cancelled", "ContinuedAsNew", "Terminated", "TimedOut"),
)
"""The statuses of a run (service.md, 7.1)."""
NO_END = frozenset({BILLING})
"""Statuses that are final although servers give no end of the run (service.md, 15.62)."""
_AT_ONCE = timedelta(minutes=5)
"""How long after the end of a failed run the service has paused the export."""


class InvalidRun(ValueError):
    """A field of a run, a backfill or a log entry has the wrong type."""


class Run(Public, frozen=True):
    """A run. Times are ISO 8601 in UTC."""

    id: str
    """Its id."""
    status: str
    """Its status, as the service names it."""
    start: datetime | None
    """Start of its interval, null for the beginning of time."""
    end: datetime | None
    """End of its interval, exclusive."""
    created_at: datetime | None = None
    """When it began."""
    finished_at: datetime | None = None
    """When it ended, null if it has not, or if the service does not say."""
    records: int | None = None
    """Rows that it exported."""
    bytes: int | None = None
    """Bytes that it exported."""
    error: str | None = None
    """Its error, as the service gives it."""
    backfill: str | None = None
    """Id of the backfill that made it, null for a scheduled run."""

    @classmethod
    def of(cls, body: JSON) -> Run:
        """Return the run of a body. Raises InvalidRun."""
        body = _object(body)
        return cls(
            id=_id(body),
            status=_text(body, "status") or "",
            start=moment_at(body, "data_interval_start"),
            end=moment_at(body, "data_interval_end"),
            created_at=moment_at(body, "created_at"),
            finished_at=moment_at(body, "finished_at"),
            records=_number(body, "records_completed"),
            bytes=_number(body, "bytes_exported"),
            error=_text(body, "latest_error"),
            backfill=_text(body, "backfill"),
        )

    @property
    def completed(self) -> bool:
        """Whether its interval is exported."""
        return self.status == COMPLETED

    @property
    def pending(self) -> bool:
        """Whether it has not ended."""
        return self.status in _PENDING

    @property
    def failed(self) -> bool:
        """Whether it ended without exporting its interval, other than by being cancelled."""
        return self.status in FAILED


class BackfillRow(Struct, frozen=True):
    """One backfill."""

    id: str
    status: str
    start: datetime | None
    end: datetime | None
    created_at: datetime | None = None
    finished_at: datetime | None = None
    adjusted_start: datetime | None = None
    """The first interval with data: before it no runs are made."""
    total_records: int | None = None
    """0 for a range without data, None if unknown."""
    total_runs: int | None = None
    finished_runs: int | None = None

    @classmethod
    def of(cls, body: JSON) -> BackfillRow:
        """Return the backfill of a body. Raises InvalidRun."""
        body = _object(body)
        progress = body.get("progress")
        progress = progress if isinstance(progress, Mapping) else {}
        return cls(
            id=_id(body),
            status=_text(body, "status") or "",
            start=moment_at(body, "start_at"),
            end=moment_at(body, "end_at"),
            created_at=moment_at(body, "created_at"),
            finished_at=moment_at(body, "finished_at"),
            adjusted_start=moment_at(body, "adjusted_start_at"),
            total_records=_number(body, "total_records_count"),
            total_runs=_number(progress, "total_runs"),
            finished_runs=_number(progress, "finished_runs"),
        )

    @property
    def pending(self) -> bool:
        """Whether it has not ended."""
        return self.status in _PENDING


LEVELS = ("DEBUG", "LOG", "INFO", "WARNING", "ERROR")
"""The levels of log entries, the least important first (service.md, 3)."""


class LogEntry(Public, frozen=True):
    """A log entry."""

    timestamp: datetime
    """ISO 8601 in UTC."""
    level: str
    """DEBUG, LOG, INFO, WARNING or ERROR."""
    message: str
    """Text of the service."""
    instance: str | None = None
    """Id of the workflow engine, or of the run on servers of 2024."""

    @classmethod
    def of(cls, body: JSON) -> LogEntry:
        """Return the entry of a body of either shape (service.md 3). Raises InvalidRun."""
        body = _object(body)
        timestamp = moment_at(body, "timestamp")
        if timestamp is None:
            raise InvalidRun("timestamp is missing")
        return cls(
            timestamp=timestamp,
            level=(_text(body, "level") or "").upper(),
            message=_text(body, "message") or "",
            instance=_text(body, "instance_id") or _text(body, "run_id"),
        )


def _object(body: JSON) -> JSONObject:
    if not isinstance(body, Mapping):
        raise InvalidRun(f"{json_shown(body)} instead of an object")
    return body


def _id(body: JSONObject) -> str:
    live_id = id_text(body.get("id"))
    if live_id is None:
        raise InvalidRun(f"id is {json_shown(body.get('id'))}")
    return live_id


def _text(body: JSONObject, name: str) -> str | None:
    value = body.get(name)
    if value is None or isinstance(value, str):
        return value
    raise InvalidRun(f"{name} is {json_shown(value)}, text was expected")


def _number(body: JSONObject, name: str) -> int | None:
    value = body.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise InvalidRun(f"{name} is {json_shown(value)}, a whole number was expected")


def moment_at(body: JSONObject, name: str) -> datetime | None:
    """Return the time in a field, in UTC, None without one. Raises InvalidRun."""
    text = _text(body, name)
    if text is None:
        return None
    try:
        return instant_of(text)
    except ValueError:
        raise InvalidRun(f"{name} is {json_shown(text)}, a time was expected") from None


class Subject(Public, frozen=True, kw_only=True):
    """The object whose runs or logs are shown. Texts are those of the service, unescaped."""

    version: ClassVar[int | None] = 1

    environment: str
    """Name of the environment."""
    address: Address
    name: str
    """Its live name."""
    parent_name: str | None = None
    """Live name of its parent."""
    page: str | None = None
    """Address of its page on the service, null if unknown."""


class ListedRun(Run, frozen=True, kw_only=True):
    """A run, and the object that it is of. Times are ISO 8601 in UTC."""

    address: Address


class SubjectOfRuns(Subject, frozen=True, kw_only=True):
    """An object whose runs are listed."""

    version = None
    internal = frozenset({"environment", "exit_code"})

    error: str | None = None
    """Why its runs could not be read, null if they were."""
    exit_code: ExitCode = ExitCode.FINE


class RunReport(Public, frozen=True, kw_only=True):
    """The runs of objects, as `runs --format json` prints them."""

    schema = "runs"
    version = 1
    internal = frozenset({"detail"})

    environment: str
    """Name of the environment."""
    exports: tuple[SubjectOfRuns, ...]
    """The objects whose runs were read."""
    more: bool = False
    """Whether there is more than was read."""
    runs: tuple[ListedRun, ...]
    """The newest first."""
    detail: bool = False
    """One run was asked for."""

    @property
    def settled(self) -> frozenset[str]:
        """The ids of the runs that failed, and whose interval another run exported."""
        exported = {_interval(run) for run in self.runs if run.completed}
        return frozenset(run.id for run in self.runs if run.failed and _interval(run) in exported)

    @property
    def unread(self) -> tuple[SubjectOfRuns, ...]:
        """The objects whose runs could not be read."""
        return tuple(item for item in self.exports if item.error is not None)


class Matched(StrEnum):
    """How the entries of one run were selected (docs/inside/service.md, 9)."""

    BY_SERVICE = "service"
    """The service selected them."""
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


def failures_in_a_row(statuses: Iterable[str]) -> int:
    """Return how many of the newest runs failed in a way that counts for an automatic pause."""
    return sum(1 for _ in takewhile(COUNTED_FAILURE.__eq__, statuses))


def levels_from(level: str) -> tuple[str, ...]:
    """Return a level and those that are more important."""
    return LEVELS[LEVELS.index(level.upper()) :]


def _interval(run: ListedRun) -> tuple[Address, datetime | None, datetime | None]:
    return run.address, run.start, run.end


class Cause(StrEnum):
    """Who paused an export."""

    INTENDED = "intended"
    SERVICE = "service"
    UNKNOWN = "unknown"


def cause_of_pause(body: JSONObject, *, declared: bool = False) -> Cause | None:
    """Return why a live export is paused, None if it is not.

    A pause that the configuration declares is intended. The service pauses an export right after a
    run that ended as `Failed` (service.md, 14). So the runs that ended before the pause decide:

    - the newest did not fail: intended
    - FAILURES_OF_A_PAUSE or more in a row failed, and the pause began at once or at an unknown
      time: the service. It may not set `last_paused_at`, which updates do not set either.
    - otherwise: unknown

    Runs that have not ended or were cancelled do not count.
    """
    if not body.get("paused"):
        return None
    since = pause_began(body)
    listed = body.get("latest_runs")
    ended = [
        (str(run.get("status")), _moment(run, "finished_at"))
        for run in (listed if isinstance(listed, list) else ())
        if isinstance(run, Mapping) and run.get("status") in {COMPLETED, *FAILED}
    ]
    before = [run for run in ended if since is None or run[1] is None or run[1] <= since + _AT_ONCE]
    if declared or not before or before[0][0] != COUNTED_FAILURE:
        return Cause.INTENDED
    at = before[0][1]
    at_once = since is None or at is None or since - at <= _AT_ONCE
    failures = failures_in_a_row(status for status, _ in before)
    return Cause.SERVICE if at_once and failures >= FAILURES_OF_A_PAUSE else Cause.UNKNOWN


def may_be_by_service(body: JSONObject, *, declared: bool) -> bool:
    """Return whether a live export is paused, and possibly not on purpose."""
    return cause_of_pause(body, declared=declared) in (Cause.SERVICE, Cause.UNKNOWN)


def pause_began(body: JSONObject) -> datetime | None:
    """Return when the current pause of a live export began, None if unknown or not paused.

    An update that pauses an export leaves the time of an earlier pause (service.md, 1.7): then the
    schedule has run since.
    """
    since, listed = _moment(body, "last_paused_at"), body.get("latest_runs")
    if not body.get("paused") or since is None:
        return None
    runs = listed if isinstance(listed, list) else ()
    ends = (
        _moment(run, "data_interval_end")
        for run in runs
        if isinstance(run, Mapping) and run.get("backfill") is None
    )
    return None if any(end is not None and end > since for end in ends) else since


def _moment(body: JSONObject, name: str) -> datetime | None:
    try:
        return moment_at(body, name)
    except InvalidRun:
        return None


class PlannedBackfill(Public, frozen=True):
    """One backfill. Times are ISO 8601 in UTC; the end is exclusive."""

    start: datetime
    """Begin of the range."""
    end: datetime
    """End of the range, exclusive."""
    runs: Count
    """Intervals in the range."""
    partly: Count = 0
    """Of the intervals: how many are exported in part already."""
    trial: bool = False
    """Whether it is tried before the others, since the last run failed."""


class BackfillState(Term):
    """How far a backfill came."""

    STARTED = "started", "The service accepted it."
    RUNNING = "running", "The same range runs already. Nothing was sent."
    COMPLETED = "completed", "Every run of it completed."
    EMPTY = "empty", "It completed. The range has no data."
    PARTLY = "partly", "It ended, and some of its runs did not complete."
    FAILED = "failed", "It was refused, or it ended without a result."
    UNKNOWN = "unknown", "A request may have started it."
    SKIPPED = "skipped", "Nothing was sent."

    @property
    def fine(self) -> bool:
        """Whether nothing is left to do but to wait."""
        return self not in (
            BackfillState.PARTLY,
            BackfillState.FAILED,
            BackfillState.UNKNOWN,
            BackfillState.SKIPPED,
        )


class BackfillEnd(Public, frozen=True):
    """How a backfill ended."""

    internal = frozenset({"planned"})

    planned: PlannedBackfill
    state: BackfillState
    """How it ended."""
    id: str | None = None
    """Id of the backfill, null if unknown."""
    detail: str | None = None
    """Reason or progress, null without."""
    hint: str | None = None
    """What to do, null without a hint."""

    @derived
    def start(self) -> datetime:
        """Begin of the range."""
        return self.planned.start

    @derived
    def end(self) -> datetime:
        """End of the range, exclusive."""
        return self.planned.end


class ObjectBackfills(Public, frozen=True):
    """The backfills of one object."""

    address: Address
    name: str
    """Name of the object."""
    live_id: str
    """Id of the object."""
    parent_id: str | None
    """Id of its project."""
    parent_name: str | None
    """Name of its project, null if unknown."""
    backfills: tuple[PlannedBackfill, ...]
    """The backfills, in order."""
    consequences: tuple[Consequence, ...] = ()
    """Consequences of all of them."""
    notes: tuple[str, ...] = ()
    """What to know about them."""
    rows: int | None = None
    """Median rows of a run, null if unknown."""
    ends: tuple[BackfillEnd, ...] = ()
    """How they ended, empty before they are started."""

    @property
    def runs(self) -> int:
        """The number of runs of all backfills."""
        return sum(item.runs for item in self.backfills)

    @property
    def dangerous(self) -> bool:
        """Whether a consequence is a danger."""
        return any(item.severity is Severity.DANGER for item in self.consequences)


class BackfillPlan(Public, frozen=True):
    """A plan of backfills. `plan_id` is the digest of what it does."""

    version = 2
    schema = "backfill"

    source: PlanSource
    """What the plan was computed from."""
    objects: tuple[ObjectBackfills, ...]
    """The objects, by address."""
    created_at: str = ""
    """Time of the plan, ISO 8601."""
    notes: tuple[str, ...] = ()
    """What was left out."""

    @derived
    def type(self) -> Literal["backfill"]:
        """Distinguishes it from a plan of changes."""
        return "backfill"

    @property
    def backfills(self) -> tuple[PlannedBackfill, ...]:
        """The backfills of all objects."""
        return tuple(item for planned in self.objects for item in planned.backfills)

    @property
    def runs(self) -> int:
        """The number of runs of all backfills."""
        return sum(item.runs for item in self.objects)

    @derived
    def plan_id(self) -> str:
        """Digest of what it does, without texts for readers."""
        content = {
            "version": 2,
            "environment": self.source.environment,
            "organization": self.source.organization,
            "base_url": self.source.base_url,
            "objects": [
                {
                    "address": str(item.address),
                    "id": item.live_id,
                    "backfills": [
                        [part.start.isoformat(), part.end.isoformat(), part.runs, part.trial]
                        for part in item.backfills
                    ],
                    "rules": sorted((it.rule, it.severity.value) for it in item.consequences),
                }
                for item in self.objects
            ],
        }
        return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
