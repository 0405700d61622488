"""The result of `fmt` as text: names or a difference, and a summary line."""

from __future__ import annotations

from reconciler.model.file_change import Formatted
from reconciler.model.wording import several
from reconciler.render.difference import differences_as_text
from reconciler.render.style import PLAIN, Style


def formatted_as_text(formatted: Formatted, *, diff: bool = False, style: Style = PLAIN) -> str:
    """Return the name of each changed file, or a unified difference of all."""
    if diff:
        return differences_as_text(formatted.changed, style)
    return "".join(f"{name}\n" for name in formatted.changed)


def format_summary(formatted: Formatted, *, written: bool) -> str:
    """Return `2 files formatted, 5 files unchanged, 1 file skipped`."""
    count = len(formatted.changed)
    unchanged = formatted.files - count - formatted.skipped
    verb = "formatted" if written else "would be formatted"
    parts = [
        f"{several(count, 'file')} {verb}" if count else "",
        f"{several(unchanged, 'file')} unchanged" if unchanged else "",
        f"{several(formatted.skipped, 'file')} skipped" if formatted.skipped else "",
    ]
    return ", ".join(part for part in parts if part) or "no files"
