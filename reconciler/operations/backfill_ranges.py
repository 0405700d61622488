"""Which ranges a backfill exports: those of gaps, of a window, or of failed runs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, time

from msgspec.structs import replace

from reconciler.errors import BadUsage
from reconciler.model.backfill_plan import BackfillPlan, PlannedBackfill
from reconciler.model.plan import Consequence, Severity
from reconciler.model.run import BILLING, Run
from reconciler.model.text import printable, quoted, several
from reconciler.model.times import Interval, Schedule, is_date, moment_of
from reconciler.operations.gaps_report import Gap, GapState
from reconciler.planning.approval import Approval, confirmed, typed

_SHOWN = "%Y-%m-%dT%H:%M:%SZ"


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


def of_range(schedule: Schedule, whole: Interval) -> PlannedBackfill:
    """Return the backfill of a range of whole intervals."""
    runs = sum(1 for _ in schedule.grid(whole.start, whole.end))
    return PlannedBackfill(whole.start, whole.end, runs)


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


def consequences_of(
    planned: Sequence[PlannedBackfill],
    schedule: Schedule,
    gaps: Sequence[Gap],
    latest: Sequence[Run],
) -> tuple[Consequence, ...]:
    """Return what readers should know before they approve, whatever the destination is."""
    listed: list[Consequence] = []

    def warn(rule: str, message: str, severity: Severity = Severity.WARNING) -> None:
        listed.append(Consequence(rule, severity, message))

    if any(item.trial for item in planned) and len(planned) > 1:
        warn(
            "last-run-failed",
            "the last run failed, so one interval is backfilled first, and the rest only if it "
            "completes; a few more failures would pause it",
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
    if schedule.paused:
        warn("stays-paused", "it stays paused, so later intervals are not exported")
    return tuple(listed)


def retry_of(run: Run) -> tuple[PlannedBackfill, tuple[str, ...]]:
    """Return the retry of a run, and notes on it.

    Raises BadUsage for a run that has not ended, and for one without a start.
    """
    name = f"run {printable(run.id)}"
    if run.pending:
        hint = "wait until it ends, or cancel it with --cancel"
        raise BadUsage(f"{name} has not ended: {printable(run.status)}", hint=hint)
    if run.start is None or run.end is None:
        hint = "pass the range to backfill: reconciler backfill NAME --from TIME --to TIME"
        raise BadUsage(f"{name} exports all data up to its end, without a start", hint=hint)
    notes = (f"{name} completed; the retry exports its interval again",) * run.completed
    return PlannedBackfill(run.start, run.end, 1, run=run.id), notes


def retries_of_failed(
    failed: Iterable[Run], known: Sequence[Run]
) -> tuple[list[PlannedBackfill], tuple[str, ...]]:
    """Return a retry of each interval that no other run exported, by time, and notes.

    `failed` are the runs to retry, the newest first, and `known` all runs of their intervals.
    """
    settled = {(run.start, run.end) for run in known if run.completed or run.pending}
    latest: dict[tuple[datetime | None, datetime | None], Run] = {}
    for run in failed:
        latest.setdefault((run.start, run.end), run)
    left = [run for interval, run in latest.items() if interval not in settled]
    planned = [
        PlannedBackfill(run.start, run.end, 1, run=run.id)
        for run in left
        if run.status != BILLING and run.start is not None and run.end is not None
    ]
    rest = several(len(left) - len(planned), "run")
    notes = (f"{rest} left out: over a billing limit, or without a start",)
    return sorted(planned, key=lambda item: item.start), notes * (len(left) > len(planned))
