"""Apply what a saved plan contains."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from reconciler.commands.files import read_file
from reconciler.commands.session import Session
from reconciler.errors import BadUsage, StalePlan
from reconciler.files.loading import Loaded
from reconciler.kinds import all_kinds
from reconciler.model.decoding import decode
from reconciler.model.live import Live
from reconciler.model.plan import Plan, PlanSource, SecretUse
from reconciler.model.settings import PlanOptions
from reconciler.model.text import printable, several
from reconciler.planning.approval import differences
from reconciler.planning.inventory import Inventory
from reconciler.service.transport import Transport

_MOST_LISTED = 20
_NEW_PLAN = "make a new plan and have it reviewed"
_AS = ", as when the plan was made"


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
    new, live = await session.planned(transport, options, inventory, in_full=deleted)
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
