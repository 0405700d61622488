"""The use case `plan`: load the configuration, read live state, plan, estimate the calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from reconciler.commands.runtime import Workspace
from reconciler.commands.session import Session
from reconciler.diagnostics import Diagnostic
from reconciler.git.ci import is_job
from reconciler.kinds import all_kinds
from reconciler.model.kind import Action, Kind, containers
from reconciler.model.plan import Note, Plan
from reconciler.model.redaction import masked_in
from reconciler.model.settings import PlanOptions
from reconciler.service.access import known_key
from reconciler.service.pace import Estimate
from reconciler.service.transport import Transport

_CALLS = {Action.REPLACE: 5, Action.NO_OP: 0}
"""The calls of an action that is not one write: a replacement checks, creates, checks again,
deletes and renames."""
_PAGE = 100
_KEY_MAY_WRITE = Note(
    "key-may-write",
    "the API key of this job may write: plan pull requests with a key that only reads",
)


def calls_of(plan: Plan, kinds: Sequence[Kind]) -> int:
    """Return about how many calls applying a plan takes, and verifying it.

    Lists of the names are read before and after the creates of a kind, and at the end.
    """
    if plan.empty:
        return 0
    sizes = Counter(change.address.kind for change in plan.changes)
    sizes += Counter(unmanaged.address.kind for unmanaged in plan.unmanaged)
    calls, checked_again, parents = 0, 0, containers(kinds)
    for change in plan.sending:
        calls += _CALLS.get(change.action, 1) + (change.after_create is not None)
        # What is in an object to delete is listed.
        calls += change.action is Action.DELETE and change.address.kind in parents
    for kind in kinds:
        survey = max(1, ceil(sizes[kind.name] / _PAGE))
        scopes = {
            (change.parent_id, change.parent)
            for change in plan.effective
            if change.address.kind == kind.name and change.action in (Action.CREATE, Action.REPLACE)
        }
        lists = min(len(scopes), survey) if kind.paths.survey is not None else len(scopes)
        calls += 2 * lists + survey
        if lists:
            # What was created before the last creates is checked again.
            calls += checked_again
            checked_again = lists
    return calls


class PlanResult(Struct, frozen=True):
    """A plan with known secrets masked, warnings about the files, and the number of calls.

    `estimate` is what applying it takes.
    """

    plan: Plan
    diagnostics: tuple[Diagnostic, ...]
    calls: int
    estimate: Estimate

    @classmethod
    def of(cls, plan: Plan, session: Session, transport: Transport) -> PlanResult:
        """Return a plan as it may be printed and saved."""
        return cls(
            masked_in(plan, session.mask),
            session.warnings(plan),
            transport.calls,
            transport.estimate(calls_of(plan, all_kinds())),
        )


async def plan(workspace: Workspace, options: PlanOptions | None = None) -> PlanResult:
    """Read live state and return the plan of all resources, or what `options` say. Changes nothing.

    Raises InvalidConfiguration, GitUnavailable, BadUsage, ServiceError.
    """
    session, options = Session.open(workspace), options or PlanOptions()
    async with session.connected() as transport:
        inventory = session.inventory(options)
        planned, _ = await session.planned(transport, options, inventory)
        key = await known_key(transport) if is_job(workspace.runtime.environ) else None
        if key is not None and key.may_write:
            planned = replace(planned, notes=(*planned.notes, _KEY_MAY_WRITE))
        return PlanResult.of(await session.named(transport, planned), session, transport)
