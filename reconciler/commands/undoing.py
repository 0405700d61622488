"""The use case `plan --undo FILE`: undo a saved plan, or the last run of an audit log."""

from __future__ import annotations

from reconciler.commands.planning import (
    PlanRequest,
    PlanResult,
    connected,
    load_workspace,
    read_for,
    resolver_for,
)
from reconciler.commands.runtime import Runtime
from reconciler.errors import StalePlan
from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.model.change import Action
from reconciler.model.codec.event import DoneLine, last_run
from reconciler.model.codec.plan import decode
from reconciler.planning.planner import Circumstances
from reconciler.planning.undo import AppliedPlan, undo_plan
from reconciler.version import __version__


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


async def plan_undo(
    request: PlanRequest, data: bytes, runtime: Runtime, *, name: str
) -> PlanResult:
    """Plan the undo of a file; `name` is that of the file, for errors.

    Raises:
        InvalidPlanFile: the file is neither a plan nor an audit log.
        StalePlan: it was made for another environment.
        AmbiguousIdentity: as for a plan of this workspace.

    """
    applied = applied_plan(data, name=name)
    loaded = load_workspace(request.workspace, runtime.environ)
    source = applied.plan.source
    if (source.base_url, source.organization) != (
        loaded.desired.base_url,
        loaded.desired.organization,
    ):
        raise StalePlan(
            f"{name}: applied in environment {source.environment} "
            f"({source.base_url}, organization {source.organization})",
            hint="select that environment with -e",
        )
    resolver = resolver_for(loaded, runtime.environ)
    async with connected(loaded, resolver, runtime) as service:
        live = await read_for(service, loaded, loaded.desired)
        given = Circumstances(now=runtime.now(), tool_version=__version__)
        plan = undo_plan(applied, loaded.desired, live, loaded.policy, all_kinds(), given=given)
        calls = service.calls.total
    return PlanResult(plan, loaded, live, calls, resolver.mask)
