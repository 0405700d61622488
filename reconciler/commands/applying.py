"""The use case `apply`: a plan, shown first, approved, carried out, and checked afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from reconciler.applying import Journal, execute, moved_since
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
from reconciler.config import Loaded
from reconciler.errors import Diagnostic, ReconcilerError, RefusedByPolicy, StalePlan
from reconciler.kinds import all_kinds
from reconciler.model.event import Event, Planned, Report
from reconciler.model.plan import Plan
from reconciler.model.wording import several
from reconciler.planning.planfile import decode
from reconciler.version import __version__


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """What to apply.

    `saved` is the bytes of a plan file, None to plan now. `verify` re-reads and re-plans
    afterwards. `log_file` gets the audit log.
    """

    plan: PlanRequest
    saved: bytes | None = None
    verify: bool = True
    log_file: Path | None = None
    concurrency: int = 8


@dataclass(frozen=True, slots=True)
class Applied:
    """How an apply ended. `left` is what a second plan would still do, None if not looked at."""

    plan: Plan
    report: Report | None
    calls: int
    approved: bool = True
    left: Plan | None = None
    mask: Callable[[str], str] = field(default=str, repr=False)
    diagnostics: tuple[Diagnostic, ...] = ()


async def apply(
    request: ApplyRequest,
    runtime: Runtime,
    *,
    show: Callable[[Plan, Callable[[str], str]], None],
    approve: Callable[[Plan], bool],
) -> Applied:
    """Plan (or take a saved plan), show it, ask, carry it out, verify.

    `show` is called with the plan before anything else happens; `approve` only if there is
    something to do and no guard refuses.

    Raises:
        RefusedByPolicy: a guard says no; nothing was sent.
        StalePlan: the saved plan no longer fits; nothing was sent.
        SecretUnavailable: a secret that would be sent is missing; nothing was sent.

    """
    loaded = load_workspace(request.plan.workspace, runtime.environ)
    resolver = resolver_for(loaded, runtime.environ)
    async with connected(loaded, resolver, runtime) as service:

        def ended(
            plan: Plan, report: Report | None, *, approved: bool = True, left: Plan | None = None
        ) -> Applied:
            return Applied(
                plan,
                report,
                service.calls.total,
                approved=approved,
                left=left,
                mask=resolver.mask,
                diagnostics=loaded.diagnostics,
            )

        made = await _plan_of(request, loaded, service, runtime, mask=resolver.mask)
        show(made, resolver.mask)
        if made.refusals:
            count = len(made.refusals)
            raise RefusedByPolicy(f"refused by policy ({several(count, 'rule')}); nothing was sent")
        if made.empty:
            return ended(made, None)
        if not approve(made):
            return ended(made, None, approved=False)
        report = await _carry_out(request, made, service, resolver, runtime=runtime)
        left = None
        leads_to_the_files = made.source.undoes is None
        if (
            leads_to_the_files
            and request.verify
            and not (report.failed or report.skipped or report.interrupted)
        ):
            live = await read_for(service, loaded)
            left = decide(_without_rotation(request.plan), loaded, live, base=None, runtime=runtime)
        return ended(made, report, left=left)


def _without_rotation(request: PlanRequest) -> PlanRequest:
    return PlanRequest(request.workspace, replace(request.options, rotate=()))


async def _plan_of(
    request: ApplyRequest,
    loaded: Loaded,
    service: Service,
    runtime: Runtime,
    *,
    mask: Callable[[str], str],
) -> Plan:
    if request.saved is None:
        base = read_base(request.plan, loaded, runtime)
        live = await read_for(service, loaded, base.desired if base is not None else None)
        return decide(request.plan, loaded, live, base=base, runtime=runtime)
    saved = decode(request.saved)
    _check_origin(saved, loaded)
    live = await read_for(service, loaded)
    moved = moved_since(saved, live, all_kinds(), mask=mask)
    if moved:
        listed = "\n".join(f"  {each}" for each in moved)
        raise StalePlan(
            f"the live side moved since the plan was made; nothing was sent:\n{listed}",
            hint="make a new plan and have it reviewed",
        )
    return saved


def _check_origin(saved: Plan, loaded: Loaded) -> None:
    """A plan is only for what it was made from."""
    here = {
        "environment": loaded.desired.environment,
        "organization": loaded.desired.organization,
        "base URL": loaded.desired.base_url,
        "version of reconciler": __version__,
        "configuration": loaded.desired.digest,
    }
    there = {
        "environment": saved.source.environment,
        "organization": saved.source.organization,
        "base URL": saved.source.base_url,
        "version of reconciler": saved.source.tool_version,
        "configuration": saved.source.config_digest,
    }
    other = [name for name, value in here.items() if there[name] != value]
    if other:
        told = "; ".join(
            f"another {name}" + ("" if name == "configuration" else f" ({there[name]})")
            for name in other
        )
        raise StalePlan(
            f"the plan was made for {told}; nothing was sent",
            hint="make the plan again from these files, for this environment",
        )


async def _carry_out(
    request: ApplyRequest,
    made: Plan,
    service: Service,
    resolver: SecretResolver,
    *,
    runtime: Runtime,
) -> Report:
    listeners: list[Callable[[Event], None]] = [runtime.listen]
    journal = None
    if request.log_file is not None:
        try:
            journal = Journal(request.log_file, mask=resolver.mask, now=runtime.now)
        except OSError as error:
            raise ReconcilerError(
                f"the audit log {request.log_file} can't be written: {error.strerror}; "
                "nothing was sent"
            ) from None
        listeners.append(journal)

    def tell(event: Event) -> None:
        for listener in listeners:
            listener(event)

    try:
        tell(Planned(made))
        return await execute(
            made,
            service,
            kinds=all_kinds(),
            secrets=resolver,
            listen=tell,
            stop=runtime.stop,
            concurrency=request.concurrency,
        )
    finally:
        if journal is not None:
            journal.close()
