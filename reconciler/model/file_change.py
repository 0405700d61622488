"""Files before and after a change, for `fmt`, `mv` and the diff of an import."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.diagnostics import Diagnostic
from reconciler.model.address import Address


class Side(Struct, frozen=True):
    """A file before or after: its lines with their ends, and the same lines without secrets."""

    lines: tuple[str, ...]
    shown: tuple[str, ...]


class FileChange(Struct, frozen=True):
    """Both sides of a file that changes. A new file has no lines before."""

    before: Side
    after: Side


class Formatted(Struct, frozen=True):
    """The new texts of the files that were not formatted, by name, out of `files` files.

    `changes` are their changes, if asked for. `skipped` is the number of files that can't be
    formatted safely; `diagnostics` say why.
    """

    changed: Mapping[str, str]
    files: int
    changes: Mapping[str, FileChange] = field(default_factory=dict)
    skipped: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()


class Moved(Struct, frozen=True):
    """A resource that was renamed in files, or would be if not `written`.

    `texts` are the new texts of the files by name, with `places` changes. `former_name` is the
    name that was added to `renamed_from`, None for no name.
    """

    old: Address
    new: Address
    texts: Mapping[str, str]
    changes: Mapping[str, FileChange]
    places: int
    former_name: str | None = None
    written: bool = True
