"""Runs, backfills and log entries as the API returns them (service.md 2, 3 and 7)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum

from msgspec import Struct

from reconciler.model.live import id_text
from reconciler.model.public import Public
from reconciler.model.run_status import BILLING, COMPLETED
from reconciler.model.text import json_shown
from reconciler.model.values import JSON, JSONObject

_PENDING = frozenset({"Starting", "Running"})
FAILED = frozenset({"Failed", "FailedRetryable", BILLING, "TimedOut", "Terminated"})


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
    """One backfill. `adjusted_start` is the first interval with data: before it no runs are made.

    `total_records` is 0 for a range without data, None if unknown.
    """

    id: str
    status: str
    start: datetime | None
    end: datetime | None
    created_at: datetime | None = None
    finished_at: datetime | None = None
    adjusted_start: datetime | None = None
    total_records: int | None = None
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


class LogLevel(StrEnum):
    """The level of a log entry. Others than these are texts of the service."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


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
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidRun(f"{name} is {json_shown(text)}, a time was expected") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
