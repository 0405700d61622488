"""The use case `apply`: plan or load a plan, show it, get approval, apply and verify it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.applying import execute
from reconciler.client import Transport
from reconciler.commands.lock import only_apply
from reconciler.commands.options import PlanRequest
from reconciler.commands.planning import PlanResult
from reconciler.commands.recording import Outputs, recording
from reconciler.commands.runtime import Runtime
from reconciler.commands.saved import SavedPlan, saved_plan
from reconciler.commands.session import Session
from reconciler.errors import (
    BadUsage,
    GitUnavailable,
    Interrupted,
    InvalidResponse,
    ReconcilerError,
    RefusedByPolicy,
    StalePlan,
)
from reconciler.kinds import kinds_by_name
from reconciler.model.address import Address
from reconciler.model.event import Ended, Report, Verifying
from reconciler.model.kind import Action
from reconciler.model.live import Live
from reconciler.model.plan import Change, Plan
from reconciler.model.redaction import masked_in
from reconciler.model.text import several
from reconciler.workspace.git.ci import is_job

_PAUSES = (1.0, 2.0, 4.0)
"""Seconds before a list that may be behind the writes of the run is read again."""
_LATE = 10.0
"""Seconds before a plan after a create without a clear answer, which may take effect late."""


Again: TypeAlias = Callable[[], Awaitable[Plan]]
"""Reads live state and plans again, without secrets to rotate."""


class Verification(Struct, frozen=True):
    """The second plan, None if it was not made; `error` says why it could not be made.

    It judges the changes of the run, whose addresses are `done`. What else it has is new.
    """

    left: Plan | None = None
    error: ReconcilerError | None = None
    done: frozenset[Address] = frozenset()

    @property
    def passed(self) -> bool | None:
        """Whether no change of the run is left, None if the second plan was not requested."""
        if self.error is not None:
            return False
        if self.left is None:
            return None
        return self.done.isdisjoint(change.address for change in self.left.effective)

    @property
    def is_empty(self) -> bool:
        """Whether the second plan was made and has no change at all."""
        return self.left is not None and self.left.empty


async def verify(
    session: Session, transport: Transport, again: Again, report: Report
) -> Verification:
    """Plan again, as the run was planned. Errors are in the result.

    A plan that still changes what the run has changed, and a list that contradicts another answer,
    may come from a list that is behind, so it is made again before it is believed.
    """
    done = frozenset(result.change.address for result in report.done)
    try:
        if any(result.adopted for result in report.done):
            await transport.pause(_LATE, "a create without a clear answer")
        for pause in _PAUSES:
            with suppress(InvalidResponse):
                left = _clear(_without_secrets(await again(), done), done)
                if done.isdisjoint(change.address for change in left.effective):
                    break
            await transport.pause(pause, "a list that may be behind the changes of this run")
        else:
            left = _clear(_without_secrets(await again(), done), done)
    except ReconcilerError as error:
        return Verification(error=error)
    return Verification(masked_in(left, session.mask), done=done)


def _clear(plan: Plan, addresses: frozenset[Address]) -> Plan:
    """Return a plan. Raise ReconcilerError with all resources whose object is not known."""
    unclear = [plan.unclear[address] for address in sorted(plan.unclear.keys() & addresses)]
    if unclear:
        message = "\n".join(dict.fromkeys(refusal.message for refusal in unclear))
        hints = dict.fromkeys(refusal.allow for refusal in unclear if refusal.allow)
        raise ReconcilerError(message, hint="\n".join(hints) or None)
    return plan


def _without_secrets(plan: Plan, done: Collection[Address]) -> Plan:
    """Return a plan without secrets that the run has sent: the inventory has the old ones."""
    left = (
        change for change in plan.changes if change.address not in done or not _sends_only(change)
    )
    return replace(plan, changes=tuple(left))


def _sends_only(change: Change) -> bool:
    """Return whether a change does nothing but send secrets."""
    return change.action is Action.UPDATE and all(field.secret for field in change.fields)


MakePlan: TypeAlias = Callable[[Session, Transport], Awaitable[tuple[Plan, Live]]]
"""Reads live state, and returns a plan and the live state that it is made from."""


class ApplyRequest(Struct, frozen=True):
    """What to apply, and how.

    plan_file
        A saved plan, None to plan now.
    plan_id
        The id of the plan to apply, or its first digits. It is an approval.
    auto_approve, can_ask
        Whether to skip the question for approval, and whether there is a terminal to ask on.
    push, rollback
        Whether to push the inventory, and to allow a commit that lacks applied ones.
    outputs
        Where the events of the run go, besides progress.
    make
        What to plan, and to plan again afterwards, in place of the configuration.
    """

    plan: PlanRequest
    plan_file: Path | None = None
    plan_id: str | None = None
    auto_approve: bool = False
    can_ask: bool = True
    push: bool = False
    rollback: bool = False
    outputs: Outputs = field(default_factory=Outputs)
    make: MakePlan | None = None

    @property
    def asks(self) -> bool:
        """Whether a plan with changes needs an answer."""
        return not self.auto_approve and self.plan_file is None and self.plan_id is None


class Screen(Struct, frozen=True):
    """What is shown and asked.

    show
        The plan and what applying it takes, before anything is sent.
    approve
        The question, only if there is something to do and no guard refuses it.
    report
        How the changes ended, before the verification.
    """

    show: Callable[[PlanResult], None]
    approve: Callable[[Plan], Awaitable[bool]]
    report: Callable[[Report], None] = lambda _: None


class Applied(Struct, frozen=True):
    """How an apply ended.

    recorded, record_problem
        The reference of the inventory, or why it was not written.
    problems
        The outputs that are incomplete, a line for each.
    """

    plan: Plan
    ended: Ended
    verification: Verification
    calls: int
    recorded: str | None = None
    record_problem: GitUnavailable | None = None
    problems: tuple[str, ...] = ()


async def apply(request: ApplyRequest, runtime: Runtime, screen: Screen) -> Applied:
    """Make or load a plan, show it, get approval, apply it, verify it.

    Raises:
        BadUsage: options exclude each other, or there is no way to approve; nothing was sent.
        RefusedByPolicy: a guard refuses the plan; nothing was sent.
        InvalidPlanFile: the saved plan can't be read; nothing was sent.
        StalePlan: the saved plan is stale, the plan has another id, or HEAD lacks the applied
            commit; nothing was sent.
        SecretUnavailable: a secret that would be sent is missing; nothing was sent.
        ReconcilerError: the plan was not approved; nothing was sent.

    """
    _check_options(request)
    session = Session.open(request.plan.workspace, runtime)
    _check_terminal(request)
    async with session.connected() as transport, AsyncExitStack() as stack:
        lock = only_apply(transport)
        if not request.asks:
            await stack.enter_async_context(lock)
        if request.push:
            session.required_history().check_pushable()
        planned = await _planned(request, session, transport)
        if planned.inventory is not None:
            counted = planned.inventory.counted(planned.live, kinds_by_name())
            planned = replace(planned, inventory=counted)
        plan = planned.plan
        session.resolve_sent(plan)
        shown = await session.named(transport, plan)
        result = PlanResult.of(shown, session, transport)
        screen.show(result)
        if request.plan_id is not None:
            _check_id(plan, request.plan_id)
        check_policy(plan)
        if session.history is not None and planned.inventory is not None:
            session.history.check_direction(planned.inventory, plan)
        await _check_approval(request, plan, screen)
        if request.asks:
            await stack.enter_async_context(lock)
            # Others had time while a person decided: every object is checked.
            planned = replace(planned, live=planned.live.of_old())

        bus = stack.enter_context(recording(request.outputs, runtime, session.mask))
        stack.enter_context(transport.reporting_to(bus))
        report = await execute(planned.plan, transport, listen=bus, live=planned.live)
        screen.report(masked_in(report, session.mask))
        verification = await _verification(request, planned, session, transport, report)
        if isinstance(verification.error, Interrupted):
            report = replace(report, interrupted=True)
        ended = Ended(report, verification.passed)
        bus(ended)
        applied = Applied(plan, ended, verification, transport.calls, problems=bus.problems)
        return _recorded(applied, session, request, planned)


def _check_options(request: ApplyRequest) -> None:
    if request.plan_file is not None and request.plan_id is not None:
        raise BadUsage("--plan-id and PLAN_FILE exclude each other")


def _check_id(plan: Plan, wanted: str) -> None:
    """Raise StalePlan unless the plan has the id that was reviewed."""
    current = plan.plan_id
    if not current.startswith(wanted):
        raise StalePlan(
            f"the plan is {current}, not {wanted}; nothing was sent",
            hint="have the plan above reviewed, and pass its id",
        )


def _check_terminal(request: ApplyRequest) -> None:
    if request.asks and not request.can_ask:
        # `pause` and `unpause` take neither a plan id nor a saved plan.
        others = ", --plan-id, or a plan that was saved with `plan --out FILE`"
        raise BadUsage(
            "no terminal to ask for approval; nothing was sent",
            hint=f"pass --auto-approve{others if request.make is None else ''}",
        )


async def _planned(request: ApplyRequest, session: Session, transport: Transport) -> SavedPlan:
    """Return the plan to apply: that of now, or what a saved plan has in common with it."""
    if request.make is not None:
        return SavedPlan(*await request.make(session, transport))
    inventory = session.inventory(request.plan, push=request.push, rollback=request.rollback)
    if request.plan_file is not None:
        return await saved_plan(session, transport, request.plan, request.plan_file, inventory)
    plan, live = await session.planned(transport, request.plan.options, inventory)
    return SavedPlan(plan, live, inventory)


def check_policy(plan: Plan) -> None:
    """Raise RefusedByPolicy if a guard refuses the plan."""
    if plan.refusals:
        count = several(len(plan.refusals), "rule")
        raise RefusedByPolicy(f"refused by policy ({count}); nothing was sent")


async def _check_approval(request: ApplyRequest, plan: Plan, screen: Screen) -> None:
    """Raise ReconcilerError unless the plan is approved. A saved plan and an empty one are."""
    if request.asks and not plan.empty and not await screen.approve(plan):
        raise ReconcilerError("not approved; nothing was sent")


async def _verification(
    request: ApplyRequest,
    planned: SavedPlan,
    session: Session,
    transport: Transport,
    report: Report,
) -> Verification:
    """Plan again after a complete run. After another one, look for duplicates of its creates.

    Runs that share no lock may create the same: the last of them to create sees both objects.
    """
    plan = planned.plan
    if plan.empty or not (report.complete or report.has_created):
        return Verification()
    transport.emit(Verifying())
    options = replace(
        request.plan.options,
        selection=plan.selection,
        planned_before=plan.addresses,
        rotate=(),
    )

    async def again() -> Plan:
        if request.make is not None:
            left, _ = await request.make(session, transport)
        else:
            left, _ = await session.planned(transport, options, planned.inventory)
        return left

    if report.complete:
        return await verify(session, transport, again, report)
    with suppress(ReconcilerError):
        return await _duplicates(again, plan.addresses)
    return Verification()


async def _duplicates(again: Again, addresses: frozenset[Address]) -> Verification:
    """Return the error of a plan that finds several objects for a resource, if it does."""
    plan = await again()
    try:
        _clear(plan, addresses)
    except ReconcilerError as error:
        return Verification(error=error)
    return Verification()


def _recorded(
    applied: Applied, session: Session, request: ApplyRequest, planned: SavedPlan
) -> Applied:
    """Write what was applied. In a job it is written only if it is pushed."""
    history, inventory = session.history, planned.inventory
    in_job = is_job(session.runtime.environ)
    if inventory is None or history is None or history.head is None or request.make:
        return applied
    if in_job and not request.push:
        return applied
    ended = applied.ended.report, applied.verification.left
    try:
        history.record(applied.plan, ended, inventory, push=request.push)
    except GitUnavailable as error:
        return replace(applied, record_problem=error)
    return replace(applied, recorded=history.ref)
