"""The public JSON of runs and logs. With `--follow` each line is a form of its own."""

from __future__ import annotations

from typing import Final

from reconciler.model.codec.base import AddressText, Form, copied
from reconciler.model.codec.text import json_line, json_text, optional_time
from reconciler.model.field_types import time_text
from reconciler.model.run import LogEntry, Run
from reconciler.model.run_report import LogReport, Matched, RunChange, RunReport, Subject

RUNS_VERSION: Final = 1


class ExportRunForm(Form, frozen=True, kw_only=True):
    """A run. Times are ISO 8601 in UTC."""

    id: str
    """Its id."""
    status: str
    """Its status, as the service names it."""
    start: str | None
    """Start of its interval, null for the beginning of time."""
    end: str | None
    """End of its interval, exclusive."""
    created_at: str | None
    """When it began."""
    finished_at: str | None
    """When it ended, null if it has not, or if the service does not say."""
    records: int | None
    """Rows that it exported."""
    bytes: int | None
    """Bytes that it exported."""
    error: str | None
    """Its error, as the service gives it."""
    backfill: str | None
    """Id of the backfill that made it, null for a scheduled run."""

    @classmethod
    def of(cls, run: Run) -> ExportRunForm:
        """Return the form of a run."""
        return copied(cls, run, **run_times(run))


class RunChangeForm(Form, frozen=True, kw_only=True):
    """A line of `runs --follow`: a run that is new, or whose status changed."""

    before: str | None
    """Its former status, null if it is new."""
    run: ExportRunForm


class LogEntryForm(Form, frozen=True, kw_only=True):
    """A log entry."""

    timestamp: str
    """ISO 8601 in UTC."""
    level: str
    """DEBUG, LOG, INFO, WARNING or ERROR."""
    message: str
    """Text of the service."""
    instance: str | None
    """Id of the workflow engine, or of the run on servers of 2024."""

    @classmethod
    def of(cls, entry: LogEntry) -> LogEntryForm:
        """Return the form of an entry."""
        return copied(cls, entry, timestamp=time_text(entry.timestamp))


class SubjectForm(Form, frozen=True, kw_only=True):
    """Whose runs or logs are listed."""

    format_version: int
    """Version of this format."""
    environment: str
    """Name of the environment."""
    address: AddressText
    name: str
    """Its live name."""
    parent_name: str | None
    """Live name of its parent."""
    page: str | None
    """Address of its page on the service, null if unknown."""
    more: bool
    """Whether there is more than was read."""


class RunReportForm(SubjectForm, frozen=True, kw_only=True):
    """The runs of an object, as `runs --format json` prints them."""

    runs: tuple[ExportRunForm, ...]
    """The newest first."""


class LogReportForm(SubjectForm, frozen=True, kw_only=True):
    """The log of an object or a run, as `logs --format json` prints it."""

    run: ExportRunForm | None
    """The run, null for the log of the whole object."""
    matched: Matched | None
    """How the entries of the run were selected."""
    entries: tuple[LogEntryForm, ...]
    """The oldest first."""


def run_times(run: Run) -> dict[str, str | None]:
    """Return the times of a run as text, by the names of their attributes."""
    names = ("start", "end", "created_at", "finished_at")
    return {name: optional_time(getattr(run, name)) for name in names}


def encode_runs(report: RunReport) -> str:
    """Return runs as JSON."""
    runs = tuple(map(ExportRunForm.of, report.runs))
    return json_text(_with_subject(RunReportForm, report.subject, more=report.more, runs=runs))


def encode_logs(report: LogReport) -> str:
    """Return a log as JSON."""
    return json_text(
        _with_subject(
            LogReportForm,
            report.subject,
            more=report.more,
            run=ExportRunForm.of(report.run) if report.run is not None else None,
            matched=report.matched,
            entries=tuple(map(LogEntryForm.of, report.entries)),
        )
    )


def encode_change(change: RunChange) -> str:
    """Return a line of JSON."""
    return json_line(RunChangeForm(before=change.before, run=ExportRunForm.of(change.run)))


def encode_entry(entry: LogEntry) -> str:
    """Return a line of JSON."""
    return json_line(LogEntryForm.of(entry))


def _with_subject(form: type[Form], subject: Subject, **parts: object) -> Form:
    address = str(subject.address)
    return copied(form, subject, format_version=RUNS_VERSION, address=address, **parts)
