"""The use case `backfill`: backfill a past time range of one resource."""

from __future__ import annotations

from collections.abc import Container

from reconciler.commands.runtime import Runtime, WorkspaceOptions
from reconciler.commands.session import Session
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.model.live import LiveObject
from reconciler.model.naming import Named, Names
from reconciler.model.resource import Desired
from reconciler.model.routes import Routes
from reconciler.operations.backfill import Backfilled, past_range, start_backfill
from reconciler.planning.matcher import Matching, match


async def backfill(
    name: str, start: str, end: str, workspace: WorkspaceOptions, runtime: Runtime
) -> tuple[Address, Backfilled]:
    """Start a backfill of the resource that a text names, from one ISO 8601 time to another.

    Raises:
        BadUsage: the range is invalid, or the text names no resource, several, or an object that
            is unmanaged or can't be backfilled.
        AmbiguousOutcome: no answer; the backfill may have started, and is not tried again.
        ServiceError: the service refused.

    """
    times = past_range(start, end, now=runtime.now())
    session = Session.open(workspace, runtime)
    desired = session.loaded.desired
    kinds = {kind.name: kind for kind in all_kinds() if kind.backfill is not None}
    _check_before_reading(name, desired, kinds)
    async with session.connected() as transport:
        matching, live = await session.settled(
            transport,
            await session.read(transport),
            lambda live: match(desired, live, policy=session.loaded.policy, kinds=all_kinds()),
        )
        address, target = _target(name, matching, kinds)
        routes = Routes(kinds[address.kind], desired.organization, target.parent_id)
        started = await start_backfill(transport, routes, target, times, dialect=live.dialect)
        return address, started


def _check_before_reading(name: str, desired: Desired, kinds: Container[str]) -> None:
    """Raise BadUsage for an address that no resource has, and for what can't be backfilled."""
    names = Names(map(Named.of_resource, desired.resources.values()))
    named = names.matching(name)
    if not named and name.partition(".")[0] in kinds:
        raise names.nothing(name)
    if named and all(item.address.kind not in kinds for item in named):
        raise BadUsage(f"a {named[0].address.kind} can't be backfilled")


def _target(name: str, matching: Matching, kinds: Container[str]) -> tuple[Address, LiveObject]:
    """Return the resource that a text names, and its live object."""
    matches = {
        address: match for address, match in matching.matches.items() if address.kind in kinds
    }
    unmanaged = [item for item in matching.unmanaged if item.kind in kinds]
    named = Names(
        [
            *(Named.of_resource(match.resource, match.live) for match in matches.values()),
            *map(Named.of_live, unmanaged),
        ]
    ).one(name)
    if named.address not in matches:
        raise BadUsage(
            f"{named.label} is unmanaged", hint=f"import it: reconciler import --id {named.ids[0]}"
        )
    live = matches[named.address].live
    if live is None:
        raise ReconcilerError(f"{named.address} does not exist yet", hint="apply it first")
    return named.address, live
