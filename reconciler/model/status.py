"""The state of live objects that run on a schedule, for `status`."""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.model.address import Address
from reconciler.model.public import Count, Public, Term, derived
from reconciler.model.run import Run


class State(Term):
    """The state of an export, the worst first."""

    FAILING = "failing", "Its last runs failed."
    LAGGING = "lagging", "An interval whose run is due is not exported."
    PAUSED = "paused", "It is paused, so it does not run."
    NEVER_RUN = "never-run", "It has not run, and no run is due."
    UNKNOWN = "unknown", "Its schedule or its runs cannot be read."
    ENDED = "ended", "Its end has passed."
    OK = "ok", "Every interval whose run is due is exported, or its run is in progress."


class StatusNote(Public, frozen=True):
    """A remark about an export."""

    code: str
    """Stable id of the remark."""
    message: str
    """Message."""


class ExportStatus(Public, frozen=True):
    """The state of an export."""

    internal = frozenset({"lag"})

    address: Address
    name: str
    """Its live name."""
    parent_name: str | None
    """Live name of its parent, its id if the name is unknown."""
    managed: bool
    """Whether a resource of the configuration claims it."""
    state: State
    interval: str
    """Its interval."""
    runs: tuple[Run, ...] = ()
    """The latest runs, the newest first."""
    failures: Count = 0
    """Runs in a row that failed and whose intervals are not exported."""
    all_failed: bool = False
    """Whether there may be more failures than the service shows."""
    unsettled: Count = 0
    """Latest runs that failed and whose intervals no other of them exported."""
    lag: timedelta | None = None
    lag_is_least: bool = False
    """Whether the lag may be longer."""
    rows_a_day: float | None = None
    """Rows a day, from the median of the completed runs, null without one."""
    next_run: datetime | None = None
    """The next tick of its schedule, ISO 8601, null without one."""
    paused_since: datetime | None = None
    """When its pause began, null if it is not paused, or if that is unknown."""
    paused_by_service: bool = False
    """Whether the service probably paused it."""
    missed: Count | None = None
    """Runs that its pause has skipped, null if it is not paused, or if that is unknown."""
    notes: tuple[StatusNote, ...] = ()
    """What a reader should know, the most important first."""
    differs: bool | None = None
    """Whether it differs from the configuration, null if it is unmanaged."""
    page: str | None = None
    """Address of its page on the service, null if unknown."""

    @derived
    def lag_seconds(self) -> float | None:
        """How long the first interval that is not exported is over, null if none is due."""
        return None if self.lag is None else self.lag.total_seconds()

    @property
    def last_run(self) -> Run | None:
        """The newest run, None without one."""
        return self.runs[0] if self.runs else None


class StatusReport(Public, frozen=True):
    """The states of exports, as `status --format json` prints them."""

    schema = "status"
    version = 1

    environment: str
    """Name of the environment."""
    base_url: str
    """Base URL of the service."""
    organization: str
    """Id of the organization."""
    at: datetime
    """When live state was read, ISO 8601."""
    exports: tuple[ExportStatus, ...]
    """The exports, the worst first."""
    missing: tuple[Address, ...] = ()
    """Resources that do not exist yet."""

    @derived
    def counts(self) -> dict[State, Count]:
        """The number of exports by state."""
        return {state: len(self.of(state)) for state in State}

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
