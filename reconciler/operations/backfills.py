"""The use case `backfill`: plan backfills of objects, show them, get approval, start them.

A backfill exports the range that was named, or gaps of a window.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from reconciler.client import together
from reconciler.commands.applying import no_terminal
from reconciler.commands.lock import only_apply
from reconciler.commands.recording import Outputs, recording
from reconciler.commands.runtime import Workspace
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.kinds import behaviour_of
from reconciler.model.backfill_plan import (
    BackfillEnd,
    BackfillPlan,
    ObjectBackfills,
    PlannedBackfill,
)
from reconciler.model.event import BackfillsEnded, BackfillsPlanned
from reconciler.model.plan import Consequence, PlanSource, Severity
from reconciler.model.run import BILLING, Run
from reconciler.model.text import listed, quoted, several
from reconciler.model.times import Schedule, UnknownSchedule
from reconciler.operations.backfill_ranges import Wanted
from reconciler.operations.backfilling import Backfiller, run_all
from reconciler.operations.gaps import Gap, GapState, rows_of_a_run, schedule_of
from reconciler.operations.runs import latest_runs
from reconciler.operations.targets import Target, Targets, opened
from reconciler.planning.approval import Approval, confirmed, typed
from reconciler.render.words import label_of
from reconciler.version import __version__

_MOST_LISTED = 5
_MANY = 1_000
"""More runs of an export than a backfill of a month has; ten times as many are a danger."""


class Backfilled(Struct, frozen=True):
    """How the backfills of a plan ended; none for a dry run. `calls` counts all requests."""

    plan: BackfillPlan
    calls: int
    report: BackfillsEnded = BackfillsEnded(())
    problems: tuple[str, ...] = ()

    @property
    def ends(self) -> tuple[BackfillEnd, ...]:
        """How the backfills of all objects ended."""
        return tuple(end for item in self.report.objects for end in item.ends)


async def backfill(  # noqa: PLR0913 - the options of the command
    workspace: Workspace,
    names: Sequence[str],
    wanted: Wanted,
    *,
    projects: Sequence[str] = (),
    approve: Callable[[BackfillPlan], Awaitable[bool]] | None = None,
    auto_approve: bool = False,
    dry_run: bool = False,
    wait: bool = False,
    outputs: Outputs | None = None,
    show: Callable[[BackfillPlan], None] = lambda _: None,
) -> Backfilled:
    """Plan backfills of objects, get approval, and start them; `wait` until they ended.

    `names` select exports and `projects` projects, by address, id, key, name or glob. `wanted` is
    a range, the gaps of a window, or what the last pause skipped. `dry_run` only plans. `show` is
    called with the plan.

    Raises:
        BadUsage: the range is invalid, a name matches nothing, or there is no way to approve;
            nothing was sent.
        ServiceError: live state can't be read; nothing was sent.
        ReconcilerError: not approved; nothing was sent.

    """
    if not (names or projects):
        raise BadUsage("no export is named", hint="pass NAME or --project; '*' is every export")
    async with opened(workspace, "backfill") as targets, AsyncExitStack() as stack:
        runtime, transport = workspace.runtime, targets.transport
        now = targets.now()
        plan = await _plan(targets.chosen(names, projects), targets, wanted, now)
        shown = workspace.masked(plan)
        show(shown)
        if dry_run or not plan.backfills:
            return Backfilled(shown, transport.calls)
        if not auto_approve:
            if approve is None:
                raise no_terminal(", or --dry-run to see the backfills")
            if not await approve(shown):
                raise ReconcilerError("not approved; nothing was sent")
        await stack.enter_async_context(only_apply(transport))
        mask = targets.session.mask
        bus = stack.enter_context(recording(outputs or Outputs(), runtime, mask))
        stack.enter_context(transport.reporting_to(bus))
        bus(BackfillsPlanned(plan))
        objects = [item for item in plan.objects if item.backfills]
        ended = await run_all([_backfiller(item, targets, now) for item in objects], wait=wait)
        started = tuple(replace(item, ends=ends) for item, ends in zip(objects, ended, strict=True))
        report = BackfillsEnded(started, interrupted=runtime.stop.requested.is_set())
        bus(report)
        made = {item.address: item for item in started}
        plan = replace(plan, objects=tuple(made.get(it.address, it) for it in plan.objects))
        return workspace.masked(Backfilled(plan, transport.calls, report, bus.problems))


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


def _backfiller(planned: ObjectBackfills, targets: Targets, now: datetime) -> Backfiller:
    """Return what starts the backfills of an object."""
    target = next(it for it in targets.objects if it.live.id == planned.live_id)
    schedule = schedule_of(target, targets.live.dialect)
    return Backfiller(targets.calls(target), schedule, now, planned.backfills)


async def _plan(
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
    return ObjectBackfills(
        target.address,
        target.live.name,
        target.live.id,
        target.live.parent_id,
        target.parent_name,
        tried,
        warnings,
        chosen.notes,
        rows_of_a_run(latest),
    )


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
    runs = sum(item.runs for item in planned)
    if runs > _MANY:
        message = f"{runs:,} runs follow one another; end them with `backfill NAME --cancel`"
        warn("many-runs", message, Severity.DANGER if runs > 10 * _MANY else Severity.WARNING)
    if schedule.paused:
        warn("stays-paused", "it stays paused, so later intervals are not exported")
    return tuple(consequences)
