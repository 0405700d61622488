"""The state of live objects that run on a schedule, for `status`."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.plan import Note
from reconciler.model.run import Run
from reconciler.model.term import Term


class State(Term):
    """The state of an export, the worst first."""

    FAILING = "failing", "Its last runs failed."
    LAGGING = "lagging", "An interval whose run is due is not exported."
    PAUSED = "paused", "It is paused, so it does not run."
    NEVER_RUN = "never-run", "It has not run, and no run is due."
    UNKNOWN = "unknown", "Its schedule or its runs cannot be read."
    ENDED = "ended", "Its end has passed."
    OK = "ok", "Every interval whose run is due is exported, or its run is in progress."


class ExportStatus(Struct, frozen=True):
    """The state of one live export. Texts from the service are unescaped.

    failures
        Runs in a row that failed, the newest first, none of whose intervals was exported since.
        `all_failed`: there may be more than the service shows.
    lag
        How long the first interval that is not exported since the last exported one is over, None
        if no run is due. `lag_is_least`: it may be longer.
    unsettled
        The latest runs that failed and whose interval no other of them exported.
    runs
        The latest runs, the newest first.
    missed
        The runs that its pause has skipped so far, None if unknown.
    differs
        Whether a plan would change it, None for an unmanaged export, or if there is no plan.
    page
        The address of its page.
    """

    address: Address
    name: str
    parent_name: str | None
    managed: bool
    state: State
    interval: str
    runs: tuple[Run, ...] = ()
    failures: int = 0
    all_failed: bool = False
    unsettled: int = 0
    lag: timedelta | None = None
    lag_is_least: bool = False
    rows_a_day: float | None = None
    next_run: datetime | None = None
    paused_since: datetime | None = None
    paused_by_service: bool = False
    missed: int | None = None
    notes: tuple[Note, ...] = ()
    differs: bool | None = None
    page: str | None = None

    @property
    def last_run(self) -> Run | None:
        """The newest run, None without one."""
        return self.runs[0] if self.runs else None


class StatusReport(Struct, frozen=True):
    """The states of all selected exports at a moment, the worst first.

    `missing` are the resources that do not exist yet.
    """

    environment: str
    base_url: str
    organization: str
    at: datetime
    exports: tuple[ExportStatus, ...]
    missing: tuple[Address, ...] = ()

    def of(self, state: State) -> tuple[ExportStatus, ...]:
        """Return the exports in a state."""
        return tuple(export for export in self.exports if export.state is state)


def rough_duration(duration: timedelta) -> str:
    """Return a duration, rounded down: `40 min`, `1 h 40 min`, `12 h`, `3 d`."""
    hours, minutes = divmod(int(duration / timedelta(minutes=1)), 60)
    if not hours:
        return f"{minutes} min"
    if hours < 10 and minutes:
        return f"{hours} h {minutes} min"
    return f"{hours} h" if hours < 48 else f"{hours // 24} d"
