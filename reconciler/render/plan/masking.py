"""Hides known secrets in a plan before it is drawn.

Somebody may have pasted a secret into a field that the service shows. It is masked in the values
and not in the drawn text, where a line break in the middle of it would let both halves through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from reconciler.model.change import Change, FieldChange, Seen
from reconciler.model.plan import Plan, Unmanaged
from reconciler.model.values import JSON, JSONObject

Mask = Callable[[str], str]


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
        body=_object(change.body, mask),
        after_create=_object(change.after_create, mask),
        consequences=tuple(
            replace(each, message=mask(each.message)) for each in change.consequences
        ),
        seen=_seen(change.seen, mask),
    )


def _field(each: FieldChange, mask: Mask) -> FieldChange:
    return replace(each, before=_value(each.before, mask), after=_value(each.after, mask))


def _seen(seen: Seen | None, mask: Mask) -> Seen | None:
    if seen is None:
        return None
    return Seen(seen.updated_at, {path: _value(item, mask) for path, item in seen.fields.items()})


def _object(body: JSONObject | None, mask: Mask) -> JSONObject | None:
    return {name: _value(item, mask) for name, item in body.items()} if body is not None else None


def _unmanaged(each: Unmanaged, mask: Mask) -> Unmanaged:
    parent = mask(each.parent_name) if each.parent_name is not None else None
    return replace(each, name=mask(each.name), parent_name=parent)


def _value(value: JSON, mask: Mask) -> JSON:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {mask(str(name)): _value(item, mask) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_value(item, mask) for item in value]
    return value
