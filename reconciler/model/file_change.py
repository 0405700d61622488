"""Files before and after a change, for `fmt`, `mv` and the diff of an import."""

from __future__ import annotations

from msgspec import Struct


class Side(Struct, frozen=True):
    """A file before or after: its lines with their ends, and the same lines without secrets."""

    lines: tuple[str, ...]
    shown: tuple[str, ...]


class FileChange(Struct, frozen=True):
    """Both sides of a file that changes. A new file has no lines before."""

    before: Side
    after: Side
