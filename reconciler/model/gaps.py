"""Gaps: intervals of objects that were not exported."""

from __future__ import annotations

from datetime import datetime

from reconciler.model.address import Address
from reconciler.model.intervals import Interval
from reconciler.model.public import Count, Public, Term, derived


class GapState(Term):
    """Why an interval is not exported."""

    MISSING = "missing", "It has no run."
    FAILED = "failed", "Its runs failed or were cancelled."
    PAUSED = "paused", "It has no run, since the export was paused."
    BILLING = "billing", "Its run exceeded a billing limit. Backfills fail until that is settled."
    PENDING = "pending", "A run or a backfill of it has not ended."
    UNKNOWN = (
        "unknown",
        "It has no run. An earlier pause may be the reason: only the last is known.",
    )

    @property
    def is_gap(self) -> bool:
        """Whether it is a gap for certain."""
        return self not in (GapState.PENDING, GapState.UNKNOWN)

    @property
    def repairable(self) -> bool:
        """Whether a backfill closes it."""
        return self in (GapState.MISSING, GapState.FAILED, GapState.PAUSED)


class Gap(Public, frozen=True):
    """Neighbouring intervals that are not exported for one reason. Times are ISO 8601 in UTC."""

    start: datetime
    end: datetime
    """Exclusive."""
    state: GapState
    intervals: Count = 1
    partly: Count = 0
    """Of the intervals: how many are exported in part."""
    error: str | None = None
    """Of the last run, as the service returns it."""


class ObjectGaps(Public, frozen=True):
    """The gaps of one object."""

    address: Address
    name: str
    parent_name: str | None = None
    gaps: tuple[Gap, ...] = ()
    expected: Count = 0
    """Intervals of the window whose runs are due."""
    rows_per_run: int | None = None
    """Median of the latest completed runs."""
    unknown: str | None = None
    """Why its intervals are unknown, null if they are known."""

    def count(self, *states: GapState) -> int:
        """Return the number of intervals in some states."""
        return sum(gap.intervals for gap in self.gaps if gap.state in states)


class GapReport(Public, frozen=True):
    """All gaps. `gaps` and `repairable` count intervals."""

    schema = "gaps"
    internal = frozenset({"window"})
    version = 1

    environment: str
    window: Interval
    objects: tuple[ObjectGaps, ...]

    @derived
    def start(self) -> datetime:
        """Start of the window."""
        return self.window.start

    @derived
    def end(self) -> datetime:
        """End of the window."""
        return self.window.end

    @derived
    def gaps(self) -> Count:
        """Intervals that are gaps for certain."""
        states = [state for state in GapState if state.is_gap]
        return sum(item.count(*states) for item in self.objects)

    @derived
    def repairable(self) -> Count:
        """Intervals that a backfill closes."""
        states = [state for state in GapState if state.repairable]
        return sum(item.count(*states) for item in self.objects)
