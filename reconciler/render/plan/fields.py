"""The lines of a change: what is shown of every field that differs, in full and in brief."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto

from msgspec import Struct

from reconciler.kinds import all_kinds
from reconciler.model.kind import Action, Kind, Variant
from reconciler.model.plan import Change, FieldChange, SecretNote, SecretUse
from reconciler.model.text import printable, shortened
from reconciler.model.values import (
    JSON,
    MISSING,
    Path,
    SecretRef,
    map_leaves,
    path_text,
    value_at,
)
from reconciler.render.plan.inside import REORDERED, capped, differences, text_lines, value_lines
from reconciler.render.plan.words import ORIGINS, bare, json_line, with_names

_IN_PLACE = (Action.UPDATE, Action.REPLACE, Action.PAUSE, Action.UNPAUSE)
_MOST_LINES = 40
_LONGEST_ORIGIN = 80
_SECRET = "(secret)"  # noqa: S105 - printed instead of a secret
_BY_REFERENCE = (SecretUse.REFERENCE_CHANGED, SecretUse.VERSION_CHANGED)
"""Uses of a secret that are shown with its reference, as is one that changed."""
_MOST_FIELDS = 12
_TOGGLES = (Action.PAUSE, Action.UNPAUSE)


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


class FieldLine(Struct, frozen=True):
    """One field of a change. `before` and `after` are JSON on one line, "" if absent.

    A long value has its lines in `hunk`. A line begins with a sign (-, + or a space) and a space.
    `comment` is empty or says more about the field.
    """

    name: str
    kind: LineKind
    before: str = ""
    after: str = ""
    comment: str = ""
    hunk: tuple[str, ...] = ()


def field_lines(change: Change) -> Iterator[FieldLine]:
    """Yield all fields of a change, then all its secrets with reference and use."""
    yield from plain_lines(change)
    for note in change.secrets:
        yield _secret_line(note)


def changed_lines(change: Change) -> Iterator[FieldLine]:
    """Yield the fields that differ, then the secrets that are sent."""
    yield from plain_lines(change)
    sent = [note for note in change.secrets if note.use.sent]
    news = [note for note in sent if note.former or note.use in _BY_REFERENCE]
    yield from map(_secret_line, news)
    sent = [note for note in sent if note not in news]
    for use in dict.fromkeys(note.use for note in sent):
        comment = "" if use is SecretUse.CREATE else use.meaning
        yield from secrets_line([note for note in sent if note.use is use], comment)


def secrets_line(notes: Sequence[SecretNote], comment: str = "") -> Iterator[FieldLine]:
    """Yield one line for several secrets: their names and where they come from."""
    if not notes:
        return
    paths = [note.path for note in notes]
    common = 0
    while all(len(path) > common + 1 and path[common] == paths[0][common] for path in paths):
        common += 1
    names: dict[str, list[str]] = {}
    for note in notes:
        name = printable(path_text(note.path[common:]))
        names.setdefault(_providers(note.ref), []).append(name)
    text = "; ".join(f"{', '.join(listed)} (from {whence})" for whence, listed in names.items())
    yield FieldLine("secrets", LineKind.SET, after=text, comment=comment)


def named_secrets_line(change: Change) -> Iterator[FieldLine]:
    """Yield one line for the secrets of a new object: each with its reference, `token (env:T)`."""
    if parts := [
        f"{path_text(note.path[2:] or note.path)} ({origin_of(note.ref)})"
        for note in change.secrets
        if note.use.sent
    ]:
        yield FieldLine("secrets", LineKind.SET, after=printable(", ".join(parts)))


def origin_of(ref: SecretRef) -> str:
    """Return where a secret comes from: `env:TOKEN`. The place of a literal is not shown."""
    origins = (shortened(source.origin, _LONGEST_ORIGIN) for source in ref.sources)
    return " and ".join(dict.fromkeys(origins))


def _providers(ref: SecretRef) -> str:
    sources = dict.fromkeys(part.source for part in ref.parts if not isinstance(part, str))
    return printable(" and ".join(sources))


def _secret_line(note: SecretNote) -> FieldLine:
    name, reference = printable(path_text(note.path)), printable(str(note.ref))
    if note.use.sent and note.former:
        before = printable(note.former)
        return FieldLine(name, LineKind.CHANGED, before, reference, note.use.meaning)
    if note.use.sent:
        return FieldLine(name, LineKind.SET, after=reference, comment=note.use.meaning)
    return FieldLine(name, LineKind.KEPT, before=reference, comment=note.use.meaning)


def plain_lines(change: Change) -> Iterator[FieldLine]:
    """Yield the fields of a change without those that its secrets describe."""
    secret_paths = {note.path for note in change.secrets}
    # An origin that all fields share is that of the change.
    mixed = len({field.origin for field in change.fields}) > 1
    for field in change.fields:
        if not (field.secret and field.path in secret_paths):
            yield from _lines_of(change, field, mixed=mixed)


def _lines_of(change: Change, field: FieldChange, *, mixed: bool) -> Iterator[FieldLine]:
    comment = ORIGINS[field.origin] if mixed and change.action is not Action.CREATE else ""
    if field.reset:
        comment = "removed: reset to the default"
    whole = field.written or field.path
    name = printable(path_text(whole))
    if field.secret:
        yield FieldLine(name, LineKind.SET, after=_SECRET, comment=comment)
        return
    if _is_parent(change, field):
        after = change.parent_name if change.parent_name is not None else str(field.after)
        yield FieldLine(name, LineKind.CHANGED, bare(change.old_parent_name), bare(after))
        return
    before, after = without_secrets(field.before), without_secrets(field.after)
    places = differences(before, after) or [((), before, after)]
    for path, old, new in places[:_MOST_LINES]:
        yield _line(change, (*whole, *path), old, new, comment=comment)
    if len(places) > _MOST_LINES:
        more = f"… {len(places) - _MOST_LINES} more differences"
        yield FieldLine(name, LineKind.SET, after=more)


def _is_parent(change: Change, field: FieldChange) -> bool:
    """Return whether a field is the parent of a moved object, whose name is known."""
    return (
        change.old_parent_name is not None
        and len(field.path) == 1
        and field.before == change.old_parent_id
        and field.after in (change.parent_id, str(change.parent))
    )


def _line(change: Change, path: Path, before: JSON, after: JSON, *, comment: str) -> FieldLine:
    in_place = change.action in _IN_PLACE
    name = printable(path_text(path))
    if after is REORDERED:
        return FieldLine(name, LineKind.SET, after="order changed", comment=comment)
    if before is MISSING:
        kind = LineKind.ADDED if in_place else LineKind.SET
        hunk = capped(f"+ {line}" for line in value_lines(after))
    elif after is MISSING:
        kind = LineKind.REMOVED if in_place else LineKind.LOST
        hunk = capped(f"- {line}" for line in value_lines(before))
    else:
        kind, hunk = LineKind.CHANGED, text_lines(before, after)
    old, new = (_shown(change, path, value) for value in (before, after))
    return FieldLine(name, kind, old, new, comment, hunk)


def _shown(change: Change, path: Path, value: JSON) -> str:
    if value is MISSING:
        return ""
    word = f"{path[-1]} "
    return with_names(word + json_line(value), change).removeprefix(word)


def without_secrets(value: JSON) -> JSON:
    """Return a value in which secrets are replaced by a word."""
    return map_leaves(value, lambda leaf: _SECRET if isinstance(leaf, SecretRef) else leaf)


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
        yield _set("reaches", printable(with_names(", ".join(change.reach), change)))


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
            yield _set(name, printable(with_names(text, change)))
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
