"""Redact known secrets in plans and events before they are printed, saved or logged.

They may be in a field that the API returns. Values are redacted, not encoded text, in which an
escape or a line break could hide a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec.structs import replace

from reconciler.model.event import (
    BackfillsEnded,
    BackfillsPlanned,
    Done,
    Ended,
    Event,
    Failed,
    Planned,
    Report,
    Skipped,
    Started,
    Twins,
    Withdrawing,
    Withdrawn,
)
from reconciler.model.plan import (
    Change,
    Consequence,
    FieldChange,
    NewPlace,
    Note,
    Plan,
    RecentRun,
    Refusal,
    Unmanaged,
)
from reconciler.model.redaction import Mask, masked_in, redact_value

_T = TypeVar("_T", Change, Consequence, FieldChange, NewPlace, RecentRun, Note, Refusal, Unmanaged)
_Event = TypeVar("_Event", bound=Event)
_TEXTS = (
    *("path", "error", "reason", "collection", "live_id", "notices", "hint", "because"),
    *("twin_id", "twin_ids", "message"),
)
"""The attributes of events that are texts, or tuples of texts."""


def redact_plan(plan: Plan, mask: Mask) -> Plan:
    """Return the plan with every known secret masked.

    Nothing is applied from a masked plan: bodies may contain live values, settings that a
    replacement keeps.
    """
    return replace(
        plan,
        changes=tuple(_changes(plan.changes, mask)),
        unmanaged=tuple(_masked(item, mask, "name", "parent_name") for item in plan.unmanaged),
        ignored=tuple(_masked(item, mask, "name", "parent_name") for item in plan.ignored),
        notes=tuple(_masked(note, mask, "message") for note in plan.notes),
        refusals=tuple(_masked(refusal, mask, "message") for refusal in plan.refusals),
    )


def redact_event(
    event: _Event, mask: Mask, changes: Mapping[str, Change] = MappingProxyType({})
) -> _Event:
    """Return the event with every known secret masked.

    `changes` are those that are masked already, by id.
    """
    parts: dict[str, Any] = {
        name: _masked_text(getattr(event, name), mask) for name in _TEXTS if hasattr(event, name)
    }
    match event:
        case BackfillsPlanned() | BackfillsEnded():
            return masked_in(event, mask)
        case Planned(plan):
            parts["plan"] = redact_plan(plan, mask)
        case Ended(report):
            parts["report"] = redact_report(report, mask, changes)
        case Started() | Done() | Failed() | Skipped() | Withdrawing() | Withdrawn() | Twins():
            change = event.change
            parts["change"] = changes.get(change.id) or _change(change, mask)
    return replace(event, **parts)


def redact_report(
    report: Report, mask: Mask, changes: Mapping[str, Change] = MappingProxyType({})
) -> Report:
    """Return the report with every known secret masked.

    `changes` are those that are masked already, by id.
    """
    results = ("done", "failed", "skipped", "withdrawn", "twins")
    masked: dict[str, Any] = {
        name: tuple(redact_event(event, mask, changes) for event in getattr(report, name))
        for name in results
    }
    return replace(report, **masked)


def _masked_text(value: str | tuple[str, ...] | None, mask: Mask) -> str | tuple[str, ...] | None:
    if isinstance(value, tuple):
        return tuple(map(mask, value))
    return mask(value) if value is not None else None


def _changes(changes: Sequence[Change], mask: Mask) -> Iterator[Change]:
    """Yield changes with every known secret masked.

    Most are no-ops, which have nothing but names. These are searched for secrets at once, as the
    lines of one text.
    """
    names = {
        name
        for change in changes
        if _has_only_names(change)
        for name in (change.name, change.parent_name)
        if name
    }
    text = "\n".join(names)
    is_plain = mask(text) == text
    for change in changes:
        yield change if is_plain and _has_only_names(change) else _change(change, mask)


def _has_only_names(change: Change) -> bool:
    return not (
        change.body
        or change.after_create
        or change.old_parent_name
        or change.fields
        or change.consequences
        or change.runs
        or change.seen
        or change.reach
    )


def _change(change: Change, mask: Mask) -> Change:
    names = ("name", "body", "after_create", "parent_name", "old_parent_name", "reach")
    masked = _masked(change, mask, *names, "integrations")
    if not (change.fields or change.consequences or change.seen):
        return masked
    return replace(
        masked,
        fields=tuple(_masked(field, mask, "before", "after") for field in change.fields),
        consequences=tuple(_masked(item, mask, "message") for item in change.consequences),
        runs=tuple(_masked(run, mask, "status") for run in change.runs),
        new=tuple(_masked(item, mask, "text", "host", "before", "inside") for item in change.new),
        seen=change.seen and {path: redact_value(item, mask) for path, item in change.seen.items()},
    )


def _masked(source: _T, mask: Mask, *names: str) -> _T:
    """Return it with every known secret masked in the values of these names: a copy if any is."""
    values = {name: getattr(source, name) for name in names}
    masked = {name: redact_value(value, mask) for name, value in values.items() if value}
    masked = {name: value for name, value in masked.items() if value != values[name]}
    return replace(source, **masked) if masked else source
