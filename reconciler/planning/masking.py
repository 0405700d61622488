"""Hides known secrets in a plan before it is drawn or saved.

Somebody may have pasted a secret into a field that the service shows. It is masked in the values
and not in the drawn text, where a line break in the middle of it would let both halves through.
What is sent is left alone: it comes from the files, and secrets in it are references.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from reconciler.model.change import Change, FieldChange, Seen
from reconciler.model.plan import Plan, Unmanaged
from reconciler.model.values import JSON

Mask = Callable[[str], str]
MASK = "***"
"""What stands where a secret was."""


def holds_mask(value: JSON) -> bool:
    """Whether something in a value was hidden: then it is not the value any more."""
    if isinstance(value, str):
        return MASK in value
    if isinstance(value, Mapping):
        return any(holds_mask(item) for item in value.values())
    return isinstance(value, (list, tuple)) and any(holds_mask(item) for item in value)


def masked(plan: Plan, mask: Mask) -> Plan:
    """The same plan with every known secret masked wherever it stands."""
    return replace(
        plan,
        changes=tuple(_change(each, mask) for each in plan.changes),
        unmanaged=tuple(_unmanaged(each, mask) for each in plan.unmanaged),
        ignored=tuple(_unmanaged(each, mask) for each in plan.ignored),
        notes=tuple(replace(each, message=mask(each.message)) for each in plan.notes),
        refusals=tuple(replace(each, message=mask(each.message)) for each in plan.refusals),
    )


def _change(change: Change, mask: Mask) -> Change:
    return replace(
        change,
        name=mask(change.name),
        fields=tuple(_field(each, mask) for each in change.fields),
        consequences=tuple(
            replace(each, message=mask(each.message)) for each in change.consequences
        ),
        seen=_seen(change.seen, mask),
    )


def _field(each: FieldChange, mask: Mask) -> FieldChange:
    return replace(
        each, before=masked_value(each.before, mask), after=masked_value(each.after, mask)
    )


def _seen(seen: Seen | None, mask: Mask) -> Seen | None:
    if seen is None:
        return None
    return Seen(
        seen.updated_at, {path: masked_value(item, mask) for path, item in seen.fields.items()}
    )


def _unmanaged(each: Unmanaged, mask: Mask) -> Unmanaged:
    parent = mask(each.parent_name) if each.parent_name is not None else None
    return replace(each, name=mask(each.name), parent_name=parent)


def masked_value(value: JSON, mask: Mask) -> JSON:
    """A value with every known secret inside masked."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {mask(str(name)): masked_value(item, mask) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked_value(item, mask) for item in value]
    return value
