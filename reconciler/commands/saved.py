"""What saved plans and audit logs are used for: to apply, or to undo, what they contain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from reconciler.client import Transport
from reconciler.commands.files import read_file
from reconciler.commands.options import PlanRequest
from reconciler.commands.planning import PlanResult
from reconciler.commands.runtime import Runtime
from reconciler.commands.session import Session
from reconciler.errors import BadUsage, StalePlan
from reconciler.kinds import all_kinds
from reconciler.model.audit_log import Ending, LoggedRun, read_log
from reconciler.model.decoding import InvalidPlanFile, decode
from reconciler.model.kind import Action
from reconciler.model.live import Live
from reconciler.model.plan import Plan, PlanSource, SecretUse
from reconciler.model.policy import PlanOptions
from reconciler.model.text import printable, several
from reconciler.planning.base import Base
from reconciler.planning.details import touched_by
from reconciler.planning.saved import compare
from reconciler.planning.undo import AppliedPlan, undo_plan
from reconciler.reading import Depth
from reconciler.workspace.loading import Loaded

_MOST_LISTED = 20
_NEW_PLAN = "make a new plan and have it reviewed"


def applied_plan(data: bytes, *, name: str) -> AppliedPlan:
    """Return what a saved plan or the last run with changes of an audit log says was applied.

    Raises InvalidPlanFile.
    """
    runs = read_log(data, name=name)
    if runs is None:
        return AppliedPlan(decode(data, name=name))
    # The run of a backfill may follow that of `unpause --backfill`.
    applied = [(run, run.plan) for run in runs if isinstance(run.plan, Plan)]
    if not applied:
        raise InvalidPlanFile(
            f"{name}: contains backfills only, which cannot be undone",
            hint="cancel them with: reconciler backfill --cancel",
        )
    return _applied_of(*next((it for it in reversed(applied) if it[1].effective), applied[-1]))


def _applied_of(run: LoggedRun, plan: Plan) -> AppliedPlan:
    """Return what a run applied. It may have been killed, so some of it may be uncertain."""
    done, uncertain, adopted = set(), set(), set()
    created, stamps = {}, {}
    for logged in run.changes:
        change, ending = logged.change, logged.ending
        is_create = change.action is Action.CREATE
        # Another client may have created the object with which a create ended.
        if ending is Ending.ADOPTED or (logged.adopted and is_create):
            adopted.add(change.id)
        elif logged.wrote and ending in (Ending.UNKNOWN, Ending.FAILED):
            uncertain.add(change.id)
        if ending is Ending.DONE:
            done.add(change.id)
        if is_create and logged.live_id is not None:
            created[change.address] = logged.live_id
        if logged.stamp is not None:
            stamps[change.address] = logged.stamp
    ids = (frozenset(done), frozenset(uncertain), frozenset(adopted))
    return AppliedPlan(plan, *ids, created=created, stamps=stamps)


async def plan_undo(request: PlanRequest, file: Path, runtime: Runtime) -> PlanResult:
    """Plan the undo of a saved plan or an audit log.

    Raises:
        BadUsage: the request has options that change what is planned.
        InvalidPlanFile: the file is neither a plan nor an audit log.
        StalePlan: it was made for another environment.
        AmbiguousIdentity: as for a plan of this workspace.

    """
    if request.has_plan_options:
        raise BadUsage("--undo reverses a whole plan and takes no options that change it")
    session = Session.open(request.workspace, runtime)
    async with session.connected() as transport:
        plan, _ = await undo_of(session, transport, request.options, file)
        return PlanResult.of(plan, session, transport)


async def undo_of(
    session: Session, transport: Transport, options: PlanOptions, file: Path
) -> tuple[Plan, Live]:
    """Return the undo of a saved plan or an audit log, and the live state that it is made from.

    Raises InvalidPlanFile, StalePlan, AmbiguousIdentity, as `plan_undo` does.
    """
    applied = applied_plan(read_file(file), name=str(file))
    loaded = session.loaded
    _check_environment(applied, loaded, file)
    context = session.plan_context(options)
    return await session.settled(
        transport,
        await session.read(transport, Depth(in_full=touched_by(applied.plan))),
        lambda live: session.judged(
            lambda policy: undo_plan(
                applied, loaded.desired, live, policy, all_kinds(), context=context
            )
        ),
        needs=session.needed_details,
    )


def _check_environment(applied: AppliedPlan, loaded: Loaded, file: Path) -> None:
    source, desired = applied.plan.source, loaded.desired
    if (source.base_url, source.organization) != (desired.base_url, desired.organization):
        raise StalePlan(
            f"{file}: applied in environment {source.environment} "
            f"({source.base_url}, organization {source.organization})",
            hint="select that environment with -e",
        )


class SavedPlan(Struct, frozen=True):
    """What `apply FILE` applies, and the live state and git base that it was planned from.

    `left_out` are the differences from the saved plan, which `--shared` leaves out.
    """

    plan: Plan
    live: Live
    base: Base | None = None
    left_out: tuple[str, ...] = ()


async def saved_plan(
    session: Session,
    transport: Transport,
    request: PlanRequest,
    file: Path,
    *,
    undo: Path | None = None,
    shared: bool = False,
) -> SavedPlan:
    """Plan again as the saved plan was made, and return the changes that both plans contain.

    The selection is that of the file, since it only narrows: what its options name today, and what
    they named when it was saved. So a name with another meaning makes the plan stale. Options that
    widen a plan (the base, --rotate-secrets, --allow-replace, --undo) are not taken from the file:
    they are given again.
    Policy violations of the new plan are in the result.

    Raises:
        BadUsage: the request narrows the plan.
        InvalidPlanFile: the file is not a plan, or was edited or damaged.
        StalePlan: an option is missing, or (without `shared`) the plans differ.

    """
    if request.options.selection.partial:
        raise BadUsage(
            "a saved plan has its own selection; --target, --exclude, --kind and --project "
            "can't be combined with it"
        )
    saved = decode(read_file(file), name=str(file))
    check_place(saved.source, session.loaded)
    base = session.base(request) if undo is None else None
    for problem, hint in _other_options(saved, request, base, undo):
        raise StalePlan(f"{problem}; nothing was sent", hint=hint)
    desired = session.loaded.desired
    if undo is not None:
        new, live = await undo_of(session, transport, request.options, undo)
        if new.source.undoes != saved.source.undoes:
            raise StalePlan(
                f"the plan undoes another plan than that of {undo}; nothing was sent",
                hint="pass --undo with the same file as for `plan --undo`",
            )
        # The configuration has the state that is undone.
        desired = replace(desired, resources={})
    else:
        options = replace(request.options, selection=saved.selection, planned_before=saved.objects)
        new, live = await session.planned(transport, options, base, in_full=touched_by(saved))
    compared = compare(saved, new, live=live, desired=desired, kinds=all_kinds(), mask=session.mask)
    if compared.differences and not shared:
        raise StalePlan(stale_message(compared.differences), hint=_NEW_PLAN + ", or pass --shared")
    return SavedPlan(compared.plan, live, base, compared.differences)


def check_place(source: PlanSource, loaded: Loaded) -> None:
    """Raise StalePlan if a plan was made for another environment or service."""
    desired = loaded.desired
    compared = {
        "environment": (source.environment, desired.environment),
        "organization": (source.organization, desired.organization),
        "base URL": (source.base_url, desired.base_url),
    }
    different = [
        f"{name} {printable(planned)}"
        for name, (planned, current) in compared.items()
        if planned != current
    ]
    if different:
        raise StalePlan(
            f"the plan was made for {', '.join(different)}; nothing was sent",
            hint="select that environment with -e, or make a new plan for this one",
        )


def _other_options(
    saved: Plan, request: PlanRequest, base: Base | None, undo: Path | None
) -> Iterator[tuple[str, str]]:
    """Yield each option that widens a plan and differs from those of the saved one, with a hint."""
    planned, commit = saved.source.base, base.commit if base is not None else None
    if (saved.source.undoes is None) != (undo is None):
        if undo is None:
            yield "the plan was made with --undo", "pass --undo with the same file again"
        else:
            yield "the plan was made without --undo", "leave out --undo"
    if planned is None and commit is not None:
        yield f"the plan was made without a git base; now it is {commit[:7]}", "pass --no-base"
    elif planned != commit:
        today = f"now it is {commit[:7]}" if commit is not None else "now there is none"
        name = printable(str(planned))[:40]
        yield (
            f"the plan was made with the git base {name[:7]}; {today}",
            f"pass --base {name}, or {_NEW_PLAN}",
        )
    uses = {note.use for change in saved.effective for note in change.secrets}
    if SecretUse.ROTATE in uses and not request.options.rotate:
        yield "the plan was made with --rotate-secrets", "pass it again, with the same names"


def stale_message(differences: tuple[str, ...]) -> str:
    """Return the message for a saved plan that differs from the plan of now."""
    lines = [f"  {line}" for line in differences[:_MOST_LISTED]]
    if len(differences) > _MOST_LISTED:
        lines.append(f"  and {len(differences) - _MOST_LISTED} more")
    count = several(len(differences), "difference")
    return "\n".join([f"the saved plan is stale ({count}); nothing was sent:", *lines])
