"""The use case `plan`: load the configuration, read live state, plan. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from reconciler.client import Transport
from reconciler.client.limits import Estimate
from reconciler.commands.options import PlanRequest
from reconciler.commands.runtime import Runtime
from reconciler.commands.session import Session
from reconciler.diagnostics import Diagnostic
from reconciler.kinds import all_kinds
from reconciler.model.plan import Note, Plan
from reconciler.model.plan_redaction import redact_plan
from reconciler.planning.estimate import calls_of
from reconciler.reading.access import key_may_write
from reconciler.workspace.git.ci import is_job

_KEY_MAY_WRITE = Note(
    "key-may-write",
    "the API key of this job may write: plan pull requests with a key that only reads",
)


class PlanResult(Struct, frozen=True):
    """A plan with known secrets masked, warnings about the files, and the number of calls.

    `estimate` is what applying it takes.
    """

    plan: Plan
    diagnostics: tuple[Diagnostic, ...]
    calls: int
    estimate: Estimate

    @classmethod
    def of(
        cls, plan: Plan, session: Session, transport: Transport, *, verify: bool = True
    ) -> PlanResult:
        """Return a plan as it may be printed and saved. `verify` plans again after an apply."""
        return cls(
            redact_plan(plan, session.mask),
            session.warnings(plan),
            transport.calls,
            transport.estimate(calls_of(plan, all_kinds(), verify=verify)),
        )


async def plan(
    request: PlanRequest, runtime: Runtime, *, drafts: Mapping[str, str] | None = None
) -> PlanResult:
    """Make a plan. `drafts` are texts that replace or add files, by path.

    Raises:
        InvalidConfiguration, AmbiguousIdentity, GitUnavailable, ServiceError.

    """
    session = Session.open(request.workspace, runtime, drafts=drafts)
    async with session.connected() as transport:
        base = session.base(request)
        planned, _ = await session.planned(transport, request.options, base)
        if is_job(runtime.environ) and await key_may_write(transport):
            planned = replace(planned, notes=(*planned.notes, _KEY_MAY_WRITE))
        return PlanResult.of(await session.named(transport, planned), session, transport)
