"""What `backfill` exports again: a range, gaps of a window, or what the last pause skipped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconciler.commands.gaps import (
    Gap,
    GapState,
    GapWindow,
    gaps_of_object,
    joined,
    rows_of_a_run,
    schedule_of,
)
from reconciler.commands.targets import Target, Targets
from reconciler.errors import BadUsage
from reconciler.kinds import behaviour_of
from reconciler.model.plan import Consequence, PlanSource, Severity
from reconciler.model.run import BILLING, BackfillPlan, ObjectBackfills, PlannedBackfill, Run
from reconciler.model.text import listed, quoted, several
from reconciler.model.times import Interval, Schedule, UnknownSchedule, bound, window_at
from reconciler.planning.approval import Approval, confirmed, typed
from reconciler.render.document import label_of
from reconciler.service.operations import latest_runs, runs_since
from reconciler.service.pace import together
from reconciler.version import __version__

_MOST_LISTED = 5
_MANY = 1_000
"""More runs of an export than a backfill of a month has; ten times as many are a danger."""
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


class ClosedGaps(GapWindow, frozen=True):
    """The gaps of a window, with `failed` only those whose runs failed."""

    failed: bool = False

    async def of(self, target: Target, targets: Targets, _: Schedule, now: datetime) -> Chosen:
        """Return backfills of the gaps. Raises BadUsage, ServiceError."""
        item, window = await gaps_of_object(target, targets, self, now)
        window_at(now, window.start, window.end)
        notes = (
            f"{several(item.count(state), 'interval')} left out ({state}): {state.meaning}"
            for state in _LEFT_OUT
            if item.count(state)
        )
        gaps = tuple(gap for gap in item.gaps if not self.failed or gap.state is GapState.FAILED)
        return Chosen(tuple(of_gaps(gaps)), tuple(notes), gaps)


class SincePause(Struct, frozen=True):
    """The intervals that the last pause skipped, to the first run after it."""

    async def of(
        self, target: Target, targets: Targets, schedule: Schedule, now: datetime
    ) -> Chosen:
        """Return one backfill. Raises ServiceError.

        Raises BadUsage if no pause is known, or if it skipped nothing.
        """
        paused = schedule.last_paused_at
        if paused is None:
            hint = "pass --from and --to; `reconciler gaps` shows what is missing"
            raise BadUsage("no pause is known", hint=hint)
        first, last = schedule.floor(paused), schedule.floor(now)
        if not schedule.paused:
            ticks = [
                run.start
                for run in await runs_since(targets.calls(target), paused)
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
    whole = outward = schedule.outward(start, end)
    notes: tuple[str, ...] = ()
    if whole.end > now:
        whole = Interval(whole.start, schedule.floor(end))
        note = f"the interval from {whole.end:{_SHOWN}} has not ended and is left out"
        notes = (f"{note}; its scheduled run exports it",)
    if whole.start >= whole.end:
        hint = f"its interval ends at {outward.end:{_SHOWN}}"
        raise BadUsage("the range has no interval that has ended", hint=hint)
    if (whole.start, whole.end) != (start, end) and not (notes and whole.start == start):
        shown = f"{whole.start:{_SHOWN}} to {whole.end:{_SHOWN}}"
        note = f"aligned to whole intervals: {start:{_SHOWN}} to {end:{_SHOWN}} becomes {shown}"
        notes = (note, *notes)
    return whole, notes


def of_gaps(gaps: Iterable[Gap]) -> list[PlannedBackfill]:
    """Return backfills that close the gaps that a backfill can close, neighbours joined."""
    closed = joined(replace(gap, state=GapState.MISSING) for gap in gaps if gap.state.repairable)
    return [PlannedBackfill(gap.start, gap.end, gap.intervals, gap.partly) for gap in closed]


def approval_of_backfills(plan: BackfillPlan) -> Approval:
    """Return the question for a plan of backfills.

    One with a danger asks for the name of the object, or for the environment if there are several.
    """
    what = several(len(plan.backfills), "backfill")
    dangerous = [item for item in plan.objects if item.dangerous]
    if len(dangerous) > 1:
        name = plan.source.environment
        question = f"There are dangers (!!) for {len(dangerous)} objects. To start {what}, type"
        return typed(f"{question} the environment, {quoted(name)}: ", name)
    for item in dangerous:
        question = f"There is a danger (!!). To start {what}, type the name, {quoted(item.name)}: "
        return typed(question, item.name, str(item.address))
    return confirmed(f"Start {what}?")


async def plan_of(
    chosen: Sequence[Target], targets: Targets, wanted: Wanted, now: datetime
) -> BackfillPlan:
    """Return the backfills of objects. Raises BadUsage, ServiceError.

    Of several objects, those that can't be backfilled are left out.
    """
    planned = await together(_attempted(item, targets, wanted, now) for item in chosen)
    objects = [item for item in planned if isinstance(item, ObjectBackfills)]
    left_out: dict[str, list[str]] = {}
    for target, item in zip(chosen, planned, strict=True):
        if isinstance(item, BadUsage):
            if not objects:
                raise item
            left_out.setdefault(item.message, []).append(label_of(target.address, target.live.name))
    of = targets.session.loaded.desired
    where = of.environment, of.organization, of.base_url
    return BackfillPlan(
        PlanSource(*where, __version__, targets.live.dialect),
        tuple(it for it in objects if it.backfills or it.notes or len(chosen) == 1),
        now.isoformat(),
        tuple(f"{listed(names, _MOST_LISTED)}: {why}" for why, names in left_out.items()),
    )


async def _attempted(
    target: Target, targets: Targets, wanted: Wanted, now: datetime
) -> ObjectBackfills | BadUsage:
    """Return the backfills of an object, or why it can't be backfilled. Raises ServiceError."""
    latest = latest_runs(target.live)
    try:
        schedule = schedule_of(target, targets.live.dialect)
        chosen = await wanted.of(target, targets, schedule, now)
    except UnknownSchedule as error:
        return BadUsage(str(error))
    except BadUsage as error:
        return error
    tried = with_trial(schedule, chosen.backfills, latest)
    warnings = consequences_of(tried, schedule, chosen.gaps, latest) if tried else ()
    if tried:
        warnings += (*behaviour_of(target.kind).backfill_warnings(target.live.body),)
    live = target.live
    about = target.address, live.name, live.id, live.parent_id, target.parent_name
    return ObjectBackfills(*about, tried, warnings, chosen.notes, rows_of_a_run(latest))


