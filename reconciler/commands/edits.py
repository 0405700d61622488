"""Changes of files, and the unified difference that shows them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path

from msgspec import Struct

from reconciler.commands.process import write_result
from reconciler.commands.screen import style_of
from reconciler.diagnostics import DiagnosticCollector
from reconciler.editing.writing import write_files
from reconciler.files.source_lines import Side, side_of
from reconciler.files.sources import FolderSource
from reconciler.files.yaml_loader import parse
from reconciler.model.text import printable
from reconciler.render.options import Colour, Style

_COLOURS = {"@": Colour.CYAN, "-": Colour.RED, "+": Colour.GREEN}


class FileChange(Struct, frozen=True):
    """Both sides of a file that changes. A new file has no lines before."""

    before: Side
    after: Side


def differences_as_text(changes: Mapping[str, FileChange], style: Style) -> str:
    """Return the unified difference of files, by name. Prints lines with secrets masked."""
    return "".join(
        line
        for name, change in changes.items()
        for line in _difference(printable(name), change, style)
    )


def write_differences(changes: Mapping[str, FileChange]) -> None:
    """Print the unified difference of files."""
    write_result(differences_as_text(changes, style_of(sys.stdout)))


def changed_files(folder: Path, texts: Mapping[str, str], *, write: bool) -> dict[str, FileChange]:
    """Return the changes that new texts are, secrets masked where they are shown.

    Writes them if `write`, all or none. Raises ReconcilerError for a file that cannot be written.
    """
    source = FolderSource(folder)
    changes = {
        name: FileChange(_side(name, source.read(name) or b""), _side(name, text.encode()))
        for name, text in texts.items()
    }
    if write:
        write_files(folder, texts)
    return changes


def _side(name: str, raw: bytes) -> Side:
    return side_of(parse(raw, name, DiagnosticCollector()))


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
