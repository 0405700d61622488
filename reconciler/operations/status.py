"""The use case `status`: the state of every live object that runs, from the lists only."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from msgspec import Struct, field

from reconciler.commands.options import WorkspaceOptions
from reconciler.commands.runtime import Reported, Runtime
from reconciler.commands.session import Session
from reconciler.model.action import Action
from reconciler.model.address import Address
from reconciler.model.plan_options import PlanOptions
from reconciler.model.status import StatusReport
from reconciler.operations.targets import Target, read_targets
from reconciler.planning.status import Judged, status_of, worst_first


class StatusRequest(Struct, frozen=True):
    """Whose state to show.

    `names` select exports and `parents` projects, all without any, by address, id, key, name or
    glob.
    """

    workspace: WorkspaceOptions
    names: Sequence[str] = ()
    parents: Sequence[str] = field(default=())


async def status(request: StatusRequest, runtime: Runtime) -> Reported[StatusReport]:
    """Read live state and return the state of exports.

    Raises:
        InvalidConfiguration, AmbiguousIdentity, ServiceError.
        BadUsage: a name matches nothing.

    """
    session = Session.open(request.workspace, runtime)
    async with session.connected() as transport:
        targets = await read_targets(session, transport, "runs")
        calls, now = transport.calls, session.now(transport)
    # Made from what is already read, so fields that lists do not have count as unchanged.
    plan = session.plan(targets.live, PlanOptions())
    chosen = targets.chosen(request.names, request.parents)
    connection = session.loaded.reachable()
    differing = {change.address for change in plan.changes if change.action is not Action.NO_OP}
    states = [
        status_of(
            _judged(target, differing, connection.base_url),
            targets.live.dialect,
            now,
        )
        for target in chosen
    ]
    report = StatusReport(
        environment=session.loaded.desired.environment,
        base_url=connection.base_url,
        organization=targets.organization,
        at=now,
        exports=worst_first(states),
        missing=() if request.names or request.parents else targets.missing,
    )
    return Reported(report, session.warnings(plan), calls)


def _judged(target: Target, differing: set[Address], base_url: str) -> Judged:
    live, managed = target.live, target.resource is not None
    page = None
    if target.kind.page and live.parent_id is not None:
        path = target.kind.page.format(parent=quote(live.parent_id), id=quote(live.id))
        page = f"{base_url}{path}"
    return Judged(
        address=target.address,
        live=live,
        parent_name=target.parent_name or live.parent_id,
        managed=managed,
        differs=target.address in differing if managed else None,
        page=page,
    )
