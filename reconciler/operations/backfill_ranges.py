"""What a backfill exports again: a range, the gaps of a window, or what the last pause skipped."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, time, timedelta
from typing import TypeAlias

from msgspec import Struct

from reconciler.errors import BadUsage
from reconciler.model.backfill_plan import PlannedBackfill
from reconciler.model.text import several
from reconciler.model.times import Interval, Schedule, is_date, moment_of
from reconciler.operations.gaps import Gap, GapState, gaps_of_object
from reconciler.operations.runs import latest_runs
from reconciler.operations.targets import Target, Targets

_SHOWN = "%Y-%m-%dT%H:%M:%SZ"
_LEFT_OUT = (GapState.INTENDED, GapState.UNKNOWN, GapState.BILLING, GapState.PENDING)


class Chosen(Struct, frozen=True):
    """The backfills of one object, the gaps that they close, if any, and notes for readers."""

    backfills: tuple[PlannedBackfill, ...]
    notes: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()


class Span(Struct, frozen=True):
    """A range of two times. Without an offset they are UTC; a date is that of the schedule."""

    first: str
    last: str

    async def of(self, _: Target, __: Targets, schedule: Schedule, now: datetime) -> Chosen:
        """Return one backfill of whole intervals. Raises BadUsage for an invalid range."""
        start = bound(schedule, self.first, option="--from")
        end = bound(schedule, self.last, option="--to")
        return _whole(schedule, start, end, now)


class ClosedGaps(Struct, frozen=True):
    """The gaps of a window, with `failed` only those whose runs failed.

    The window ends at `last`, None for now, and begins at `first`, None for `length` before.
    """

    first: str | None = None
    last: str | None = None
    length: timedelta = timedelta(days=7)
    failed: bool = False

    async def of(
        self, target: Target, targets: Targets, schedule: Schedule, now: datetime
    ) -> Chosen:
        """Return backfills of the gaps. Raises BadUsage, ServiceError."""
        item = await gaps_of_object(target, targets, self._window(schedule, now), now)
        notes = (
            f"{several(item.count(state), 'interval')} left out ({state}): {state.meaning}"
            for state in _LEFT_OUT
            if item.count(state)
        )
        gaps = tuple(gap for gap in item.gaps if not self.failed or gap.state is GapState.FAILED)
        return Chosen(tuple(of_gaps(gaps)), tuple(notes), gaps)

    def _window(self, schedule: Schedule, now: datetime) -> Interval:
        last = now if self.last is None else bound(schedule, self.last, option="--to")
        first = last - self.length
        if self.first is not None:
            first = bound(schedule, self.first, option="--from")
        if first >= last or last > now:
            raise BadUsage("invalid time range", hint="set --from to a time before --to and now")
        return Interval(first, last)


class SincePause(Struct, frozen=True):
    """The intervals that the last pause skipped, to the first run after it."""

    async def of(self, target: Target, _: Targets, schedule: Schedule, now: datetime) -> Chosen:
        """Return one backfill. Raises BadUsage if no pause is known, or if it skipped nothing."""
        paused = schedule.last_paused_at
        if paused is None:
            raise BadUsage(
                "no pause is known",
                hint="pass --from and --to; `reconciler gaps` shows what is missing",
            )
        first, last = schedule.floor(paused), schedule.floor(now)
        if not schedule.paused:
            ticks = [
                run.start
                for run in latest_runs(target.live)
                if run.backfill is None and run.start and run.created_at
                if run.start >= first and run.created_at > paused
            ]
            last = min(ticks, default=last)
        if first >= last:
            raise BadUsage("no interval has ended since the last pause")
        return _whole(schedule, first, last, now)


Wanted: TypeAlias = Span | ClosedGaps | SincePause


def _whole(schedule: Schedule, start: datetime, end: datetime, now: datetime) -> Chosen:
    whole, notes = aligned_range(schedule, start, end, now)
    runs = sum(1 for _ in schedule.grid(whole.start, whole.end))
    return Chosen((PlannedBackfill(whole.start, whole.end, runs),), notes)


def bound(schedule: Schedule, text: str, *, option: str) -> datetime:
    """Return the time that an option names. Raises BadUsage.

    A date of a schedule with days of a time zone is the begin of that day there.
    """
    if schedule.zone is None or not is_date(text):
        return moment_of(text, option=option)
    start = moment_of(text, option=option, zone=schedule.zone).astimezone(schedule.zone)
    return moment_of(
        datetime.combine(start.date(), time(schedule.offset_hour)).isoformat(),
        option=option,
        zone=schedule.zone,
    )


def aligned_range(
    schedule: Schedule, start: datetime, end: datetime, now: datetime
) -> tuple[Interval, tuple[str, ...]]:
    """Return a range as whole intervals that have ended, and notes on what was changed.

    Raises BadUsage for an empty range, one in the future, and one without a whole interval.
    """
    if start >= end:
        raise BadUsage("empty time range", hint="set --from to a time before --to")
    if end > now:
        raise BadUsage(
            f"the time range ends in the future: {end:{_SHOWN}}",
            hint="set --to to a time in the past",
        )
    whole = schedule.outward(start, end)
    notes: tuple[str, ...] = ()
    if whole.end > now:
        whole = Interval(whole.start, schedule.floor(end))
        note = f"the interval from {whole.end:{_SHOWN}} has not ended and is left out"
        notes = (f"{note}; its scheduled run exports it",)
    if whole.start >= whole.end:
        ends = schedule.outward(start, end).end
        raise BadUsage(
            "the range has no interval that has ended",
            hint=f"its interval ends at {ends:{_SHOWN}}",
        )
    if (whole.start, whole.end) != (start, end) and not (notes and whole.start == start):
        shown = f"{whole.start:{_SHOWN}} to {whole.end:{_SHOWN}}"
        note = f"aligned to whole intervals: {start:{_SHOWN}} to {end:{_SHOWN}} becomes {shown}"
        notes = (note, *notes)
    return whole, notes


def of_gaps(gaps: Iterable[Gap]) -> list[PlannedBackfill]:
    """Return backfills that close the gaps that a backfill can close, neighbours joined."""
    planned: list[PlannedBackfill] = []
    for gap in gaps:
        if not gap.state.repairable:
            continue
        item = PlannedBackfill(gap.start, gap.end, gap.intervals, gap.partly)
        if planned and planned[-1].end == gap.start:
            last = planned.pop()
            item = PlannedBackfill(
                last.start, gap.end, last.runs + gap.intervals, last.partly + gap.partly
            )
        planned.append(item)
    return planned
