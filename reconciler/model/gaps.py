"""Gaps: intervals of objects that were not exported."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.intervals import Interval
from reconciler.model.term import Term


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


class Gap(Struct, frozen=True):
    """Neighbouring intervals that are not exported, for one reason.

    `partly` of the `intervals` are exported in part: the schedule was another one. `error` is that
    of the last run, as the service returns it.
    """

    start: datetime
    end: datetime
    state: GapState
    intervals: int = 1
    partly: int = 0
    error: str | None = None


class ObjectGaps(Struct, frozen=True):
    """The gaps of one object.

    expected
        The number of intervals whose runs are due.
    rows
        The median number of rows of a run, None if unknown.
    unknown
        Why its intervals are unknown, None if they are known.
    """

    address: Address
    name: str
    parent_name: str | None = None
    gaps: tuple[Gap, ...] = ()
    expected: int = 0
    rows: int | None = None
    unknown: str | None = None

    def count(self, *states: GapState) -> int:
        """Return the number of intervals in some states."""
        return sum(gap.intervals for gap in self.gaps if gap.state in states)


class GapReport(Struct, frozen=True):
    """The gaps of some objects among the intervals that end in a window."""

    environment: str
    window: Interval
    objects: tuple[ObjectGaps, ...]

    @property
    def gaps(self) -> int:
        """The number of intervals that are gaps for certain."""
        states = [state for state in GapState if state.is_gap]
        return sum(item.count(*states) for item in self.objects)

    @property
    def repairable(self) -> int:
        """The number of intervals that a backfill closes."""
        states = [state for state in GapState if state.repairable]
        return sum(item.count(*states) for item in self.objects)
