"""The field lines of a change: what is shown of each field that differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto

import orjson

from reconciler.model.change import Action, Change, FieldChange
from reconciler.model.values import JSON, MISSING, Path, SecretRef, path_text
from reconciler.model.wording import printable
from reconciler.render.plan.inside import capped, differences, text_lines, value_lines
from reconciler.render.plan.words import ORIGINS, SECRET_USES

_IN_PLACE = (Action.UPDATE, Action.REPLACE, Action.PAUSE, Action.UNPAUSE)
_MOST_LINES = 40
_SECRET = "(secret)"  # noqa: S105 - what is printed instead of one


class LineKind(Enum):
    """How the two sides of a field relate."""

    SET = auto()
    """Only `after`: a field of a new object, or a secret that is sent."""
    LOST = auto()
    """Only `before`: a field of an object that goes away."""
    KEPT = auto()
    """Only `before`: a secret that is not sent."""
    ADDED = auto()
    """Only `after`: the field is absent on the live object."""
    REMOVED = auto()
    """Only `before`: the field is removed from the live object."""
    CHANGED = auto()
    """Both sides."""


@dataclass(frozen=True, slots=True)
class FieldLine:
    """One field of a change with its sides as text on one line, "" where there is none.

    With `hunk` the value is long: its lines, each with its sign (-, + or a space) and a space.
    """

    name: str
    kind: LineKind
    before: str = ""
    after: str = ""
    remark: str = ""
    hunk: tuple[str, ...] = ()


def field_lines(change: Change) -> Iterator[FieldLine]:
    """Yield the fields of a change; secrets come last, with reference and why they are sent."""
    secret_paths = {note.path for note in change.secrets}
    for field in change.fields:
        if not (field.secret and field.path in secret_paths):
            yield from _lines_of(change, field)
    for note in change.secrets:
        name = printable(path_text(note.path))
        remark = printable(f"{note.ref}, {SECRET_USES[note.use]}")
        if note.use.sent:
            yield FieldLine(name, LineKind.SET, after=_SECRET, remark=remark)
        else:
            yield FieldLine(name, LineKind.KEPT, before=_SECRET, remark=remark)


def _lines_of(change: Change, field: FieldChange) -> Iterator[FieldLine]:
    remark = ORIGINS[field.origin] if change.action is not Action.CREATE else ""
    if field.reset:
        remark = "removed from the files: back to the default"
    name = printable(path_text(field.path))
    if field.secret:
        yield FieldLine(name, LineKind.SET, after=_SECRET, remark=remark)
        return
    before, after = _without_secrets(field.before), _without_secrets(field.after)
    places = differences(before, after) or [((), before, after)]
    for path, old, new in places[:_MOST_LINES]:
        yield _line(change, (*field.path, *path), old, new, remark=remark)
    if len(places) > _MOST_LINES:
        more = f"… {len(places) - _MOST_LINES} more differences"
        yield FieldLine(name, LineKind.SET, after=more)


def _line(change: Change, path: Path, before: JSON, after: JSON, *, remark: str) -> FieldLine:
    in_place = change.action in _IN_PLACE
    if before is MISSING:
        kind = LineKind.ADDED if in_place else LineKind.SET
        hunk = _signed("+", after)
    elif after is MISSING:
        kind = LineKind.REMOVED if in_place else LineKind.LOST
        hunk = _signed("-", before)
    else:
        kind, hunk = LineKind.CHANGED, text_lines(before, after)
    old = shown(before) if before is not MISSING else ""
    new = shown(after) if after is not MISSING else ""
    return FieldLine(printable(path_text(path)), kind, old, new, remark, hunk)


def _signed(sign: str, value: JSON) -> tuple[str, ...]:
    return capped(f"{sign} {line}" for line in value_lines(value))


def shown(value: JSON) -> str:
    """Return a value on one line, as JSON, that can't forge output."""
    return printable(orjson.dumps(_without_secrets(value), option=orjson.OPT_SORT_KEYS).decode())


def _without_secrets(value: JSON) -> JSON:
    if isinstance(value, SecretRef):
        return _SECRET
    if isinstance(value, Mapping):
        return {str(key): _without_secrets(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_secrets(item) for item in value]
    return value
