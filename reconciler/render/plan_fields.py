"""What is shown of each field of a change, path by path in values and line by line in texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from itertools import islice
from typing import TypeAlias

import orjson
from msgspec import Struct

from reconciler.kinds import all_kinds
from reconciler.model.kind import Action, Kind, Variant
from reconciler.model.plan import Change, FieldChange, Origin, SecretNote, SecretUse
from reconciler.model.schemas import canonical_text
from reconciler.model.text import printable, shortened
from reconciler.model.values import (
    JSON,
    MISSING,
    Path,
    SecretRef,
    map_leaves,
    path_text,
    value_at,
    walk,
)

Difference: TypeAlias = tuple[Path, JSON, JSON]
"""Path, old and new value. A side that is absent is MISSING."""
_IN_PLACE = (Action.UPDATE, Action.REPLACE, Action.PAUSE, Action.UNPAUSE)
_TOGGLES = (Action.PAUSE, Action.UNPAUSE)
_BY_REFERENCE = (SecretUse.REFERENCE_CHANGED, SecretUse.VERSION_CHANGED)
"""Uses of a secret that are shown with its reference, as is one that changed."""
_SECRET = "(secret)"  # noqa: S105 - printed instead of a secret
_LONG = 100
"""Characters after which a value or a line is shown in parts."""
_LONGEST_ORIGIN = 80
_MOST_FIELDS = 12
_MOST_LINES = 40
"""Differences inside one field."""
_MOST_IN_HUNK = 40
_MOST_COMPARED = 1_000
_MOST_PAIRS = 5_000
"""Pairs of values in items to compare: that takes up to 0.1 ms each."""
_CONTEXT = 1
_WORDS = re.compile(r"\S+\s*")
_BREAKS = re.compile(r"(?<=,) ")
_BARE = re.compile(r"(?!-?\d+(\.\d+)?([eE]\S*)?$)\w[\w./:@+-]*( [\w./:@+-]+)*")
"""A text that reads the same without quotes: it is not a number."""
_KEYWORDS = ("true", "false", "null")
_INTEGRATION = re.compile(r"\b(integration|authorization|bucket_credentials) (\d+)\b")
ORIGINS: Mapping[Origin, str] = {
    Origin.FILES: "changed in the configuration",
    Origin.LIVE: "drift",
    Origin.BOTH: "conflict",
    Origin.UNKNOWN: "",
}


class LineKind(Enum):
    """How the two sides of a field relate."""

    SET = auto()
    """One side: a field of an object that is created or deleted, or a secret that is sent."""
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


def lines_to_show(change: Change, *, verbose: bool) -> tuple[FieldLine, ...]:
    """Return the fields of a change. A deletion and a pause have none unless `verbose`.

    What begins to run again shows where it writes, as a new object does.
    """
    if verbose:
        place = tuple(_place(change)) if change.action is Action.CREATE else ()
        return (*place, *field_lines(change))
    if change.action is Action.CREATE:
        return tuple(created_lines(change))
    runs_again = change.action is Action.UNPAUSE or any(item.again for item in change.new)
    reach = tuple(reach_line(change)) if runs_again else ()
    if change.action is Action.DELETE or change.action in _TOGGLES:
        return reach
    return (*changed_lines(change), *reach)


def field_lines(change: Change) -> Iterator[FieldLine]:
    """Yield all fields of a change, then all its secrets with reference and use."""
    yield from plain_lines(change)
    for note in change.secrets:
        yield _secret_line(note)


def changed_lines(change: Change) -> Iterator[FieldLine]:
    """Yield the fields that differ, then the secrets that are sent."""
    yield from plain_lines(change)
    others: dict[SecretUse, list[SecretNote]] = {}
    for note in change.secrets:
        if note.use.sent and (note.former or note.use in _BY_REFERENCE):
            yield _secret_line(note)
        elif note.use.sent:
            others.setdefault(note.use, []).append(note)
    for use, notes in others.items():
        yield from _secrets_line(notes, "" if use is SecretUse.CREATE else use.meaning)


def created_lines(change: Change) -> Iterator[FieldLine]:
    """Yield the project, the plain fields, a line about each variant, and a line of secrets."""
    yield from _place(change)
    lines = [line for field in change.fields for line in _of_new(change, field)]
    yield from lines[:_MOST_FIELDS]
    if len(lines) > _MOST_FIELDS:
        yield _set(f"… {len(lines) - _MOST_FIELDS} more fields", "--verbose")
    for name, variant in variants_of(change.address.kind):
        if text := variant.summary(without_secrets(value_at(change.body, (name,)))):
            yield _set(name, printable(with_names(text, change)))
    yield from _secrets_line(change.secrets)


def _of_new(change: Change, field: FieldChange) -> Iterator[FieldLine]:
    if field.secret or field.path == ("name",):
        return
    kind, top = change.address.kind, field.path[0]
    for name, variant in variants_of(kind):
        if top == name and variant.summary(value_at(change.body, (name,))):
            return
    known = next((known.field_named(str(top)) for known in _kinds(kind)), None)
    if known is not None and len(field.path) == 1 and field.after == known.default:
        # A new object has the value also without the field.
        return
    value = without_secrets(field.after)
    if value is not MISSING and not value_lines(value):
        yield _set(printable(path_text(field.written or field.path)), bare(value))
    else:
        # A long value has lines of its own, as in a change.
        alone = Change(change.address, change.action, change.name, fields=(field,))
        yield from plain_lines(alone)


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
        yield _set(name, _SECRET, comment)
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
        yield _set(name, f"… {len(places) - _MOST_LINES} more differences")


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
    if before is MISSING:
        kind = LineKind.ADDED if in_place else LineKind.SET
        hunk = capped(f"+ {line}" for line in value_lines(after))
    elif after is MISSING:
        kind = LineKind.REMOVED if in_place else LineKind.SET
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


def _place(change: Change) -> Iterator[FieldLine]:
    """Yield the project of a new object."""
    if change.parent is not None or change.parent_name is not None:
        keys = (kind.parent_key for kind in _kinds(change.address.kind))
        yield _set(next(keys, None) or "parent", _parent(change))


def _parent(change: Change) -> str:
    """Return `web "Web shop"`: key and name as far as they are known, the name once."""
    ref, name = change.parent, change.parent_name
    key = printable(str(ref)) if ref is not None else ""
    if name is None or name == key:
        return key or bare(name)
    if ref is not None and ref.key is None and ref.id is None:
        return f'"{printable(name)}"'
    return f'{key} "{printable(name)}"'.strip()


def reach_line(change: Change) -> Iterator[FieldLine]:
    """Yield where an object writes and what, if that is known."""
    if change.reach:
        yield _set("reaches", printable(with_names(", ".join(change.reach), change)))


def _secrets_line(notes: Sequence[SecretNote], comment: str = "") -> Iterator[FieldLine]:
    """Yield one line for the secrets that are sent: each with its reference, `token (env:T)`."""
    if parts := [
        f"{path_text(note.path[2:] or note.path)} ({origin_of(note.ref)})"
        for note in notes
        if note.use.sent
    ]:
        yield _set("secrets", printable(", ".join(parts)), comment)


def _secret_line(note: SecretNote) -> FieldLine:
    name, reference = printable(path_text(note.path)), printable(str(note.ref))
    if note.use.sent and note.former:
        before = printable(note.former)
        return FieldLine(name, LineKind.CHANGED, before, reference, note.use.meaning)
    if note.use.sent:
        return _set(name, reference, note.use.meaning)
    return FieldLine(name, LineKind.KEPT, before=reference, comment=note.use.meaning)


def origin_of(ref: SecretRef) -> str:
    """Return where a secret comes from: `env:TOKEN`. The place of a literal is not shown."""
    origins = (shortened(source.origin, _LONGEST_ORIGIN) for source in ref.sources)
    return " and ".join(dict.fromkeys(origins))


def _set(name: str, text: str, comment: str = "") -> FieldLine:
    return FieldLine(name, LineKind.SET, after=text, comment=comment)


def variants_of(kind: str) -> Iterator[tuple[str, Variant]]:
    """Yield the fields of a kind that have variants."""
    for known in _kinds(kind):
        yield from ((field.name, variant) for field, variant in known.variants)


def _kinds(name: str) -> Iterator[Kind]:
    return (kind for kind in all_kinds() if kind.name == name)


def bare(value: JSON) -> str:
    """Return a value on one line, as JSON, and a simple text without quotes."""
    if isinstance(value, str) and _BARE.fullmatch(value) and value not in _KEYWORDS:
        return value
    return json_line(value)


def json_line(value: JSON) -> str:
    """Return a value as printable JSON on one line."""
    return printable(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())


def with_names(text: str, change: Change) -> str:
    """Return a text with the names of integrations before their ids, as far as they are known."""
    if not change.integrations:
        return text
    return _INTEGRATION.sub(lambda at: f"{at[1]} {change.integrations.get(at[2], at[2])}", text)


def differences(before: JSON, after: JSON) -> list[Difference]:
    """Return the differences inside of two nested values.

    Return none if the values are better shown whole: if they are not two objects or two lists,
    have no key in common, or are short lists. Positions are those of the old list, and of the new
    list for added items.
    """
    if isinstance(before, list) and isinstance(after, list):
        comparable = bool(before and after) and _size(before) + _size(after) > _LONG
    else:
        comparable = isinstance(before, Mapping) and isinstance(after, Mapping)
        comparable = comparable and bool(before.keys() & after.keys())
    return list(_differences((), before, after)) if comparable else []


def _size(value: JSON) -> int:
    return len(canonical_text(value))


def _differences(path: Path, before: JSON, after: JSON) -> Iterator[Difference]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted(before.keys() | after.keys()):
            old, new = before.get(name, MISSING), after.get(name, MISSING)
            yield from _differences((*path, name), old, new)
    elif before is MISSING or after is MISSING or canonical_text(before) != canonical_text(after):
        both = isinstance(before, list) and isinstance(after, list)
        inside = _of_lists(before, after) if both else []
        whole = [((), before, after)]
        yield from (((*path, *at), old, new) for at, old, new in inside or whole)


def _of_lists(before: list[JSON], after: list[JSON]) -> list[Difference]:
    """Return what DeepDiff finds in two lists, [] if the order differs or too much does."""
    old, new = [*map(canonical_text, before)], [*map(canonical_text, after)]
    gone = {at: before[at] for at in _others(old, new)}
    added = {at: after[at] for at in _others(new, old)}
    kept = [text for at, text in enumerate(old) if at not in gone]
    items, changed = [*gone.values()], [*added.values()]
    if kept != [text for at, text in enumerate(new) if at not in added]:
        return []
    if _parts(items) * _parts(changed) > _MOST_PAIRS:
        return []
    # Imported here, since it takes 95 ms, and few plans have changes inside of lists.
    from deepdiff import DeepDiff
    from deepdiff.helper import notpresent

    tree = DeepDiff(
        items,
        changed,
        ignore_order=True,
        cutoff_intersection_for_pairs=1,
        cutoff_distance_for_pairs=0.15,
        ignore_private_variables=False,
        view="tree",
    )
    result: list[Difference] = []
    seen: tuple[set[int], set[int]] = set(), set()
    for level in (level for levels in tree.values() for level in levels):
        first, *rest = level.path(output_format="list")
        is_new = level.t1 is notpresent and not rest
        if not is_new:
            seen[0].add(first)
        if level.t2 is not notpresent or rest:
            seen[1].add(level.path(use_t2=True, output_format="list")[0])
        at = [*added][first] if is_new else [*gone][first]
        left, right = (MISSING if side is notpresent else side for side in (level.t1, level.t2))
        result.append(((at, *rest), left, right))
    # Not reported are equal items but one, and items that differ in the order of what is inside.
    complete = (len(seen[0]), len(seen[1])) == (len(gone), len(added))
    return sorted(result, key=lambda item: item[0][0]) if complete else []


def _others(texts: Sequence[str], others: Sequence[str]) -> Iterator[int]:
    """Yield the positions of texts that the others do not have, or not as often."""
    left = Counter(others)
    for at, text in enumerate(texts):
        left[text] -= 1
        if left[text] < 0:
            yield at


def _parts(items: Sequence[JSON]) -> int:
    return sum(1 for _ in walk([*items]))


def value_lines(value: JSON) -> list[str]:
    """Return the lines of a text with line ends, or of a long object or list, [] otherwise."""
    if isinstance(value, str):
        lines = value.removesuffix("\n").split("\n")
        return lines if len(lines) > 1 else []
    if isinstance(value, (Mapping, list)) and _size(value) > _LONG:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode()
        return text.split("\n")
    return []


def text_lines(before: JSON, after: JSON) -> tuple[str, ...]:
    """Return two long values as one list of lines that begin with a sign (-, + or a space).

    Long lines of texts are broken after commas. A text without line ends, as the server returns
    queries, gets the lines of the other text, so that line ends are not differences. Return
    nothing if the values are short or differ only in line ends.
    """
    if not (isinstance(before, str) and isinstance(after, str)):
        old, new = value_lines(before), value_lines(after)
        return capped(_changed(old, new)) if old and new else ()
    before, after = before.removesuffix("\n"), after.removesuffix("\n")
    if "\n" not in before + after and max(len(before), len(after)) <= _LONG:
        return ()
    if "\n" in after and "\n" not in before:
        before = _laid_out_like(after, before)
    elif "\n" in before and "\n" not in after:
        after = _laid_out_like(before, after)
    return capped(_changed(_pieces(before), _pieces(after)))


def capped(lines: Iterator[str]) -> tuple[str, ...]:
    """Return the first and the last lines, printable, and between them the number of the others."""
    every, half = [*lines], _MOST_IN_HUNK // 2
    if (more := len(every) - 2 * half) > 0:
        every[half:-half] = [f"  … {more} more lines"]
    return tuple(map(printable, every))


def _pieces(text: str) -> list[str]:
    return [
        piece
        for line in text.split("\n")
        for piece in (_BREAKS.split(line) if len(line) > _LONG else [line])
    ]


def _laid_out_like(guide: str, text: str) -> str:
    """Return a text with the lines of another one: equal words are on equal lines.

    Other words get lines of their own, unless they are between words of one line.
    """
    from difflib import SequenceMatcher

    rows = guide.split("\n")
    at = [row for row, line in enumerate(rows) for _ in line.split()]
    words = _WORDS.findall(text.lstrip())
    lines: list[str] = []
    now, indent = -1, ""
    # Keywords of a query ignore case.
    own, others = ([word.casefold() for word in whole.split()] for whole in (text, guide))
    if max(len(own), len(others)) > _MOST_COMPARED:
        return text
    steps = SequenceMatcher(None, own, others, autojunk=False).get_opcodes()
    for tag, start, end, there, until in steps:
        around = set(at[there:until] if until > there else at[max(0, there - 1) :][:2])
        inside = min(around) if len(around) == 1 else len(rows)
        for position in range(start, end):
            row = at[there + position - start] if tag == "equal" else inside
            if row < len(rows):
                indent = rows[row][: len(rows[row]) - len(rows[row].lstrip())]
            if row != now or not lines:
                lines.append(indent)
            lines[-1] += words[position]
            now = row
    return "\n".join(line.rstrip() for line in lines)


def _changed(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    if max(len(old), len(new)) > _MOST_COMPARED and old != new:
        # A comparison takes the square of the length.
        yield from (f"- {line}" for line in old)
        yield from (f"+ {line}" for line in new)
        return
    # Imported here, since few plans have changes inside of texts.
    from difflib import unified_diff

    for line in islice(unified_diff(old, new, n=_CONTEXT, lineterm=""), 2, None):
        if not line.startswith("@@"):
            yield f"{line[0]} {line[1:]}"
        elif not line.startswith(("@@ -1,", "@@ -1 ")):
            yield f"  {line}"
