"""The use case `apply`: plan or load a plan, show it, get approval, apply and verify it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from reconciler.applying import AuditLog, execute, stale_changes
from reconciler.client import SecretResolver, Service
from reconciler.commands.planning import (
    PlanRequest,
    connected,
    decide,
    load_workspace,
    read_base,
    read_for,
    resolver_for,
)
from reconciler.commands.runtime import Runtime
from reconciler.errors import Diagnostic, ReconcilerError, RefusedByPolicy, StalePlan
from reconciler.kinds import all_kinds
from reconciler.model.codec.plan import decode
from reconciler.model.event import Event, Listener, Report
from reconciler.model.plan import Plan
from reconciler.model.wording import several
from reconciler.planning.masking import Mask
from reconciler.version import __version__
from reconciler.workspace import Loaded


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan file: its name, for errors, and its bytes."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """What to apply.

    `saved` is a plan file, None to plan now. `verify` reads and plans again afterwards. `log_file`
    gets the audit log.
    """

    plan: PlanRequest
    saved: SavedPlan | None = None
    verify: bool = True
    log_file: Path | None = None
    concurrency: int = 8


@dataclass(frozen=True, slots=True)
class Applied:
    """How an apply ended. `left` is the second plan, None if it was not made."""

    plan: Plan
    report: Report | None
    calls: int
    approved: bool = True
    left: Plan | None = None
    mask: Mask = field(default=str, repr=False)
    diagnostics: tuple[Diagnostic, ...] = ()


async def apply(
    request: ApplyRequest,
    runtime: Runtime,
    *,
    show: Callable[[Plan, Mask], None],
    approve: Callable[[Plan], bool],
) -> Applied:
    """Make or load a plan, show it, get approval, apply it, verify.

    `show` is called first; `approve` only if there is something to do and no guard refuses.

    Raises:
        RefusedByPolicy: a guard refuses the plan; nothing was sent.
        InvalidPlanFile: the saved plan can't be read; nothing was sent.
        StalePlan: the saved plan is stale; nothing was sent.
        SecretUnavailable: a secret that would be sent is missing; nothing was sent.

    """
    loaded = load_workspace(request.plan.workspace, runtime.environ)
    resolver = resolver_for(loaded, runtime.environ)
    async with connected(loaded, resolver, runtime) as service:
        plan = await _plan(request, loaded, service, runtime, mask=resolver.mask)
        show(plan, resolver.mask)
        if plan.refusals:
            count = several(len(plan.refusals), "rule")
            raise RefusedByPolicy(f"refused by policy ({count}); nothing was sent")
        report = left = None
        approved = plan.empty or approve(plan)
        if approved and not plan.empty:
            report = await _execute(request, plan, service, resolver, runtime=runtime)
            left = await _second_plan(request, plan, report, loaded, service, runtime=runtime)
        return Applied(
            plan,
            report,
            service.calls.total,
            approved=approved,
            left=left,
            mask=resolver.mask,
            diagnostics=loaded.diagnostics,
        )


async def _plan(
    request: ApplyRequest, loaded: Loaded, service: Service, runtime: Runtime, *, mask: Mask
) -> Plan:
    """Return a new plan, or the saved one if it is not stale."""
    if request.saved is None:
        base = read_base(request.plan, loaded, runtime)
        live = await read_for(service, loaded, base.desired if base is not None else None)
        return decide(request.plan, loaded, live, base=base, runtime=runtime)
    saved = decode(request.saved.data, name=request.saved.name)
    _check_origin(saved, loaded)
    live = await read_for(service, loaded)
    stale = stale_changes(saved, live, all_kinds(), mask=mask)
    if stale:
        listed = "\n".join(f"  {change}" for change in stale)
        raise StalePlan(
            f"live state was modified since the plan was made; nothing was sent:\n{listed}",
            hint="make a new plan and have it reviewed",
        )
    return saved


def _check_origin(saved: Plan, loaded: Loaded) -> None:
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
        f"another {name}" + ("" if name == "configuration" else f" ({there})")
        for name, (there, here) in compared.items()
        if there != here
    ]
    if different:
        raise StalePlan(
            f"the plan was made for {'; '.join(different)}; nothing was sent",
            hint="make the plan again from these files, for this environment",
        )


async def _execute(
    request: ApplyRequest,
    plan: Plan,
    service: Service,
    resolver: SecretResolver,
    *,
    runtime: Runtime,
) -> Report:
    """Apply the plan, with the audit log as a second listener if one is requested."""
    with _listener(request.log_file, resolver.mask, runtime) as listen:
        return await execute(
            plan,
            service,
            kinds=all_kinds(),
            secrets=resolver,
            listen=listen,
            stop=runtime.stop,
            concurrency=request.concurrency,
        )


@contextmanager
def _listener(log_file: Path | None, mask: Mask, runtime: Runtime) -> Iterator[Listener]:
    """Yield the listener of a run. Raises ReconcilerError if the log can't be opened."""
    if log_file is None:
        yield runtime.listen
        return
    try:
        log = AuditLog(log_file, mask=mask, now=runtime.now)
    except OSError as error:
        raise ReconcilerError(
            f"the audit log {log_file} can't be written: {error.strerror}; nothing was sent"
        ) from None

    def listen(event: Event) -> None:
        runtime.listen(event)
        log(event)

    try:
        yield listen
    finally:
        log.close()


async def _second_plan(
    request: ApplyRequest,
    plan: Plan,
    report: Report,
    loaded: Loaded,
    service: Service,
    *,
    runtime: Runtime,
) -> Plan | None:
    """Return the plan after a complete run, with the selection of the first, to verify it.

    None if it is not requested, or after an undo, which does not lead to the configuration.
    """
    incomplete = report.failed or report.skipped or report.interrupted
    if not request.verify or incomplete or plan.source.undoes is not None:
        return None
    live = await read_for(service, loaded)
    options = replace(request.plan.options, selection=plan.selection, rotate=())
    again = replace(request.plan, options=options)
    return decide(again, loaded, live, base=None, runtime=runtime)
