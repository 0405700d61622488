"""Compare a plan with that of the trusted policy: what only the loaded files allow."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from reconciler.model.plan import Plan, Refusal
from reconciler.model.policy import RULE_PREFIX
from reconciler.model.text import several


def with_violations(plan: Plan, trusted: Plan, others: Sequence[Refusal], *, hint: str) -> Plan:
    """Return a plan with the violations of the trusted policy that its own policy allows.

    Warnings of trusted rules are added, too.

    `trusted` is the plan of the trusted policy. `others` were known before. `hint` says how to let
    the own policy apply.
    """
    own = {(refusal.rule, refusal.addresses) for refusal in plan.refusals}
    lifted = [
        replace(refusal, allow=hint, after_merge=True)
        for refusal in trusted.refusals
        if (refusal.rule, refusal.addresses) not in own
    ]
    planned = {(change.address, change.action) for change in trusted.changes}
    pruned = tuple(
        change.address
        for change in plan.changes
        if change.action.destructive and (change.address, change.action) not in planned
    )
    if pruned:
        message = f"{several(len(pruned), 'object')} would be pruned"
        lifted.append(Refusal("prune", message, pruned, allow=hint, after_merge=True))
    warnings = tuple(
        note
        for note in trusted.notes
        if note.code.startswith(RULE_PREFIX) and note not in plan.notes
    )
    return replace(
        plan,
        notes=(*plan.notes, *warnings),
        refusals=(*plan.refusals, *others, *lifted),
    )
