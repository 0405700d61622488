"""Changed files: the unified difference, and the results of `fmt` and `mv`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher

from reconciler.diagnostics import Diagnostic
from reconciler.model.address import Address
from reconciler.model.files import FileChange, Side
from reconciler.model.public import Public, derived
from reconciler.model.text import printable, quoted, several
from reconciler.render.diagnostics import PublicDiagnostic, public_diagnostic
from reconciler.render.options import PLAIN, Colour, Style

_CONTEXT = 3
"""Unchanged lines around a change."""


class Formatted(Public, frozen=True, kw_only=True):
    """Formatted files: `fmt --format json`.

    `texts` are the new texts of the files that were not formatted, by name; `changes` are their
    changes, if asked for.
    """

    version = 1
    schema = "fmt"
    internal = frozenset({"texts", "changes", "diagnostics"})

    texts: Mapping[str, str]
    changes: Mapping[str, FileChange] = {}
    diagnostics: tuple[Diagnostic, ...] = ()
    written: bool = False
    """Whether the files were written."""
    files: int
    """The number of files that were looked at."""
    skipped: int = 0
    """The number of files that can't be formatted safely."""

    @derived
    def changed(self) -> tuple[str, ...]:
        """Paths of the files that were not formatted, relative to the workspace."""
        return tuple(self.texts)

    @derived
    def diagnostics_(self) -> tuple[PublicDiagnostic, ...]:
        """Why files were skipped."""
        return tuple(map(public_diagnostic, self.diagnostics))

    @derived
    def diff(self) -> str:
        """The unified difference, if asked for."""
        return differences_as_text(self.changes)


class Moved(Public, frozen=True, kw_only=True):
    """A resource that was renamed in files: `mv --format json`.

    `texts` are the new texts of the files by name.
    """

    version = 1
    schema = "mv"
    internal = frozenset({"texts", "changes"})

    texts: Mapping[str, str]
    changes: Mapping[str, FileChange]
    written: bool = True
    """Whether the files were written."""
    old: Address
    """The former address."""
    new: Address
    """The address."""
    former_name: str | None = None
    """The name that was added to `renamed_from`."""
    places: int
    """The number of changed places."""

    @derived
    def changed(self) -> tuple[str, ...]:
        """Paths of the changed files, relative to the workspace."""
        return tuple(self.texts)

    @derived
    def diff(self) -> str:
        """The unified difference."""
        return differences_as_text(self.changes)


def differences_as_text(changes: Mapping[str, FileChange], style: Style = PLAIN) -> str:
    """Return the unified difference of files, by name. Prints lines with secrets masked."""
    return "".join(_difference(printable(name), change, style) for name, change in changes.items())


def formatted_as_text(formatted: Formatted, *, diff: bool = False, style: Style = PLAIN) -> str:
    """Return the name of each changed file, or a unified difference of all."""
    if diff:
        return differences_as_text(formatted.changes, style)
    return "".join(f"{printable(name)}\n" for name in formatted.texts)


def format_summary(formatted: Formatted, *, written: bool) -> str:
    """Return `2 files formatted, 5 files unchanged, 1 file skipped`."""
    count = len(formatted.texts)
    counts = {
        "formatted" if written else "would be formatted": count,
        "unchanged": formatted.files - count - formatted.skipped,
        "skipped": formatted.skipped,
    }
    parts = [f"{several(number, 'file')} {word}" for word, number in counts.items() if number]
    return ", ".join(parts) or "no files"


def moved_as_text(moved: Moved, *, diff: bool = False, style: Style = PLAIN) -> str:
    """Return the name of each changed file, or a unified difference of all."""
    if diff:
        return differences_as_text(moved.changes, style)
    return "".join(f"{printable(name)}\n" for name in moved.texts)


def move_summary(moved: Moved) -> str:
    """Return `Renamed project.web to project.shop: 3 places in 2 files`, and what was added."""
    verb = "Renamed" if moved.written else "Would rename"
    where = f"{several(moved.places, 'place')} in {several(len(moved.texts), 'file')}"
    target = f" to {moved.new}" if moved.new != moved.old else ""
    lines = [f"{verb} {moved.old}{target}: {where}"]
    if moved.former_name is not None:
        lines.append(f"Added {quoted(moved.former_name)} to `renamed_from`")
    return "".join(f"{line}\n" for line in lines)


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
