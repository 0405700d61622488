"""Apply changes: plan or load a plan, show it, get approval, apply, verify and record it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconciler.applying import execute
from reconciler.commands.process import no_terminal, read_file
from reconciler.commands.sending import Applied, Outputs, Verification, only_apply, recording
from reconciler.commands.session import (
    PlanResult,
    Session,
    connected,
    inventory_of,
    open_session,
    planned,
    shown_plan,
)
from reconciler.commands.workspace import Workspace
from reconciler.errors import (
    BadUsage,
    GitUnavailable,
    Interrupted,
    InvalidResponse,
    ReconcilerError,
    RefusedByPolicy,
    SecretUnavailable,
    StalePlan,
)
from reconciler.files.loading import Loaded
from reconciler.git.ci import is_job
from reconciler.kinds import all_kinds
from reconciler.model.decoding import decode
from reconciler.model.event import Ended, Report, Verifying
from reconciler.model.kind import Action
from reconciler.model.live import Live
from reconciler.model.plan import Plan, PlanSource, SecretUse
from reconciler.model.redaction import masked_in
from reconciler.model.settings import PlanOptions
from reconciler.model.text import printable, several
from reconciler.model.values import Address
from reconciler.planning.approval import differences
from reconciler.planning.inventory import Inventory
from reconciler.service.transport import Transport

_PAUSES = (1.0, 2.0, 4.0)
"""Seconds before a list that may be behind the writes of the run is read again."""
_LATE = 10.0
"""Seconds before a plan after a create without a clear answer, which may take effect late."""
_MOST_LISTED = 20
_NEW_PLAN = "make a new plan and have it reviewed"
_AS = ", as when the plan was made"


async def verify(
    session: Session,
    transport: Transport,
    again: Callable[[], Awaitable[Plan]],
    report: Report,
) -> Verification:
    """Plan again, as the run was planned, by `again`. Errors are in the result.

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
        change
        for change in plan.changes
        if change.address not in done
        or change.action is not Action.UPDATE
        or not all(field.secret for field in change.fields)
    )
    return replace(plan, changes=tuple(left))


MakePlan: TypeAlias = Callable[
    [Session, Transport, PlanOptions, Inventory | None], Awaitable[tuple[Plan, Live]]
]
"""Reads live state, and returns a plan and the live state that it is made from."""


class Screen(Struct, frozen=True):
    """What is shown.

    show
        The plan and what applying it takes, before anything is sent.
    report
        How the changes ended, before the verification.
    """

    show: Callable[[PlanResult], None] = lambda _: None
    report: Callable[[Report], None] = lambda _: None


async def apply(  # noqa: PLR0913 - the options of the command
    workspace: Workspace,
    options: PlanOptions | None = None,
    *,
    approve: Callable[[Plan], Awaitable[bool]] | None = None,
    auto_approve: bool = False,
    plan_file: Path | None = None,
    plan_id: str | None = None,
    push: bool = False,
    rollback: bool = False,
    outputs: Outputs | None = None,
    screen: Screen | None = None,
    make: MakePlan = planned,
) -> Applied:
    """Make or load a plan, get approval, apply it, verify it.

    `auto_approve`, `plan_file` (a saved plan) and `plan_id` (the first digits of the id of the
    plan) are approvals; without them `approve` is asked, if there is something to do and no guard
    refuses it. `push` pushes the inventory, `rollback`
    allows a commit that lacks applied ones. `outputs` get the events of the run. `make` makes
    another plan than that of the configuration, and verifies it.

    Raises:
        BadUsage: options exclude each other, or there is no way to approve; nothing was sent.
        RefusedByPolicy: a guard refuses the plan; nothing was sent.
        InvalidPlanFile: the saved plan can't be read; nothing was sent.
        StalePlan: the saved plan is stale, the plan has another id, or HEAD lacks the applied
            commit; nothing was sent.
        SecretUnavailable: a secret that would be sent is missing; nothing was sent.
        ReconcilerError: the plan was not approved; nothing was sent.
        The errors of `plan`.

    """
    if plan_file is not None and plan_id is not None:
        raise BadUsage("--plan-id and PLAN_FILE exclude each other")
    asks = not auto_approve and plan_file is None and plan_id is None
    session = open_session(workspace)
    if asks and approve is None:
        raise no_terminal(", --plan-id, or a plan that was saved with `plan --out FILE`")
    async with connected(session) as transport, AsyncExitStack() as stack:
        run = _Run(session, transport, options or PlanOptions(), screen or Screen(), make)
        lock = only_apply(transport)
        if not asks:
            await stack.enter_async_context(lock)
        planned = await run.planned(plan_file, push=push, rollback=rollback)
        shown = await run.shown(planned, plan_id)
        if asks and approve is not None:
            if not shown.empty and not await approve(shown):
                raise ReconcilerError("not approved; nothing was sent")
            await stack.enter_async_context(lock)
            # Others had time while a person decided: every object is checked.
            planned = replace(planned, live=planned.live.of_old())
        return await run.applied(planned, outputs or Outputs(), push=push)


