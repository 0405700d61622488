"""Differences inside nested values, path by path, and inside long texts, line by line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias

import orjson

from reconciler.model.field_types import canonical_text
from reconciler.model.text import printable
from reconciler.model.values import JSON, MISSING, Path, walk

_LONG = 100
_CONTEXT = 1
_MOST = 40
_MOST_COMPARED = 1_000
_MOST_PAIRS = 5_000
"""Pairs of values in items to compare: that takes up to 0.1 ms each."""
REORDERED: Final = object()
"""Stands for the new value of a list or an item that only has another order inside."""
_WORDS = re.compile(r"\S+\s*")
_BREAKS = re.compile(r"(?<=,) ")


Difference: TypeAlias = tuple[Path, JSON, JSON]
"""Path, old and new value. A side that is absent is MISSING."""


def differences(before: JSON, after: JSON) -> list[Difference]:
    """Return the differences of two nested values.

    Return none if the values are better shown whole: if they are not two objects or two lists,
    have no key in common, or are short lists. Positions are those of the old list, and of the new
    list for added items.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        comparable = bool(before.keys() & after.keys())
    elif isinstance(before, list) and isinstance(after, list):
        comparable = bool(before and after) and _size(before) + _size(after) > _LONG
    else:
        comparable = False
    return list(_differences((), before, after)) if comparable else []


def _size(value: JSON) -> int:
    return len(canonical_text(value))


def _differences(path: Path, before: JSON, after: JSON) -> Iterator[Difference]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted(before.keys() | after.keys()):
            old, new = before.get(name, MISSING), after.get(name, MISSING)
            yield from _differences((*path, name), old, new)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(path, before, after)
    elif before is MISSING or after is MISSING or canonical_text(before) != canonical_text(after):
        yield path, before, after


def _of_lists(path: Path, before: list[JSON], after: list[JSON]) -> Iterator[Difference]:
    """Yield the items that differ, whatever their order, and that the order of others changed."""
    old, new = [*map(canonical_text, before)], [*map(canonical_text, after)]
    common = Counter(old) & Counter(new)
    gone = {at: before[at] for at in _others(old, common)}
    added = {at: after[at] for at in _others(new, common)}
    if len(gone) == len(added) == 1:
        ((at, item),), (other,) = gone.items(), added.values()
        whole = ((*path, at), item, other)
        yield from _differences(*whole) if _related(item, other) else [whole]
    elif _parts(gone) * _parts(added) <= _MOST_PAIRS:
        yield from _of_items(path, gone, added)
    else:
        yield from (((*path, at), item, MISSING) for at, item in gone.items())
        yield from (((*path, at), MISSING, item) for at, item in added.items())
    kept = (text for at, text in enumerate(old) if at not in gone)
    if list(kept) != [text for at, text in enumerate(new) if at not in added]:
        yield path, MISSING, REORDERED


def _related(before: JSON, after: JSON) -> bool:
    """Return whether two items are better compared inside than shown whole."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return bool(before.keys() & after.keys())
    return isinstance(before, list) and isinstance(after, list)


def _parts(items: Mapping[int, JSON]) -> int:
    return sum(1 for _ in walk([*items.values()]))


def _others(texts: Sequence[str], common: Counter[str]) -> Iterator[int]:
    """Yield the positions of texts that are not common, or are repeated more often."""
    left = common.copy()
    for at, text in enumerate(texts):
        left[text] -= 1
        if left[text] < 0:
            yield at


def _of_items(
    path: Path, gone: Mapping[int, JSON], added: Mapping[int, JSON]
) -> Iterator[Difference]:
    """Yield the differences between items of a list, by position, the similar ones inside."""
    # Imported here, since it takes 95 ms, and few plans have changes inside of lists.
    from deepdiff import DeepDiff
    from deepdiff.helper import notpresent

    tree = DeepDiff(
        [*gone.values()],
        [*added.values()],
        ignore_order=True,
        cutoff_intersection_for_pairs=1,
        cutoff_distance_for_pairs=0.15,
        ignore_private_variables=False,
        view="tree",
    )
    changed: list[Difference] = []
    same = set(gone)
    for level in (level for levels in tree.values() for level in levels):
        first, *rest = level.path(output_format="list")
        is_new = level.t1 is notpresent
        at = [*added][first] if is_new and not rest else [*gone][first]
        if rest or not is_new:
            same.discard(at)
        before = MISSING if is_new else level.t1
        after = MISSING if level.t2 is notpresent else level.t2
        changed.append(((*path, at, *rest), before, after))
    changed += [((*path, at), MISSING, REORDERED) for at in same]
    yield from sorted(changed, key=lambda item: item[0][len(path)])


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
    """Return two long texts as one list of lines that begin with a sign (-, + or a space).

    Long lines are broken after commas. A text without line ends, as the server returns queries,
    gets the lines of the other text, so that line ends are not differences. Return nothing if the
    texts are short or differ only in line ends.
    """
    if not (isinstance(before, str) and isinstance(after, str)):
        return ()
    before, after = before.removesuffix("\n"), after.removesuffix("\n")
    if "\n" not in before + after and max(len(before), len(after)) <= _LONG:
        return ()
    if "\n" in after and "\n" not in before:
        before = _laid_out_like(after, before)
    elif "\n" in before and "\n" not in after:
        after = _laid_out_like(before, after)
    old, new = _pieces(before), _pieces(after)
    return () if old == new else capped(_merged(old, new))


def capped(lines: Iterator[str]) -> tuple[str, ...]:
    """Return the first lines, printable, and the number of the others."""
    kept = [printable(line) for line in islice(lines, _MOST)]
    more = sum(1 for _ in lines)
    return (*kept, f"  … {more} more lines") if more else tuple(kept)


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
    rows = guide.split("\n")
    at = [row for row, line in enumerate(rows) for _ in line.split()]
    words = _WORDS.findall(text.lstrip())
    lines: list[str] = []
    now, indent = -1, ""
    for tag, start, end, there, until in _steps(*_folded(text, guide)):
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


def _folded(*texts: str) -> Iterator[list[str]]:
    """Return the words of the texts in lower case, since keywords of a query ignore case."""
    return ([word.casefold() for word in text.split()] for text in texts)


def _merged(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for tag, start, end, new_start, new_end in _steps(old, new):
        if tag == "equal":
            yield from _around(old[start:end], first=start == 0, last=end == len(old))
            continue
        yield from (f"- {line}" for line in old[start:end])
        yield from (f"+ {line}" for line in new[new_start:new_end])


def _steps(old: Sequence[str], new: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    if max(len(old), len(new)) > _MOST_COMPARED:
        # A comparison takes the square of the length.
        return [("replace", 0, len(old), 0, len(new))]
    # Imported here, since few plans have changes inside of texts.
    from difflib import SequenceMatcher

    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def _around(lines: Sequence[str], *, first: bool, last: bool) -> list[str]:
    """Return unchanged lines, those that are not beside a change as their number."""
    shown = [f"  {line}" for line in lines]
    start = 0 if first else _CONTEXT
    end = len(lines) if last else len(lines) - _CONTEXT
    if end - start > 1:
        shown[start:end] = [f"  … {end - start} lines unchanged"]
    return shown
