"""The use case `apply`: plan or load a plan, show it, get approval, apply and verify it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.applying import AuditLog, execute, stale_changes
from reconciler.client import Transport
from reconciler.commands.files import read_file
from reconciler.commands.planning import PlanResult
from reconciler.commands.runtime import PlanRequest, Runtime
from reconciler.commands.session import Session
from reconciler.errors import BadUsage, ReconcilerError, RefusedByPolicy, StalePlan
from reconciler.kinds import all_kinds
from reconciler.model.codec.plan import decode
from reconciler.model.event import Event, Listener, Report
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.plan_redaction import redact_plan
from reconciler.model.wording import several
from reconciler.version import __version__
from reconciler.workspace import Loaded


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """What to apply.

    `plan_file` is a saved plan, None to plan now. `auto_approve` skips the question for approval,
    `can_ask` says whether there is a terminal to ask on. `verify` reads and plans again
    afterwards. `log_file` gets the audit log.
    """

    plan: PlanRequest
    plan_file: Path | None = None
    auto_approve: bool = False
    can_ask: bool = True
    verify: bool = True
    log_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """How an apply ended. `left` is the second plan, None if it was not made."""

    plan: Plan
    report: Report
    left: Plan | None
    calls: int


async def apply(
    request: ApplyRequest,
    runtime: Runtime,
    *,
    show: Callable[[PlanResult], None],
    approve: Callable[[Plan], bool],
) -> Applied:
    """Make or load a plan, show it, get approval, apply it, verify.

    `show` is called first; `approve` only if there is something to do and no guard refuses.

    Raises:
        BadUsage: options exclude each other, or there is no way to approve; nothing was sent.
        RefusedByPolicy: a guard refuses the plan; nothing was sent.
        InvalidPlanFile: the saved plan can't be read; nothing was sent.
        StalePlan: the saved plan is stale; nothing was sent.
        SecretUnavailable: a secret that would be sent is missing; nothing was sent.
        ReconcilerError: the plan was not approved; nothing was sent.

    """
    _check_options(request)
    session = Session.open(request.plan.workspace, runtime)
    async with session.connected() as transport:
        saved = _saved(request, session)
        base = session.base(request.plan) if saved is None else None
        live = await session.read(transport, may_delete=base is not None)
        plan = saved or session.plan(live, request.plan.options, base)
        if saved is not None:
            _check_stale(saved, session, live)
        show(PlanResult.of(plan, session, transport))
        _check_policy(plan)
        _check_approval(request, plan, approve)
        report = await _execute(request, session, transport, plan)
        left = await _second_plan(request, session, transport, plan, report)
        return Applied(plan, report, left, transport.calls)


def _check_options(request: ApplyRequest) -> None:
    if request.plan_file is not None and request.plan.has_plan_options:
        raise BadUsage("a saved plan is applied unchanged and takes no options that change it")
    if request.plan_file is None and not (request.auto_approve or request.can_ask):
        raise BadUsage(
            "no terminal to ask for approval; nothing was sent",
            hint="pass --auto-approve, or a plan that was saved with `plan --out FILE`",
        )


def _saved(request: ApplyRequest, session: Session) -> Plan | None:
    """Return the saved plan, None to plan now. Raises StalePlan if its source is another one."""
    if request.plan_file is None:
        return None
    saved = decode(read_file(request.plan_file), name=str(request.plan_file))
    _check_source(saved, session.loaded)
    return saved


def _check_source(saved: Plan, loaded: Loaded) -> None:
    """Raise StalePlan if a plan was made from other input than this workspace and version."""
    source, desired = saved.source, loaded.desired
    compared = {
        "environment": (source.environment, desired.environment),
        "organization": (source.organization, desired.organization),
        "base URL": (source.base_url, desired.base_url),
        "version of reconciler": (source.tool_version, __version__),
        "configuration": (source.config_digest, desired.digest),
    }
    different = [
        f"another {name}" + ("" if name == "configuration" else f" ({planned})")
        for name, (planned, current) in compared.items()
        if planned != current
    ]
    if different:
        raise StalePlan(
            f"the plan was made for {'; '.join(different)}; nothing was sent",
            hint="make the plan again from these files, for this environment",
        )


def _check_stale(saved: Plan, session: Session, live: Live) -> None:
    """Raise StalePlan if live state was modified since a plan was saved."""
    stale = stale_changes(saved, live, all_kinds(), mask=session.mask)
    if stale:
        listed = "\n".join(f"  {change}" for change in stale)
        raise StalePlan(
            f"live state was modified since the plan was made; nothing was sent:\n{listed}",
            hint="make a new plan and have it reviewed",
        )


def _check_policy(plan: Plan) -> None:
    if plan.refusals:
        count = several(len(plan.refusals), "rule")
        raise RefusedByPolicy(f"refused by policy ({count}); nothing was sent")


def _check_approval(request: ApplyRequest, plan: Plan, approve: Callable[[Plan], bool]) -> None:
    """Raise ReconcilerError unless the plan is approved. A saved plan and an empty one are."""
    approved = request.auto_approve or request.plan_file is not None or plan.empty or approve(plan)
    if not approved:
        raise ReconcilerError("not approved; nothing was sent")


async def _execute(
    request: ApplyRequest, session: Session, transport: Transport, plan: Plan
) -> Report:
    """Apply the plan, with the audit log as a second listener if one is requested."""
    if plan.empty:
        return Report()
    with _listener(request.log_file, session) as listen:
        return await execute(
            plan,
            transport,
            kinds=all_kinds(),
            secrets=session.secrets,
            listen=listen,
            stop=session.runtime.stop,
        )


@contextmanager
def _listener(log_file: Path | None, session: Session) -> Iterator[Listener]:
    """Yield the listener of a run. Raises ReconcilerError if the log can't be opened."""
    runtime = session.runtime
    if log_file is None:
        yield runtime.listen
        return
    try:
        log = AuditLog(log_file, mask=session.mask, now=runtime.now)
    except OSError as error:
        raise ReconcilerError(
            f"the audit log {log_file} can't be written: {error.strerror}; nothing was sent"
        ) from None

    def listen(event: Event) -> None:
        runtime.listen(event)
        log(event)

    with closing(log):
        yield listen


async def _second_plan(
    request: ApplyRequest, session: Session, transport: Transport, plan: Plan, report: Report
) -> Plan | None:
    """Return the plan after a complete run, with the selection of the first, to verify it.

    None if it is not requested, or after an undo, which does not lead to the configuration.
    """
    incomplete = report.failed or report.skipped or report.interrupted
    undone = plan.source.undoes is not None
    if plan.empty or incomplete or undone or not request.verify:
        return None
    live = await session.read(transport)
    options = replace(request.plan.options, selection=plan.selection, rotate=())
    return redact_plan(session.plan(live, options), session.mask)