def check_policy(plan: Plan) -> None:
    """Raise RefusedByPolicy if a guard refuses the plan."""
    if plan.refusals:
        count = several(len({refusal.rule for refusal in plan.refusals}), "rule")
        raise RefusedByPolicy(f"refused by policy ({count}); nothing was sent")


class _Run(Struct, frozen=True):
    """An apply that is connected."""

    session: Session
    transport: Transport
    options: PlanOptions
    screen: Screen
    make: MakePlan

    async def planned(self, file: Path | None, *, push: bool, rollback: bool) -> SavedPlan:
        """Return the plan of now, or what a saved plan has in common with it."""
        session, transport, options = self.session, self.transport, self.options
        inventory = inventory_of(session, options, push=push, rollback=rollback)
        if file is not None:
            planned = await saved_plan(session, transport, options, file, inventory)
        else:
            planned = SavedPlan(*await self.make(session, transport, options, inventory), inventory)
        if inventory is not None:
            inventory = inventory.counted(planned.live)
        return replace(planned, inventory=inventory)

    async def shown(self, planned: SavedPlan, plan_id: str | None) -> Plan:
        """Show a plan and return it as shown.

        Raises StalePlan unless it has the id that was reviewed, RefusedByPolicy.
        """
        session, plan = self.session, planned.plan
        _resolve_sent(session, plan)
        result = await shown_plan(session, self.transport, plan)
        self.screen.show(result)
        if plan_id is not None and not plan.plan_id.startswith(plan_id):
            raise StalePlan(
                f"the plan is {plan.plan_id}, not {plan_id}; nothing was sent",
                hint="have the plan above reviewed, and pass its id",
            )
        check_policy(plan)
        if session.history is not None and planned.inventory is not None:
            session.history.check_direction(planned.inventory, plan)
        return result.plan

    async def applied(self, planned: SavedPlan, outputs: Outputs, *, push: bool) -> Applied:
        """Apply a plan, verify it, and record it."""
        session, plan = self.session, planned.plan
        with (
            recording(outputs, session.runtime, session.mask) as bus,
            self.transport.reporting_to(bus),
        ):
            report = await execute(plan, self.transport, listen=bus, live=planned.live)
            self.screen.report(masked_in(report, session.mask))
            verification = await self.verification(planned, report)
            if isinstance(verification.error, Interrupted):
                report = replace(report, interrupted=True)
            left = verification.left
            recorded, problem = _recorded(session, planned, (report, left), push=push)
            bus(ended := Ended(report, verification.passed, problem.message if problem else None))
            calls = self.transport.calls
            applied = Applied(plan, ended, verification, calls, recorded, problem, bus.problems)
            return masked_in(applied, session.mask)

    async def verification(self, planned: SavedPlan, report: Report) -> Verification:
        """Plan again after a complete run. After another one, look for duplicates of its creates.

        Runs that share no lock may create the same: the last of them to create sees both objects.
        """
        plan = planned.plan
        if plan.empty or not (report.complete or report.has_created):
            return Verification()
        self.transport.emit(Verifying())
        options = replace(
            self.options, selection=plan.selection, planned_before=plan.addresses, rotate=()
        )

        async def again() -> Plan:
            left, _ = await self.make(self.session, self.transport, options, planned.inventory)
            return left

        if report.complete:
            return await verify(self.session, self.transport, again, report)
        with suppress(ReconcilerError):
            left = await again()
            try:
                _clear(left, plan.addresses)
            except ReconcilerError as error:
                return Verification(error=error)
        return Verification()


