"""The lines of a change that a reader has to check, without `--verbose`."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.kinds import all_kinds
from reconciler.model.action import Action
from reconciler.model.change import Change, FieldChange
from reconciler.model.kind import Kind, Variant
from reconciler.model.text import printable
from reconciler.model.values import MISSING, path_text, value_at
from reconciler.render.plan.fields import (
    FieldLine,
    LineKind,
    changed_lines,
    field_lines,
    named_secrets_line,
    plain_lines,
    without_secrets,
)
from reconciler.render.plan.inside import value_lines
from reconciler.render.plan.words import bare

_MOST_FIELDS = 12
_TOGGLES = (Action.PAUSE, Action.UNPAUSE)


def lines_to_show(change: Change, *, verbose: bool) -> tuple[FieldLine, ...]:
    """Return the fields of a change. A deletion and a pause have none unless `verbose`.

    What begins to run again shows where it writes, as a new object does.
    """
    if verbose:
        place = tuple(_place(change)) if change.action is Action.CREATE else ()
        return (*place, *field_lines(change))
    if change.action is Action.CREATE:
        return tuple(_created(change))
    runs_again = change.action is Action.UNPAUSE or any(item.again for item in change.new)
    reach = tuple(reach_line(change)) if runs_again else ()
    if change.action is Action.DELETE or change.action in _TOGGLES:
        return reach
    return (*changed_lines(change), *reach)


def reach_line(change: Change) -> Iterator[FieldLine]:
    """Yield where an object writes and what, if that is known."""
    if change.reach:
        yield _set("reaches", printable(", ".join(change.reach)))


def _place(change: Change) -> Iterator[FieldLine]:
    """Yield the project of a new object."""
    if change.parent is not None or change.parent_name is not None:
        yield _set(_parent_key(change), _parent(change))


def _created(change: Change) -> Iterator[FieldLine]:
    """Yield the project, the plain fields, a line about each variant, and a line of secrets."""
    yield from _place(change)
    lines = [line for field in change.fields for line in _of_new(change, field)]
    yield from lines[:_MOST_FIELDS]
    if len(lines) > _MOST_FIELDS:
        yield _set(f"… {len(lines) - _MOST_FIELDS} more fields", "--verbose")
    for name, variant in variants_of(change.address.kind):
        if text := variant.summary(without_secrets(value_at(change.body, (name,)))):
            yield _set(name, printable(text))
    yield from named_secrets_line(change)


def _of_new(change: Change, field: FieldChange) -> Iterator[FieldLine]:
    if field.secret or field.path == ("name",):
        return
    kind, top = change.address.kind, field.path[0]
    for name, variant in variants_of(kind):
        if top == name and variant.summary(value_at(change.body, (name,))):
            return
    value = without_secrets(field.after)
    if _is_default(kind, field):
        return
    if value is not MISSING and not value_lines(value):
        yield _set(printable(path_text(field.written or field.path)), bare(value))
    else:
        # A long value has lines of its own, as in a change.
        alone = Change(change.address, change.action, change.name, fields=(field,))
        yield from plain_lines(alone)


def _is_default(kind: str, field: FieldChange) -> bool:
    """Return whether a new object has the value also without the field."""
    known = next((known.field_named(str(field.path[0])) for known in _kinds(kind)), None)
    return known is not None and len(field.path) == 1 and field.after == known.default


def _kinds(name: str) -> Iterator[Kind]:
    return (kind for kind in all_kinds() if kind.name == name)


def variants_of(kind: str) -> Iterator[tuple[str, Variant]]:
    """Yield the fields of a kind that have variants."""
    for known in _kinds(kind):
        yield from ((field.name, variant) for field, variant in known.variants)


def _parent_key(change: Change) -> str:
    return next((kind.parent_key for kind in _kinds(change.address.kind)), None) or "parent"


def _parent(change: Change) -> str:
    """Return `web "Web shop"`: key and name as far as they are known, the name once."""
    ref, name = change.parent, change.parent_name
    key = printable(str(ref)) if ref is not None else ""
    if name is None or name == key:
        return key or bare(name)
    if ref is not None and ref.key is None and ref.id is None:
        return f'"{printable(name)}"'
    return f'{key} "{printable(name)}"'.strip()


def _set(name: str, text: str) -> FieldLine:
    return FieldLine(name, LineKind.SET, after=text)
