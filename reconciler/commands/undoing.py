"""The use case `plan --undo FILE`: undo a saved plan, or the last run of an audit log."""

from __future__ import annotations

from pathlib import Path

from reconciler.commands.files import read_file
from reconciler.commands.planning import PlanResult
from reconciler.commands.runtime import PlanRequest, Runtime
from reconciler.commands.session import Session
from reconciler.errors import BadUsage, StalePlan
from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.model.change import Action
from reconciler.model.codec.event import DoneLine, last_run
from reconciler.model.codec.plan import decode
from reconciler.planning.undo import AppliedPlan, undo_plan
from reconciler.workspace import Loaded


def applied_plan(data: bytes, *, name: str) -> AppliedPlan:
    """Return what a saved plan or an audit log says was applied. Raises InvalidPlanFile."""
    run = last_run(data, name=name)
    if run is None:
        return AppliedPlan(decode(data, name=name))
    plan, lines = run
    done = [line for line in lines if isinstance(line, DoneLine)]
    return AppliedPlan(
        plan,
        done=frozenset(line.change_id for line in done),
        created={
            Address.parse(line.address): line.id
            for line in done
            if line.action is Action.CREATE and line.id is not None
        },
    )


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
    applied = applied_plan(read_file(file), name=str(file))
    session = Session.open(request.workspace, runtime)
    loaded = session.loaded
    _check_environment(applied, loaded, file)
    async with session.connected() as transport:
        live = await session.read(transport, may_delete=True)
        context = session.plan_context(request.options)
        plan = undo_plan(applied, loaded.desired, live, loaded.policy, all_kinds(), context=context)
        return PlanResult.of(plan, session, transport)


def _check_environment(applied: AppliedPlan, loaded: Loaded, file: Path) -> None:
    source, desired = applied.plan.source, loaded.desired
    if (source.base_url, source.organization) != (desired.base_url, desired.organization):
        raise StalePlan(
            f"{file}: applied in environment {source.environment} "
            f"({source.base_url}, organization {source.organization})",
            hint="select that environment with -e",
        )
