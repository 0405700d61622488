"""A unified difference of a file, for people and for programs that colour it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

_AROUND = 3
"""Unchanged lines around a change."""
_BOLD, _RED, _GREEN, _CYAN = "1", "31", "32", "36"


def difference_as_text(
    name: str,
    before: Sequence[str],
    after: Sequence[str],
    *,
    shown: tuple[Sequence[str], Sequence[str]],
    colour: bool = False,
) -> str:
    """What changes from `before` to `after`, lines with their ends.

    They are compared as they are, and drawn as `shown` has them: without ends, secrets masked.
    """

    def paint(code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if colour else text

    old = f"a/{name}" if before else "/dev/null"
    lines = [paint(_BOLD, f"--- {old}"), paint(_BOLD, f"+++ b/{name}")]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(_AROUND):
        (_, first, _, start, _), (_, _, last, _, end) = group[0], group[-1]
        lines.append(paint(_CYAN, f"@@ -{_range(first, last)} +{_range(start, end)} @@"))
        for tag, low, high, new_low, new_high in group:
            if tag == "equal":
                lines += _drawn(" ", before, shown[0], low, high)
                continue
            lines += (paint(_RED, each) for each in _drawn("-", before, shown[0], low, high))
            lines += (
                paint(_GREEN, each) for each in _drawn("+", after, shown[1], new_low, new_high)
            )
    return "\n".join(lines) + "\n"


def _drawn(
    sign: str, lines: Sequence[str], shown: Sequence[str], low: int, high: int
) -> Iterator[str]:
    for number in range(low, high):
        yield sign + shown[number]
        if not lines[number].endswith(("\n", "\r")):
            yield "\\ No newline at end of file"


def _range(start: int, end: int) -> str:
    """Lines from 1, as unified differences count them: an empty range names the line above."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
