"""Say in words how a change differs from the one that a saved plan contains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model.action import Action
from reconciler.model.change import Change, FieldChange
from reconciler.model.field_types import canonical_text
from reconciler.model.text import printable, shortened
from reconciler.model.values import JSON, MISSING, path_text

_LONGEST_VALUE: Final = 60
_ABSENT = "(not set)"


def addition(change: Change) -> Iterator[str]:
    """Yield what a change of the new plan does that the saved plan does not contain."""
    yield from (f"{text} is not in the saved plan" for text in _acts(change))


def omission(change: Change) -> Iterator[str]:
    """Yield what a saved change does that is neither planned now nor done."""
    missing = "is in the saved plan, but is neither planned now nor done"
    yield from (f"{text} {missing}" for text in _acts(change))


def _acts(change: Change) -> Iterator[str]:
    shows_fields = change.action is Action.UPDATE and bool(change.fields)
    for text in map(_field, change.fields) if shows_fields else [change.action.value]:
        yield f"{change.address}: {text}"


def deviations(saved: Change, now: Change) -> Iterator[str]:
    """Yield every difference between a saved change and the new one of the same id."""
    texts = [
        *_targets(saved, now),
        # The fields of a deletion are live values.
        *(_fields(saved, now) if now.action is not Action.DELETE else ()),
        *_live_values(saved, now),
        *_sets(saved, now),
    ]
    for text in texts or ["a value or the request differs from the saved plan"]:
        yield f"{now.address}: {text}"


def _targets(saved: Change, now: Change) -> Iterator[str]:
    for noun, before, after in (
        ("id", saved.live_id, now.live_id),
        ("name", saved.name, now.name),
        ("id of the parent", saved.parent_id, now.parent_id),
        ("id of the new object", saved.new_id, now.new_id),
    ):
        if before != after:
            yield f"{noun} is {_shown(after)}, the saved plan has {_shown(before)}"


def _fields(saved: Change, now: Change) -> Iterator[str]:
    before = {entry.path: entry for entry in saved.fields}
    after = {entry.path: entry for entry in now.fields}
    for path in sorted({*before, *after}, key=path_text):
        if path not in before:
            yield f"{_field(after[path])} is not in the saved plan"
        elif path not in after:
            yield f"{_field(before[path])} is in the saved plan, but not planned now"
        elif _values(before[path]) != _values(after[path]):
            was = _values(before[path])
            yield f"{_field(after[path])} is planned now, the saved plan has {was}"


def _live_values(saved: Change, now: Change) -> Iterator[str]:
    """Yield live values that differ from those at the time of the saved plan."""
    before, after = saved.seen or {}, now.seen or {}
    entries = (*saved.fields, *now.fields) if now.action is not Action.DELETE else ()
    for path in sorted({*before, *after} - {path_text(entry.path) for entry in entries}):
        was, value = before.get(path, MISSING), after.get(path, MISSING)
        if was != value:
            name = printable(path)
            yield f"live value of {name} is {_shown(value)}, the saved plan expects {_shown(was)}"


def _sets(saved: Change, now: Change) -> Iterator[str]:
    """Yield secrets, consequences, order and contained objects that only one of both has."""
    for before, after in zip(_parts(saved), _parts(now), strict=True):
        for text in sorted(after - before):
            yield f"{printable(text)} is not in the saved plan"
        for text in sorted(before - after):
            yield f"{printable(text)} is in the saved plan, but not planned now"


def _parts(change: Change) -> tuple[set[str], ...]:
    return (
        {f"secret {path_text(it.path)} {it.use.meaning}" for it in change.secrets if it.use.sent},
        {f"{item.severity.value} {item.rule}" for item in change.consequences},
        {f"after {change_id}" for change_id in change.depends_on},
        {f"object inside with id {live_id}" for live_id in change.inside},
    )


def _field(entry: FieldChange) -> str:
    """Return `interval "hour" -> "day"`, or the name alone for a secret."""
    name = printable(path_text(entry.path))
    return f"{name} (secret)" if entry.secret else f"{name} {_values(entry)}"


def _values(entry: FieldChange) -> str:
    return f"{_shown(entry.before)} -> {_shown(entry.after)}"


def _shown(value: JSON) -> str:
    text = _ABSENT if value is MISSING else printable(canonical_text(value))
    return shortened(text, _LONGEST_VALUE)
