"""Redact known secrets in plans and events before they are printed, saved or logged.

They may be in a field that the API returns. Values are redacted, not encoded text, in which an
escape or a line break could hide a secret.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.change import Change
from reconciler.model.event import Done, Event, Failed, Planned, Sent, Skipped
from reconciler.model.plan import Plan, Unmanaged
from reconciler.model.redaction import Mask, redact_value


def redact_plan(plan: Plan, mask: Mask) -> Plan:
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


def redact_event(event: Event, mask: Mask) -> Event:
    """Return the event with every known secret masked, also in what its plan sends.

    Nothing is applied from an event, and a body may contain live values: settings that a
    replacement keeps.
    """
    match event:
        case Planned(plan):
            plan = redact_plan(plan, mask)
            return Planned(replace(plan, changes=tuple(_bodies(c, mask) for c in plan.changes)))
        case Sent(_, path):
            return replace(event, path=mask(path))
        case Done(_, live_id, notices):
            return replace(
                event, live_id=redact_value(live_id, mask), notices=tuple(map(mask, notices))
            )
        case Failed(_, error, hint):
            return replace(event, error=mask(error), hint=redact_value(hint, mask))
        case Skipped(_, because):
            return replace(event, because=mask(because))
        case _:
            return event


def _bodies(change: Change, mask: Mask) -> Change:
    return replace(
        change,
        body=redact_value(change.body, mask),
        after_create=redact_value(change.after_create, mask),
    )


def _change(change: Change, mask: Mask) -> Change:
    return replace(
        change,
        name=mask(change.name),
        fields=tuple(
            replace(
                field,
                before=redact_value(field.before, mask),
                after=redact_value(field.after, mask),
            )
            for field in change.fields
        ),
        consequences=tuple(
            replace(consequence, message=mask(consequence.message))
            for consequence in change.consequences
        ),
        seen=change.seen and {path: redact_value(item, mask) for path, item in change.seen.items()},
    )


def _unmanaged(unmanaged: Unmanaged, mask: Mask) -> Unmanaged:
    return replace(
        unmanaged,
        name=mask(unmanaged.name),
        parent_name=redact_value(unmanaged.parent_name, mask),
    )