def with_trial(
    schedule: Schedule, planned: Sequence[PlannedBackfill], latest: Sequence[Run]
) -> tuple[PlannedBackfill, ...]:
    """Return backfills of which the first has one interval if the last run failed.

    A few more failures pause the export and cancel its backfills (service.md, 14).
    """
    if not planned or not fails(latest):
        return tuple(planned)
    first, *others = planned
    if first.runs == 1:
        return replace(first, trial=True), *others
    trial = next(schedule.grid(first.start, first.end))
    return (
        PlannedBackfill(trial.start, trial.end, 1, trial=True),
        replace(first, start=trial.end, runs=first.runs - 1),
        *others,
    )


def fails(latest: Sequence[Run]) -> bool:
    """Return whether the last run that ended failed, other than by a billing limit."""
    ended = next((run for run in latest if run.completed or run.failed), None)
    return ended is not None and not ended.completed and ended.status != BILLING


def consequences_of(
    planned: Sequence[PlannedBackfill],
    schedule: Schedule,
    gaps: Sequence[Gap],
    latest: Sequence[Run],
) -> tuple[Consequence, ...]:
    """Return what readers should know before they approve, whatever the destination is."""
    consequences: list[Consequence] = []

    def warn(rule: str, message: str, severity: Severity = Severity.WARNING) -> None:
        consequences.append(Consequence(rule, severity, message))

    if any(item.trial for item in planned) and len(planned) > 1:
        warn(
            "last-run-failed",
            "the last run failed, so one interval is backfilled first, and the rest only if it "
            "completes; a few more failures cause a pause",
        )
    partly = sum(item.partly for item in planned)
    if partly:
        warn(
            "exported-in-part",
            f"{partly} of the intervals are exported in part, on another schedule; a backfill "
            "exports all of them again",
        )
    unpaid = any(gap.state is GapState.BILLING for gap in gaps)
    if latest and latest[0].status == BILLING:
        message = "the last run exceeded a billing limit; backfills fail until billing is settled"
        warn("billing-limit", message, Severity.DANGER)
    elif unpaid:
        warn("billing-limit", "intervals over a billing limit are left out; settle billing first")
    runs = sum(item.runs for item in planned)
    if runs > _MANY:
        message = f"{runs:,} runs follow one another; end them with `backfill NAME --cancel`"
        warn("many-runs", message, Severity.DANGER if runs > 10 * _MANY else Severity.WARNING)
    if schedule.paused:
        warn("stays-paused", "the pause remains, so later intervals are not exported")
    return tuple(consequences)
