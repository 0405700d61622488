"""The use case `plan --undo FILE`: the way back from a saved plan or an audit log."""

from __future__ import annotations

from typing import Any

import orjson

from reconciler.commands.planning import (
    Planned,
    PlanRequest,
    connected,
    load_workspace,
    read_for,
    resolver_for,
)
from reconciler.commands.runtime import Runtime
from reconciler.errors import StalePlan
from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.planning.planfile import NoPlan, decode
from reconciler.planning.planner import Circumstances
from reconciler.planning.undo import Undone, undo_plan
from reconciler.version import __version__


def undone_of(data: bytes) -> Undone:
    """What a file tells of a run: a saved plan, or the last run of an audit log. Raises NoPlan."""
    events = _events(data)
    if events is None:
        return Undone(decode(data))
    starts = [at for at, each in enumerate(events) if each.get("event") == "planned"]
    if not starts:
        raise NoPlan("this audit log holds no plan")
    run = events[starts[-1] :]
    done = [each for each in run if each.get("event") == "done"]
    return Undone(
        plan=decode(orjson.dumps(run[0]["plan"])),
        done=frozenset(f"{each['address']}:{each['action']}" for each in done),
        created={
            Address.parse(each["address"]): str(each["id"])
            for each in done
            if each["action"] == "create"
        },
    )


def _events(data: bytes) -> list[dict[str, Any]] | None:
    """The lines of an audit log, None for anything else."""
    events = []
    for line in data.splitlines():
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError:
            return None
        if not isinstance(event, dict) or "event" not in event:
            return None
        events.append(event)
    return events or None


async def plan_undo(request: PlanRequest, data: bytes, runtime: Runtime) -> Planned:
    """Plan the way back.

    Raises:
        NoPlan: the file is neither a plan nor an audit log.
        StalePlan: it was made for another environment.

    """
    undone = undone_of(data)
    loaded = load_workspace(request.workspace, runtime.environ)
    source = undone.plan.source
    here = (loaded.desired.base_url, loaded.desired.organization)
    if (source.base_url, source.organization) != here:
        raise StalePlan(
            f"what is to be undone was done in environment {source.environment} "
            f"({source.base_url}, organization {source.organization})",
            hint="name that environment with -e",
        )
    resolver = resolver_for(loaded, runtime.environ)
    async with connected(loaded, resolver, runtime) as service:
        live = await read_for(service, loaded, loaded.desired)
        given = Circumstances(now=runtime.now(), tool_version=__version__)
        made = undo_plan(undone, loaded.desired, live, loaded.policy, all_kinds(), given=given)
        calls = service.calls.total
    return Planned(made, loaded, live, calls, resolver.mask)
