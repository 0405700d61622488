"""A unified difference of a file, for people and for programs that colour it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from reconciler.render.style import PLAIN, Colour, Style

_CONTEXT = 3
"""Unchanged lines around a change."""


def difference_as_text(
    name: str,
    before: Sequence[str],
    after: Sequence[str],
    *,
    shown: tuple[Sequence[str], Sequence[str]],
    style: Style = PLAIN,
) -> str:
    """Return what changes from `before` to `after`, lines with their ends.

    Lines are compared as they are, and printed as `shown` has them: without ends, secrets masked.
    """
    old = f"a/{name}" if before else "/dev/null"
    lines = [style.paint(Colour.BOLD, f"--- {old}"), style.paint(Colour.BOLD, f"+++ b/{name}")]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        (_, first, _, start, _), (_, _, last, _, end) = group[0], group[-1]
        hunk = f"@@ -{_range(first, last)} +{_range(start, end)} @@"
        lines.append(style.paint(Colour.CYAN, hunk))
        for tag, low, high, new_low, new_high in group:
            if tag == "equal":
                lines += _signed(" ", before, shown[0], low, high)
                continue
            removed = _signed("-", before, shown[0], low, high)
            lines += (style.paint(Colour.RED, line) for line in removed)
            added = _signed("+", after, shown[1], new_low, new_high)
            lines += (style.paint(Colour.GREEN, line) for line in added)
    return "\n".join(lines) + "\n"


def _signed(
    sign: str, lines: Sequence[str], shown: Sequence[str], low: int, high: int
) -> Iterator[str]:
    for number in range(low, high):
        yield sign + shown[number]
        if not lines[number].endswith(("\n", "\r")):
            yield "\\ No newline at end of file"


def _range(start: int, end: int) -> str:
    """Return lines from 1, as unified differences count them.

    An empty range names the line above it.
    """
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
