"""The lines of a change: what is shown of every field that differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

import orjson

from reconciler.model.change import Action, Change, FieldChange
from reconciler.model.json_tree import map_leaves
from reconciler.model.values import JSON, MISSING, Path, SecretRef, path_text
from reconciler.model.wording import printable
from reconciler.render.plan.inside import capped, differences, text_lines, value_lines
from reconciler.render.plan.words import ORIGINS

_IN_PLACE = (Action.UPDATE, Action.REPLACE, Action.PAUSE, Action.UNPAUSE)
_MOST_LINES = 40
_SECRET = "(secret)"  # noqa: S105 - printed instead of a secret


class LineKind(Enum):
    """How the two sides of a field relate."""

    SET = auto()
    """Only `after`: a field of a new object, or a secret that is sent."""
    LOST = auto()
    """Only `before`: a field of an object that is deleted."""
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
    """One field of a change. `before` and `after` are JSON on one line, "" if absent.

    A long value has its lines in `hunk`. A line begins with a sign (-, + or a space) and a space.
    `comment` is empty or begins with two spaces and `#`.
    """

    name: str
    kind: LineKind
    before: str = ""
    after: str = ""
    comment: str = ""
    hunk: tuple[str, ...] = ()


def field_lines(change: Change) -> Iterator[FieldLine]:
    """Yield the fields of a change, then its secrets with reference and use."""
    secret_paths = {note.path for note in change.secrets}
    for field in change.fields:
        if not (field.secret and field.path in secret_paths):
            yield from _lines_of(change, field)
    for note in change.secrets:
        name = printable(path_text(note.path))
        reference, comment = printable(str(note.ref)), f"  # {note.use.meaning}"
        if note.use.sent:
            yield FieldLine(name, LineKind.SET, after=reference, comment=comment)
        else:
            yield FieldLine(name, LineKind.KEPT, before=reference, comment=comment)


def _lines_of(change: Change, field: FieldChange) -> Iterator[FieldLine]:
    origin = ORIGINS[field.origin] if change.action is not Action.CREATE else ""
    if field.reset:
        origin = "removed from the configuration: reset to the default"
    comment = f"  # {origin}" if origin else ""
    name = printable(path_text(field.path))
    if field.secret:
        yield FieldLine(name, LineKind.SET, after=_SECRET, comment=comment)
        return
    before, after = _without_secrets(field.before), _without_secrets(field.after)
    places = differences(before, after) or [((), before, after)]
    for path, old, new in places[:_MOST_LINES]:
        yield _line(change, (*field.path, *path), old, new, comment=comment)
    if len(places) > _MOST_LINES:
        more = f"… {len(places) - _MOST_LINES} more differences"
        yield FieldLine(name, LineKind.SET, after=more)


def _line(change: Change, path: Path, before: JSON, after: JSON, *, comment: str) -> FieldLine:
    in_place = change.action in _IN_PLACE
    if before is MISSING:
        kind = LineKind.ADDED if in_place else LineKind.SET
        hunk = capped(f"+ {line}" for line in value_lines(after))
    elif after is MISSING:
        kind = LineKind.REMOVED if in_place else LineKind.LOST
        hunk = capped(f"- {line}" for line in value_lines(before))
    else:
        kind, hunk = LineKind.CHANGED, text_lines(before, after)
    name = printable(path_text(path))
    return FieldLine(name, kind, _shown(before), _shown(after), comment, hunk)


def _shown(value: JSON) -> str:
    if value is MISSING:
        return ""
    return printable(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())


def _without_secrets(value: JSON) -> JSON:
    return map_leaves(value, lambda leaf: _SECRET if isinstance(leaf, SecretRef) else leaf)
