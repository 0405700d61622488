"""The unified difference of files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from reconciler.model.file_change import FileChange
from reconciler.render.style import PLAIN, Colour, Style

_CONTEXT = 3
"""Unchanged lines around a change."""


def differences_as_text(changes: Mapping[str, FileChange], style: Style = PLAIN) -> str:
    """Return the unified difference of files, by name. Prints lines with secrets masked."""
    return "".join(_difference(name, change, style) for name, change in changes.items())


def _difference(name: str, change: FileChange, style: Style) -> str:
    before, after = change.before.lines, change.after.lines
    old = f"a/{name}" if before else "/dev/null"
    lines = [style.paint(Colour.BOLD, f"--- {old}"), style.paint(Colour.BOLD, f"+++ b/{name}")]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        (_, first, _, start, _), (_, _, last, _, end) = group[0], group[-1]
        hunk = f"@@ -{_range(first, last)} +{_range(start, end)} @@"
        lines.append(style.paint(Colour.CYAN, hunk))
        for tag, low, high, new_low, new_high in group:
            if tag == "equal":
                lines += _signed(" ", before, change.before.shown, low, high)
                continue
            removed = _signed("-", before, change.before.shown, low, high)
            lines += (style.paint(Colour.RED, line) for line in removed)
            added = _signed("+", after, change.after.shown, new_low, new_high)
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
    """Return a range of a unified difference: from line 1, an empty one by the line above."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
