"""The forms of states of exports in public JSON."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from msgspec import field

from reconciler.model.codec.base import AddressText, Count, Form, copied
from reconciler.model.codec.runs import run_times
from reconciler.model.codec.text import json_text, optional_time
from reconciler.model.field_types import time_text
from reconciler.model.run import Run
from reconciler.model.status import ExportStatus, State, StatusReport

STATUS_VERSION: Final = 1


class LatestRunForm(Form, frozen=True, kw_only=True):
    """One of the latest runs of an export."""

    id: str
    """Its id."""
    status: str
    """Its status, as the service names it."""
    start: str | None
    """Start of its interval, ISO 8601, null for the beginning of time."""
    end: str | None
    """End of its interval, exclusive."""
    created_at: str | None
    """When it began."""
    finished_at: str | None
    """When it ended, null if it has not, or if the service does not say."""
    records: int | None
    """Rows that it exported."""
    error: str | None
    """Its error, as the service gives it."""

    @classmethod
    def of(cls, run: Run) -> LatestRunForm:
        """Return the form of a run."""
        return copied(cls, run, **run_times(run))


class StatusNoteForm(Form, frozen=True, kw_only=True):
    """A remark about an export."""

    code: str
    """Stable id of the remark."""
    message: str
    """Message."""


class ExportStatusForm(Form, frozen=True, kw_only=True):
    """The state of an export."""

    address: AddressText
    name: str
    """Its live name."""
    parent_name: str | None
    """Live name of its parent, its id if the name is unknown."""
    managed: bool
    """Whether a resource of the configuration claims it."""
    state: State
    interval: str
    """Its interval."""
    failures: Count
    """Runs in a row that failed and whose intervals are not exported."""
    all_failed: bool
    """Whether there may be more failures than the service shows."""
    unsettled: Count
    """Latest runs that failed and whose intervals no other of them exported."""
    lag_seconds: float | None
    """How long the first interval that is not exported is over, null if none is due."""
    lag_is_least: bool
    """Whether the lag may be longer."""
    rows_a_day: float | None
    """Rows a day, from the median of the completed runs, null without one."""
    next_run: str | None
    """The next tick of its schedule, ISO 8601, null if there is none."""
    paused_since: str | None
    """When its pause began, null if it is not paused, or if that is unknown."""
    paused_by_service: bool
    """Whether the service probably paused it."""
    missed: Count | None
    """Runs that its pause has skipped, null if it is not paused, or if that is unknown."""
    differs: bool | None
    """Whether it differs from the configuration, null if it is unmanaged."""
    page: str | None
    """Address of its page on the service, null if unknown."""
    notes: tuple[StatusNoteForm, ...]
    """What a reader should know, the most important first."""
    runs: tuple[LatestRunForm, ...]
    """The latest runs, the newest first."""

    @classmethod
    def of(cls, export: ExportStatus) -> ExportStatusForm:
        """Return the form of a state."""
        return copied(
            cls,
            export,
            address=str(export.address),
            lag_seconds=None if export.lag is None else export.lag / timedelta(seconds=1),
            next_run=optional_time(export.next_run),
            paused_since=optional_time(export.paused_since),
            notes=tuple(copied(StatusNoteForm, note) for note in export.notes),
            runs=tuple(map(LatestRunForm.of, export.runs)),
        )


class StateCountsForm(Form, frozen=True, kw_only=True):
    """The number of exports by state."""

    failing: Count
    """Exports whose last runs failed."""
    lagging: Count
    """Exports with an interval that is due and not exported."""
    paused: Count
    """Paused exports."""
    never_run: Count = field(name="never-run")
    """Exports that have not run, and no run is due."""
    unknown: Count
    """Exports whose schedule or runs cannot be read."""
    ended: Count
    """Exports whose end has passed."""
    ok: Count
    """Exports without any of these."""

    @classmethod
    def of(cls, report: StatusReport) -> StateCountsForm:
        """Return the counts of a report."""
        return cls(**{state.name.lower(): len(report.of(state)) for state in State})


class StatusReportForm(Form, frozen=True, kw_only=True):
    """The states of exports, as `status --format json` prints them."""

    format_version: int = STATUS_VERSION
    """Version of this format."""
    environment: str
    """Name of the environment."""
    base_url: str
    """Base URL of the service."""
    organization: str
    """Id of the organization."""
    at: str
    """When live state was read, ISO 8601."""
    counts: StateCountsForm
    exports: tuple[ExportStatusForm, ...]
    """The exports, the worst first."""
    missing: tuple[AddressText, ...]
    """Resources that do not exist yet."""

    @classmethod
    def of(cls, report: StatusReport) -> StatusReportForm:
        """Return the form of a report."""
        return copied(
            cls,
            report,
            format_version=STATUS_VERSION,
            at=time_text(report.at),
            counts=StateCountsForm.of(report),
            exports=tuple(map(ExportStatusForm.of, report.exports)),
            missing=tuple(map(str, report.missing)),
        )


def encode_status(report: StatusReport) -> str:
    """Return a report as JSON."""
    return json_text(StatusReportForm.of(report))
