"""The use case `backfill`: plan backfills of objects, show them, get approval, start them.

A backfill exports the range that was named, or gaps of a window.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from reconciler.client import Transport, together
from reconciler.commands.lock import only_apply
from reconciler.commands.recording import Outputs, recording
from reconciler.commands.runtime import Workspace
from reconciler.commands.session import Session
from reconciler.errors import BadUsage, ReconcilerError
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
from reconciler.model.times import (
    Schedule,
    UnknownSchedule,
)
from reconciler.operations.backfill_ranges import NotPossible, Wanted
from reconciler.operations.backfilling import Backfiller, run_all
from reconciler.operations.gaps import Gap, GapState, rows_of_a_run
from reconciler.operations.runs import latest_runs
from reconciler.operations.targets import Target, Targets, read_targets
from reconciler.planning.approval import Approval, confirmed, typed
from reconciler.version import __version__

_MOST_LISTED = 5
_MANY = 1_000
"""More runs of an export than a backfill of a month has; ten times as many are a danger."""


class Screen(Struct, frozen=True):
    """What is shown: the plan, and that sending begins."""

    show: Callable[[BackfillPlan], None] = lambda _: None
    begin: Callable[[], None] = lambda: None


class Backfilled(Struct, frozen=True):
    """How the backfills of a plan ended; none for a dry run. `calls` counts all requests."""

    plan: BackfillPlan
    calls: int
    report: BackfillsEnded = BackfillsEnded(())
    problems: tuple[str, ...] = ()

    @property
    def ended(self) -> tuple[ObjectBackfills, ...]:
        """The objects whose backfills were to be started."""
        return self.report.objects

    @property
    def ends(self) -> tuple[BackfillEnd, ...]:
        """How the backfills of all objects ended."""
        return tuple(end for item in self.ended for end in item.ends)

    @property
    def complete(self) -> bool:
        """Whether every backfill was started, or ended well."""
        return self.report.complete


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
    screen: Screen | None = None,
) -> Backfilled:
    """Plan backfills of objects, get approval, and start them; `wait` until they ended.

    `names` select exports and `projects` projects, by address, id, key, name or glob. `wanted` is
    a range, the gaps of a window, or what the last pause skipped. `dry_run` only plans.

    Raises:
        BadUsage: the range is invalid, a name matches nothing, or there is no way to approve;
            nothing was sent.
        ServiceError: live state can't be read; nothing was sent.
        ReconcilerError: not approved; nothing was sent.

    """
    if not (names or projects):
        raise BadUsage("no export is named", hint="pass NAME or --project; '*' is every export")
    screen = screen or Screen()
    session = Session.open(workspace)
    async with session.connected() as transport, AsyncExitStack() as stack:
        targets = await read_targets(session, transport, "backfill")
        planner = _Planner(wanted, session, transport, targets, session.now(transport))
        plan = await planner.plan(targets.chosen(names, projects))
        shown = workspace.masked(plan)
        screen.show(shown)
        if dry_run or not plan.backfills:
            return Backfilled(shown, transport.calls)
        if not auto_approve and approve is None:
            raise BadUsage(
                "no terminal to ask for approval; nothing was sent",
                hint="pass --auto-approve, or --dry-run to see the backfills",
            )
        if not auto_approve and approve is not None and not await approve(shown):
            raise ReconcilerError("not approved; nothing was sent")
        await stack.enter_async_context(only_apply(transport))
        runtime = workspace.runtime
        bus = stack.enter_context(recording(outputs or Outputs(), runtime, session.mask))
        stack.enter_context(transport.reporting_to(bus))
        bus(BackfillsPlanned(plan))
        screen.begin()
        objects = [item for item in plan.objects if item.backfills]
        ended = await run_all([planner.backfiller(item) for item in objects], wait=wait)
        ends = {item.address: ends for item, ends in zip(objects, ended, strict=True)}
        made = tuple(replace(item, ends=ends.get(item.address, ())) for item in plan.objects)
        started = tuple(item for item in made if item.ends)
        report = BackfillsEnded(started, interrupted=runtime.stop.requested.is_set())
        bus(report)
        ran = Backfilled(replace(plan, objects=made), transport.calls, report, bus.problems)
        return workspace.masked(ran)


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


class _Planner(Struct):
    """Plans backfills of what is wanted."""

    wanted: Wanted
    session: Session
    transport: Transport
    targets: Targets
    now: datetime

    def backfiller(self, planned: ObjectBackfills) -> Backfiller:
        """Return what starts the backfills of an object."""
        target = next(it for it in self.targets.objects if it.live.id == planned.live_id)
        calls = self.targets.calls(target, self.transport)
        return Backfiller(calls, self.schedule(target), self.now, planned.backfills)

    def schedule(self, target: Target) -> Schedule:
        """Return the schedule of an object. Raises BadUsage for one that can't be backfilled."""
        try:
            schedule = Schedule.of(target.live.body, self.targets.live.dialect)
        except UnknownSchedule as error:
            raise NotPossible(str(error)) from None
        if not schedule.works:
            raise BadUsage(f"the server never runs exports with interval '{schedule.interval}'")
        return schedule

    async def plan(self, targets: Sequence[Target]) -> BackfillPlan:
        """Return the backfills of objects. Raises BadUsage, ServiceError.

        Of several objects, those that can't be backfilled are left out.
        """
        planned = await together(map(self._attempted, targets))
        objects = [item for item in planned if isinstance(item, ObjectBackfills)]
        left_out: dict[str, list[str]] = {}
        for target, item in zip(targets, planned, strict=True):
            if isinstance(item, ReconcilerError):
                if not objects:
                    raise item
                left_out.setdefault(item.message, []).append(str(target.address))
        several_named, of = len(targets) > 1, self.session.loaded.desired
        where = of.environment, of.organization, of.base_url
        return BackfillPlan(
            PlanSource(*where, __version__, self.targets.live.dialect),
            tuple(it for it in objects if it.backfills or it.notes or not several_named),
            self.now.isoformat(),
            tuple(f"{listed(names, _MOST_LISTED)}: {why}" for why, names in left_out.items()),
        )

    async def _attempted(self, target: Target) -> ObjectBackfills | ReconcilerError:
        try:
            return await self._of(target)
        except (BadUsage, NotPossible) as error:
            return error

    async def _of(self, target: Target) -> ObjectBackfills:
        """Return the backfills of one object. Raises BadUsage, ServiceError."""
        schedule, latest = self.schedule(target), latest_runs(target.live)
        chosen = await self.wanted.of(target, schedule, self)
        tried = with_trial(schedule, chosen.backfills, latest)
        warnings = consequences_of(tried, schedule, chosen.gaps, latest) if tried else ()
        if tried:
            warnings += (*target.kind.behaviour().backfill_warnings(target.live.body),)
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
