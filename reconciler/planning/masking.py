"""Mask known secrets in plans and events before they are drawn, saved or logged.

Someone may have put a secret into a field that the service returns. It is masked in values and not
in encoded or drawn text, where an escape or a line break inside it would hide it from the search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from reconciler.model.change import Change, FieldChange, Seen
from reconciler.model.event import Done, Event, Failed, Planned, Sent, Skipped
from reconciler.model.plan import Plan, Unmanaged
from reconciler.model.values import JSON, JSONObject

Mask = Callable[[str], str]
MASK = "***"
"""The text that replaces a secret."""


def holds_mask(value: JSON) -> bool:
    """Return whether something in a value was masked, so that the value is not known."""
    if isinstance(value, str):
        return MASK in value
    if isinstance(value, Mapping):
        return any(holds_mask(item) for item in value.values())
    return isinstance(value, (list, tuple)) and any(holds_mask(item) for item in value)


def masked(plan: Plan, mask: Mask) -> Plan:
    """Return the plan with every known secret masked, except in what it sends.

    Bodies stay as they are, since a saved plan is applied from them; their secrets are references.
    """
    return replace(
        plan,
        changes=tuple(_change(change, mask) for change in plan.changes),
        unmanaged=tuple(_unmanaged(unmanaged, mask) for unmanaged in plan.unmanaged),
        ignored=tuple(_unmanaged(ignored, mask) for ignored in plan.ignored),
        notes=tuple(replace(note, message=mask(note.message)) for note in plan.notes),
        refusals=tuple(
            replace(refusal, message=mask(refusal.message)) for refusal in plan.refusals
        ),
    )


def masked_event(event: Event, mask: Mask) -> Event:
    """Return the event with every known secret masked, also in what its plan sends.

    Nothing is applied from an event, and a body may contain live values: settings that a
    replacement keeps.
    """
    match event:
        case Planned(plan):
            return Planned(_masked_bodies(masked(plan, mask), mask))
        case Sent(_, path):
            return replace(event, path=mask(path))
        case Done(_, live_id, notices):
            live_id = mask(live_id) if live_id is not None else None
            return replace(event, live_id=live_id, notices=tuple(map(mask, notices)))
        case Failed(_, error, hint):
            hint = mask(hint) if hint is not None else None
            return replace(event, error=mask(error), hint=hint)
        case Skipped(_, because):
            return replace(event, because=mask(because))
        case _:
            return event


def _masked_bodies(plan: Plan, mask: Mask) -> Plan:
    changes = (
        replace(
            change,
            body=_body(change.body, mask),
            after_create=_body(change.after_create, mask),
        )
        for change in plan.changes
    )
    return replace(plan, changes=tuple(changes))


def _body(body: JSONObject | None, mask: Mask) -> JSON:
    return masked_value(body, mask) if body is not None else None


def _change(change: Change, mask: Mask) -> Change:
    return replace(
        change,
        name=mask(change.name),
        fields=tuple(_field(field, mask) for field in change.fields),
        consequences=tuple(
            replace(consequence, message=mask(consequence.message))
            for consequence in change.consequences
        ),
        seen=_seen(change.seen, mask),
    )


def _field(field: FieldChange, mask: Mask) -> FieldChange:
    before, after = masked_value(field.before, mask), masked_value(field.after, mask)
    return replace(field, before=before, after=after)


def _seen(seen: Seen | None, mask: Mask) -> Seen | None:
    if seen is None:
        return None
    fields = {path: masked_value(value, mask) for path, value in seen.fields.items()}
    return replace(seen, fields=fields)


def _unmanaged(unmanaged: Unmanaged, mask: Mask) -> Unmanaged:
    parent = mask(unmanaged.parent_name) if unmanaged.parent_name is not None else None
    return replace(unmanaged, name=mask(unmanaged.name), parent_name=parent)


def masked_value(value: JSON, mask: Mask) -> JSON:
    """Return a value with every known secret in it masked."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {mask(str(name)): masked_value(item, mask) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked_value(item, mask) for item in value]
    return value
