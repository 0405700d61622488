"""Files before and after a change, for `fmt` and for the diff of an import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.errors import Diagnostic


@dataclass(frozen=True, slots=True)
class Side:
    """A file before or after: its lines with their ends, and the same lines without secrets."""

    lines: tuple[str, ...]
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileChange:
    """Both sides of a file that changes. A new file has no lines before."""

    before: Side
    after: Side

    @property
    def text(self) -> str:
        """Return the new text."""
        return "".join(self.after.lines)


@dataclass(frozen=True, slots=True)
class Formatted:
    """The files that were not formatted, by name, out of `files` files.

    `skipped` is the number of files that can't be formatted safely; `diagnostics` say why.
    """

    changed: Mapping[str, FileChange]
    files: int
    skipped: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()
