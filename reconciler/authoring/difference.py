"""Changes of files, and the unified difference that shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher

from reconciler.diagnostics import DiagnosticCollector
from reconciler.model.files import FileChange, Side
from reconciler.model.text import printable
from reconciler.render.options import PLAIN, Colour, Style
from reconciler.workspace.redaction import side_of
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.loader import parse

_CONTEXT = 3
"""Unchanged lines around a change."""


def differences_as_text(changes: Mapping[str, FileChange], style: Style = PLAIN) -> str:
    """Return the unified difference of files, by name. Prints lines with secrets masked."""
    return "".join(_difference(printable(name), change, style) for name, change in changes.items())


def file_changes(documents: Iterable[Document], texts: Mapping[str, str]) -> dict[str, FileChange]:
    """Return the changes of files, with secrets masked where they are shown."""
    before = {document.file: document for document in documents}
    return {
        name: FileChange(
            side_of(before[name]), side_of(parse(text.encode(), name, DiagnosticCollector()))
        )
        for name, text in texts.items()
    }


def _difference(name: str, change: FileChange, style: Style) -> str:
    before, after = change.before, change.after
    old = f"a/{name}" if before.lines else "/dev/null"
    lines = [style.paint(Colour.BOLD, f"--- {old}"), style.paint(Colour.BOLD, f"+++ b/{name}")]
    matcher = SequenceMatcher(None, before.lines, after.lines, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        (_, first, _, start, _), (_, _, last, _, end) = group[0], group[-1]
        hunk = f"@@ -{_range(first, last)} +{_range(start, end)} @@"
        lines.append(style.paint(Colour.CYAN, hunk))
        for tag, low, high, new_low, new_high in group:
            if tag == "equal":
                lines += _signed(" ", before, low, high)
                continue
            removed, added = _signed("-", before, low, high), _signed("+", after, new_low, new_high)
            lines += (style.paint(Colour.RED, line) for line in removed)
            lines += (style.paint(Colour.GREEN, line) for line in added)
    return "\n".join(lines) + "\n"


def _signed(sign: str, side: Side, low: int, high: int) -> Iterator[str]:
    for number in range(low, high):
        yield sign + side.shown[number]
        if not side.lines[number].endswith(("\n", "\r")):
            yield "\\ No newline at end of file"


def _range(start: int, end: int) -> str:
    """Return a range of a unified difference: from line 1, an empty one by the line above."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
