"""The use case `plan --undo FILE`: undo a saved plan, or the last run of an audit log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reconciler.client import Transport
from reconciler.commands.files import read_file
from reconciler.commands.plan_request import PlanRequest
from reconciler.commands.planning import PlanResult
from reconciler.commands.runtime import Runtime
from reconciler.commands.session import Session
from reconciler.errors import BadUsage, StalePlan
from reconciler.kinds import all_kinds
from reconciler.model.action import Action
from reconciler.model.codec.log import read_log
from reconciler.model.codec.plan import InvalidPlanFile, decode
from reconciler.model.live import Live
from reconciler.model.logged_run import Ending, LoggedChange, LoggedRun
from reconciler.model.plan import Plan
from reconciler.model.plan_options import PlanOptions
from reconciler.planning.details import touched_by
from reconciler.planning.undo import AppliedPlan, undo_plan
from reconciler.workspace.loading import Loaded


def applied_plan(data: bytes, *, name: str) -> AppliedPlan:
    """Return what a saved plan or the last run with changes of an audit log says was applied.

    Raises InvalidPlanFile.
    """
    runs = read_log(data, name=name)
    if runs is None:
        return AppliedPlan(decode(data, name=name))
    # The run of a backfill may follow that of `unpause --backfill`.
    applied = [(run, run.plan) for run in runs if isinstance(run.plan, Plan)]
    if not applied:
        raise InvalidPlanFile(
            f"{name}: contains backfills only, which cannot be undone",
            hint="cancel them with: reconciler backfill --cancel",
        )
    return _applied_of(*next((it for it in reversed(applied) if it[1].effective), applied[-1]))


def _applied_of(run: LoggedRun, plan: Plan) -> AppliedPlan:
    """Return what a run applied. It may have been killed, so some of it may be uncertain."""
    unclear = (Ending.UNKNOWN, Ending.FAILED)
    return AppliedPlan(
        plan,
        done=_ids(logged for logged in run.changes if logged.ending is Ending.DONE),
        uncertain=_ids(
            logged
            for logged in run.changes
            if logged.wrote and logged.ending in unclear and not _is_found(logged)
        ),
        adopted=_ids(
            logged for logged in run.changes if logged.ending is Ending.ADOPTED or _is_found(logged)
        ),
        created={
            logged.change.address: logged.live_id
            for logged in run.changes
            if logged.change.action is Action.CREATE and logged.live_id is not None
        },
        stamps={
            logged.change.address: logged.stamp
            for logged in run.changes
            if logged.stamp is not None
        },
    )


def _is_found(logged: LoggedChange) -> bool:
    """Return whether a create ended with an object that another client may have created."""
    return logged.adopted and logged.change.action is Action.CREATE


def _ids(changes: Iterable[LoggedChange]) -> frozenset[str]:
    return frozenset(logged.change.id for logged in changes)


async def plan_undo(request: PlanRequest, file: Path, runtime: Runtime) -> PlanResult:
    """Plan the undo of a saved plan or an audit log.

    Raises:
        BadUsage: the request has options that change what is planned.
        InvalidPlanFile: the file is neither a plan nor an audit log.
        StalePlan: it was made for another environment.
        AmbiguousIdentity: as for a plan of this workspace.

    """
    if request.has_plan_options:
        raise BadUsage("--undo reverses a whole plan and takes no options that change it")
    session = Session.open(request.workspace, runtime)
    async with session.connected() as transport:
        plan, _ = await undo_of(session, transport, request.options, file)
        return PlanResult.of(plan, session, transport)


async def undo_of(
    session: Session, transport: Transport, options: PlanOptions, file: Path
) -> tuple[Plan, Live]:
    """Return the undo of a saved plan or an audit log, and the live state that it is made from.

    Raises InvalidPlanFile, StalePlan, AmbiguousIdentity, as `plan_undo` does.
    """
    applied = applied_plan(read_file(file), name=str(file))
    loaded = session.loaded
    _check_environment(applied, loaded, file)
    context = session.plan_context(options)
    return await session.settled(
        transport,
        await session.read(transport, in_full=touched_by(applied.plan)),
        lambda live: session.judged(
            lambda policy: undo_plan(
                applied, loaded.desired, live, policy, all_kinds(), context=context
            )
        ),
        needs=session.needed_details,
    )


def _check_environment(applied: AppliedPlan, loaded: Loaded, file: Path) -> None:
    source, desired = applied.plan.source, loaded.desired
    if (source.base_url, source.organization) != (desired.base_url, desired.organization):
        raise StalePlan(
            f"{file}: applied in environment {source.environment} "
            f"({source.base_url}, organization {source.organization})",
            hint="select that environment with -e",
        )
