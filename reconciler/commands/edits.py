"""Changes of files, and the unified difference that shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import unified_diff

from msgspec import Struct

from reconciler.diagnostics import DiagnosticCollector
from reconciler.files.redaction import Side, side_of
from reconciler.files.yaml.document import Document
from reconciler.files.yaml.loader import parse
from reconciler.model.text import printable
from reconciler.render.options import PLAIN, Colour, Style

_COLOURS = {"@": Colour.CYAN, "-": Colour.RED, "+": Colour.GREEN}


class FileChange(Struct, frozen=True):
    """Both sides of a file that changes. A new file has no lines before."""

    before: Side
    after: Side


def differences_as_text(changes: Mapping[str, FileChange], style: Style = PLAIN) -> str:
    """Return the unified difference of files, by name. Prints lines with secrets masked."""
    return "".join(
        line
        for name, change in changes.items()
        for line in _difference(printable(name), change, style)
    )


def file_changes(documents: Iterable[Document], texts: Mapping[str, str]) -> dict[str, FileChange]:
    """Return the changes of files, with secrets masked where they are shown."""
    before = {document.file: document for document in documents}
    return {
        name: FileChange(
            side_of(before[name]), side_of(parse(text.encode(), name, DiagnosticCollector()))
        )
        for name, text in texts.items()
    }


def _difference(name: str, change: FileChange, style: Style) -> Iterator[str]:
    before, after = (
        # Compared as they are, shown without secrets.
        [f"{shown}\0{line}" for shown, line in zip(side.shown, side.lines, strict=True)]
        for side in (change.before, change.after)
    )
    old = f"a/{name}" if before else "/dev/null"
    for number, text in enumerate(unified_diff(before, after, old, f"b/{name}", lineterm="")):
        shown, _, line = text.partition("\0")
        colour = Colour.BOLD if number < len(("---", "+++")) else _COLOURS.get(shown[0])
        yield f"{style.paint(colour, shown) if colour else shown}\n"
        if line and not line.endswith(("\n", "\r")):
            yield "\\ No newline at end of file\n"
