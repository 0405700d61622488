"""Find objects that were modified since a plan was made, by object and field.

Only what the plan depends on counts: an export that ran, or a field that is not managed, makes no
plan stale.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.change import Action, Change
from reconciler.model.comparison import live_values
from reconciler.model.field_types import canonical_text
from reconciler.model.kind import Kind
from reconciler.model.live import Live
from reconciler.model.plan import Plan
from reconciler.model.redaction import Mask, redact_value
from reconciler.model.values import JSONObject
from reconciler.model.wording import printable


def stale_changes(plan: Plan, live: Live, kinds: Sequence[Kind], *, mask: Mask) -> tuple[str, ...]:
    """Return `<address>: <cause>` for every change whose object is not as the plan expects it.

    `mask` masks known secrets, as in the values that a saved plan recorded.
    """
    by_kind = {kind.name: kind for kind in kinds}
    objects = [item for listed in live.objects.values() for item in listed]
    by_id = {(item.kind, item.id): item for item in objects}
    by_name = {(item.kind, item.parent_id, item.name.strip()): item for item in objects}
    stale = []
    for change in plan.effective:
        kind = by_kind[change.address.kind]
        if change.action is Action.CREATE:
            # Below a parent that does not exist yet, no object exists.
            has_place = kind.parent is None or change.parent_id is not None
            same = by_name.get((kind.name, change.parent_id, change.name.strip()))
            cause = f"already exists (id {printable(same.id)})" if same and has_place else ""
        elif (item := by_id.get((kind.name, change.live_id or ""))) is None:
            cause = f"was deleted (id {printable(str(change.live_id))})"
        else:
            cause = modifications(kind, change, item.body, mask=mask)
        if cause:
            stale.append(f"{change.address}: {cause}")
    return tuple(stale)


def modifications(kind: Kind, change: Change, body: JSONObject, *, mask: Mask) -> str:
    """Return `prefix: "a/" -> "b/"` for each modified field, empty if there is none."""
    if not change.seen:
        return ""
    live = live_values(kind, body)
    texts = []
    for path, value in sorted(change.seen.items()):
        before, after = (
            canonical_text(redact_value(item, mask)) for item in (value, live.get(path))
        )
        if before != after:
            texts.append(f"{path}: {before} -> {after}")
    return printable("; ".join(texts))