def _resolve_sent(session: Session, plan: Plan) -> None:
    """Resolve the secrets that a plan sends, so that they are masked where it is shown.

    Missing ones are reported when it is applied, and a plan that is refused starts no command.
    """
    for change in plan.effective if not plan.refusals else ():
        for note in change.secrets:
            if note.use.sent:
                with suppress(SecretUnavailable):
                    session.secrets.resolve(note.ref)


def _recorded(
    session: Session,
    planned: SavedPlan,
    ended: tuple[Report, Plan | None],
    *,
    push: bool,
) -> tuple[str | None, GitUnavailable | None]:
    """Write what was applied. Return its reference, or why it was not written.

    In a job it is written only if it is pushed.
    """
    history, inventory = session.history, planned.inventory
    if inventory is None or history is None or history.head is None:
        return None, None
    if is_job(session.runtime.environ) and not push:
        return None, None
    try:
        history.record(planned.plan, ended, inventory, push=push)
    except GitUnavailable as error:
        return None, error
    return history.ref, None


class SavedPlan(Struct, frozen=True):
    """What `apply FILE` applies, and the live state and inventory that it was planned from."""

    plan: Plan
    live: Live
    inventory: Inventory | None = None


async def saved_plan(
    session: Session,
    transport: Transport,
    options: PlanOptions,
    file: Path,
    inventory: Inventory | None,
) -> SavedPlan:
    """Plan again as the saved plan was made, and return the changes that both plans contain.

    The selection is that of the file, since it only narrows: what its options name today, and what
    they named when it was saved. So a name with another meaning makes the plan stale. Options that
    widen a plan (--rotate-secrets, --allow-replace) are not taken from the file: they are given
    again. Policy violations of the new plan are in the result.

    Raises:
        BadUsage: the options narrow the plan.
        InvalidPlanFile: the file is not a plan, or was edited or damaged.
        StalePlan: an option is missing, or the plans differ.

    """
    if options.selection.partial:
        raise BadUsage(
            "a saved plan has its own selection; --target, --exclude, --kind and --project "
            "can't be combined with it"
        )
    saved = decode(read_file(file), name=str(file))
    _check_place(saved.source, session.loaded)
    secrets = {note.use for change in saved.effective for note in change.secrets}
    if SecretUse.ROTATE in secrets and not options.rotate:
        raise StalePlan(
            "the plan was made with --rotate-secrets; nothing was sent",
            hint="pass it again, with the same names",
        )
    options = replace(options, selection=saved.selection, planned_before=saved.addresses)
    # Lists contain deleted projects for a while.
    deleted = {(c.address.kind, c.live_id or "") for c in saved.effective if c.action.destructive}
    new, live = await planned(session, transport, options, inventory, in_full=deleted)
    if lines := differences(saved, new, live=live, kinds=all_kinds(), mask=session.mask):
        # Only a plan without git has no commit.
        used, uses = saved.source.head is not None, new.source.head is not None
        hint = _NEW_PLAN if used == uses else f"{'omit' if used else 'pass'} --no-inventory{_AS}"
        raise StalePlan(stale_message(lines), hint=hint)
    return SavedPlan(new, live, inventory)


def _check_place(source: PlanSource, loaded: Loaded) -> None:
    """Raise StalePlan if a plan was made for another environment or service."""
    desired = loaded.desired
    fields = {"environment": "environment", "organization": "organization", "base_url": "base URL"}
    different = [
        f"{name} {printable(str(getattr(source, field)))}"
        for field, name in fields.items()
        if getattr(source, field) != getattr(desired, field)
    ]
    if different:
        raise StalePlan(
            f"the plan was made for {', '.join(different)}; nothing was sent",
            hint="select that environment with -e, or make a new plan for this one",
        )


def stale_message(problems: tuple[str, ...]) -> str:
    """Return the message for a saved plan that differs from the plan of now."""
    lines = [f"  {line}" for line in problems[:_MOST_LISTED]]
    if len(problems) > _MOST_LISTED:
        lines.append(f"  and {len(problems) - _MOST_LISTED} more")
    count = several(len(problems), "difference")
    return "\n".join([f"the saved plan is stale ({count}); nothing was sent:", *lines])
