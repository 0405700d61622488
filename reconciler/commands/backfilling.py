"""The use case `backfill`: make up for a past range of one export. Never repeated by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from reconciler.client import Service
from reconciler.commands.planning import connected, load_workspace, read_for, resolver_for
from reconciler.commands.runtime import Runtime, WorkspaceOptions
from reconciler.errors import AmbiguousOutcome, BadUsage, NotFound, ReconcilerError
from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.model.field_types import Instant
from reconciler.model.kind import Backfill, Kind
from reconciler.model.live import LiveObject
from reconciler.model.request import Repeat, Request
from reconciler.planning.matcher import match
from reconciler.planning.requests import Place, object_path


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """Which export, and from when to when (aware datetimes)."""

    workspace: WorkspaceOptions
    address: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Backfilled:
    """What was asked for, as it was sent. `identity` is the backfill's, where the server tells."""

    address: Address
    start: str
    end: str
    identity: str | None


def parse_instant(text: str, *, option: str) -> datetime:
    """Return the instant of an ISO 8601 text, UTC where it has no offset. Raises BadUsage."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise BadUsage(
            f"invalid time '{text}' in {option}", hint="write it like 2026-01-31T00:00:00Z"
        ) from None
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant


async def backfill(request: BackfillRequest, runtime: Runtime) -> Backfilled:
    """Start a backfill.

    Raises:
        BadUsage: the address is none, or the range is empty or ends in the future.
        AmbiguousOutcome: the answer was lost; it may have begun, and is not tried again.
        ServiceError: the service refused.

    """
    if request.start >= request.end:
        raise BadUsage("the range is empty: --start must be before --end")
    if request.end > runtime.now():
        raise BadUsage("the range ends in the future: only what has passed can be backfilled")
    loaded = load_workspace(request.workspace, runtime.environ)
    address = _address(request.address)
    if address not in loaded.desired.resources:
        known = ", ".join(str(each) for each in sorted(loaded.desired.resources)[:10])
        raise BadUsage(f"there is no resource {address}", hint=f"there are: {known}")
    kinds = {kind.name: kind for kind in all_kinds()}
    kind = kinds[address.kind]
    if kind.backfill is None:
        raise BadUsage(f"a {kind.name} has no runs to backfill")
    resolver = resolver_for(loaded, runtime.environ)
    async with connected(loaded, resolver, runtime) as service:
        live = await read_for(service, loaded)
        found = match(loaded.desired, live, policy=loaded.policy, kinds=all_kinds())
        target = found.matches[address].live
        if target is None:
            raise ReconcilerError(f"{address} is not live yet", hint="apply it first")
        by_date = kind.backfill.by_date(target.body, live.dialect)
        start, end = (_bound(each, by_date=by_date) for each in (request.start, request.end))
        identity = await _begin(
            service, kind, kind.backfill, target, {"start_at": start, "end_at": end}
        )
    return Backfilled(address, start, end, identity)


def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError as error:
        raise BadUsage(str(error)) from None


def _bound(moment: datetime, *, by_date: bool) -> str:
    return moment.date().isoformat() if by_date else str(Instant().canonical(moment))


async def _begin(
    service: Service, kind: Kind, way: Backfill, target: LiveObject, body: dict[str, Any]
) -> str | None:
    """Ask at the first address that is there. A repeat could begin a second one (trap 28)."""
    base = object_path(kind, Place(service.organization, target.parent_id), target.id)
    for path in way.paths:
        try:
            answer = await service.send(
                Request("POST", f"{base}{path}/", Repeat.AFTER_LOOKING, body=body)
            )
        except NotFound:
            continue
        except AmbiguousOutcome as error:
            error.hint = "look at the runs of the export before you try again"
            raise
        found = answer.body if isinstance(answer.body, dict) else {}
        return str(found["backfill_id"]) if "backfill_id" in found else None
    raise NotFound(_nowhere(way.paths), hint="this server can't backfill", status=404)


def _nowhere(paths: Sequence[str]) -> str:
    return f"the service knows none of: {', '.join(paths)}"
