"""Say in words how a change differs from the one that a saved plan contains."""

from __future__ import annotations

from collections.abc import Collection, Iterator
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
    shows_fields = change.action is Action.UPDATE and bool(change.fields)
    texts = map(_field, change.fields) if shows_fields else [change.action.value]
    for text in texts:
        yield f"{change.address}: {text} is not in the saved plan"


def omission(change: Change) -> Iterator[str]:
    """Yield what a saved change does that is neither planned now nor done."""
    shows_fields = change.action is Action.UPDATE and bool(change.fields)
    texts = map(_field, change.fields) if shows_fields else [change.action.value]
    for text in texts:
        yield f"{change.address}: {text} is in the saved plan, but is neither planned now nor done"


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
    before = {f"secret {path_text(n.path)} {n.use.meaning}" for n in saved.secrets if n.use.sent}
    after = {f"secret {path_text(n.path)} {n.use.meaning}" for n in now.secrets if n.use.sent}
    yield from _only(before, after)
    before = {f"{item.severity.value} {item.rule}" for item in saved.consequences}
    after = {f"{item.severity.value} {item.rule}" for item in now.consequences}
    yield from _only(before, after)
    yield from _only(_prefixed("after ", saved.depends_on), _prefixed("after ", now.depends_on))
    yield from _only(
        _prefixed("object inside with id ", saved.inside),
        _prefixed("object inside with id ", now.inside),
    )


def _only(before: Collection[str], after: Collection[str]) -> Iterator[str]:
    for text in sorted(set(after) - set(before)):
        yield f"{printable(text)} is not in the saved plan"
    for text in sorted(set(before) - set(after)):
        yield f"{printable(text)} is in the saved plan, but not planned now"


def _prefixed(prefix: str, texts: Collection[str]) -> set[str]:
    return {f"{prefix}{text}" for text in texts}


def _field(entry: FieldChange) -> str:
    """Return `interval "hour" -> "day"`, or the name alone for a secret."""
    name = printable(path_text(entry.path))
    return f"{name} (secret)" if entry.secret else f"{name} {_values(entry)}"


def _values(entry: FieldChange) -> str:
    return f"{_shown(entry.before)} -> {_shown(entry.after)}"


def _shown(value: JSON) -> str:
    text = _ABSENT if value is MISSING else printable(canonical_text(value))
    return shortened(text, _LONGEST_VALUE)
