"""The use case `backfill`: backfill a past time range of one resource."""

from __future__ import annotations

from reconciler.commands.runtime import Runtime, WorkspaceOptions
from reconciler.commands.session import Session
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.model.routes import Routes
from reconciler.model.wording import quoted
from reconciler.operations.backfill import Backfilled, past_range, start_backfill
from reconciler.planning.matcher import match


async def backfill(
    name: str, start: str, end: str, workspace: WorkspaceOptions, runtime: Runtime
) -> Backfilled:
    """Start a backfill of the resource with an address, from one ISO 8601 time to another.

    Raises:
        BadUsage: the address or the range is invalid.
        AmbiguousOutcome: no answer; the backfill may have started, and is not tried again.
        ServiceError: the service refused.

    """
    times = past_range(start, end, now=runtime.now())
    session = Session.open(workspace, runtime)
    desired, kinds = session.loaded.desired, {kind.name: kind for kind in all_kinds()}
    try:
        address = Address.parse(name)
    except ValueError as error:
        raise BadUsage(str(error)) from None
    if address not in desired.resources:
        addresses = ", ".join(str(address) for address in sorted(desired.resources)[:10])
        raise BadUsage(f"unknown resource {quoted(name)}", hint=f"use one of: {addresses}")
    kind = kinds[address.kind]
    if kind.backfill is None:
        raise BadUsage(f"a {kind.name} can't be backfilled")
    async with session.connected() as transport:
        matching, live = await session.settled(
            transport,
            await session.read(transport),
            lambda live: match(desired, live, policy=session.loaded.policy, kinds=all_kinds()),
        )
        target = matching.matches[address].live
        if target is None:
            raise ReconcilerError(f"{address} does not exist yet", hint="apply it first")
        routes = Routes(kind, desired.organization, target.parent_id)
        return await start_backfill(
            transport, routes, kind.backfill, target, times, dialect=live.dialect
        )
