"""Redact known secrets in plans and events before they are printed, saved or logged.

They may be in a field that the API returns. Values are redacted, not encoded text, in which an
escape or a line break could hide a secret.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from reconciler.model.change import Change, Consequence, FieldChange
from reconciler.model.event import Done, Event, Failed, Planned, Sent, Skipped
from reconciler.model.plan import Note, Plan, Refusal, Unmanaged
from reconciler.model.redaction import Mask, redact_value

_T = TypeVar(
    "_T", Change, Consequence, FieldChange, Note, Refusal, Unmanaged, Sent, Done, Failed, Skipped
)


def redact_plan(plan: Plan, mask: Mask) -> Plan:
    """Return the plan with every known secret masked, except in what it sends.

    Bodies stay as they are, since a saved plan is applied from them; their secrets are references.
    """
    return replace(
        plan,
        changes=tuple(_change(change, mask) for change in plan.changes),
        unmanaged=tuple(_masked(item, mask, "name", "parent_name") for item in plan.unmanaged),
        ignored=tuple(_masked(item, mask, "name", "parent_name") for item in plan.ignored),
        notes=tuple(_masked(note, mask, "message") for note in plan.notes),
        refusals=tuple(_masked(refusal, mask, "message") for refusal in plan.refusals),
    )


def redact_event(event: Event, mask: Mask) -> Event:
    """Return the event with every known secret masked, also in what its plan sends.

    Nothing is applied from an event, and a body may contain live values: settings that a
    replacement keeps.
    """
    match event:
        case Planned(plan):
            plan = redact_plan(plan, mask)
            bodies = (_masked(change, mask, "body", "after_create") for change in plan.changes)
            return Planned(replace(plan, changes=tuple(bodies)))
        case Sent():
            return _masked(event, mask, "path")
        case Done(_, _, notices):
            return replace(_masked(event, mask, "live_id"), notices=tuple(map(mask, notices)))
        case Failed():
            return _masked(event, mask, "error", "hint")
        case Skipped():
            return _masked(event, mask, "because")
        case _:
            return event


def _change(change: Change, mask: Mask) -> Change:
    return replace(
        _masked(change, mask, "name"),
        fields=tuple(_masked(field, mask, "before", "after") for field in change.fields),
        consequences=tuple(_masked(item, mask, "message") for item in change.consequences),
        seen=change.seen and {path: redact_value(item, mask) for path, item in change.seen.items()},
    )


def _masked(source: _T, mask: Mask, *names: str) -> _T:
    """Return a copy with every known secret masked in the values of these names."""
    return replace(source, **{name: redact_value(getattr(source, name), mask) for name in names})
