"""The use case `drift`: what changed in live state since the git base. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.client import Transport
from reconciler.commands.plan_request import PlanRequest
from reconciler.commands.runtime import Reported, Runtime
from reconciler.commands.session import Session
from reconciler.errors import GitUnavailable
from reconciler.kinds import all_kinds
from reconciler.model.drift import Drift, DriftedObject
from reconciler.model.live import Live
from reconciler.model.naming import Named, Names
from reconciler.model.plan import Plan
from reconciler.operations.activity import OPERATION, attributed
from reconciler.operations.calls import ObjectCalls
from reconciler.planning.base import Base
from reconciler.planning.drift import drift_of


class DriftRequest(Struct, frozen=True):
    """What to compare: the resources that `names` select, all without names.

    `attribute`: read the activity log of what drifted, one call an object.
    """

    plan: PlanRequest
    names: tuple[str, ...] = ()
    attribute: bool = True


async def drift(request: DriftRequest, runtime: Runtime) -> Reported[Drift]:
    """Return what changed in live state since the git base.

    Raises:
        InvalidConfiguration, AmbiguousIdentity, ServiceError.
        GitUnavailable: there is no base to compare with.

    """
    session = Session.open(request.plan.workspace, runtime)
    async with session.connected() as transport:
        base = required_base(session, request.plan)
        plan, live = await session.planned(transport, request.plan.options, base)
        result = selected(drift_of(plan, base), plan, request.names)
        if request.attribute:
            result = await attributed(result, _calls_of(plan, live, transport))
        return Reported(result, session.warnings(plan), transport.calls)


def required_base(session: Session, request: PlanRequest) -> Base:
    """Return the git base, since which drift is what changed.

    Raises GitUnavailable without one, and for one that may be a commit of the change itself.
    """
    base = session.base(request)
    if base is None:
        raise GitUnavailable(
            "no git base to compare live state with",
            hint="run in a git clone in which the files are committed",
        )
    if not base.merged:
        branch = session.required_history().branch
        message = f"{branch} does not contain the base {base.commit[:7]}"
        raise GitUnavailable(message, hint=f"use --base with a commit of {branch}")
    return base


def selected(drift: Drift, plan: Plan, names: Sequence[str]) -> Drift:
    """Return the drift of the resources that texts name, all without texts.

    Raises BadUsage for a text that names nothing.
    """
    if not names:
        return drift
    known = Names(
        Named(change.address, (change.live_id,) if change.live_id else (), (change.name,))
        for change in {change.address: change for change in plan.changes}.values()
    )
    chosen = {item.address for text in names for item in known.named(text)}
    return replace(
        drift,
        objects=tuple(item for item in drift.objects if item.address in chosen),
        deleted=tuple(address for address in drift.deleted if address in chosen),
        renamed={address: name for address, name in drift.renamed.items() if address in chosen},
        compared=len(chosen),
    )


def _calls_of(
    plan: Plan, live: Live, transport: Transport
) -> Callable[[DriftedObject], ObjectCalls | None]:
    """Return a function that returns the operations of an object, None without activity."""
    objects = {(item.kind, item.id): item for kind in all_kinds() for item in live.of(kind.name)}
    kinds = {
        kind.name: kind
        for kind in all_kinds()
        if any(item.name == OPERATION and item.scope for item in kind.operations)
    }

    def calls(item: DriftedObject) -> ObjectCalls | None:
        kind = kinds.get(item.address.kind)
        body = objects.get((item.address.kind, item.live_id))
        if kind is None or body is None:
            return None
        return ObjectCalls(transport, kind, plan.source.organization, body, live.dialect)

    return calls
