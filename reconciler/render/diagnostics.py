"""Diagnostics as text for people, and as JSON for programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from typing import Any

from reconciler.errors import Diagnostic, Mark, Severity
from reconciler.model.wording import plain_json, printable, several
from reconciler.render.crop import crop
from reconciler.render.style import PLAIN, Colour, Style, width_of

_NARROWEST = 40
_COLOURS = {Severity.ERROR: Colour.BOLD_RED, Severity.WARNING: Colour.YELLOW}


def diagnostics_as_text(diagnostics: Sequence[Diagnostic], style: Style = PLAIN) -> str:
    """Return `file:line:column: message`, the line, a caret with the hint, and a count.

    Source lines are cropped to the width; the first line of each diagnostic is never broken,
    since editors and `grep` read it.
    """
    if not diagnostics:
        return ""
    blocks = [_block(diagnostic, style) for diagnostic in diagnostics]
    return "\n".join([*blocks, counted(diagnostics)]) + "\n"


def counted(diagnostics: Sequence[Diagnostic]) -> str:
    """Return `2 errors, 1 warning in 3 files`."""
    errors = sum(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics)
    counts = [
        several(count, word)
        for count, word in ((errors, "error"), (len(diagnostics) - errors, "warning"))
        if count
    ]
    files = len({diagnostic.at.file for diagnostic in diagnostics if diagnostic.at is not None})
    return ", ".join(counts) + (f" in {files} files" if files > 1 else "")


def _block(diagnostic: Diagnostic, style: Style) -> str:
    width = max(_NARROWEST, style.width)
    word = style.paint(_COLOURS[diagnostic.severity], diagnostic.severity.value)
    place = f"{printable(str(diagnostic.at))}: " if diagnostic.at is not None else ""
    lines = [f"{place}{word}: {printable(diagnostic.message)} [{diagnostic.code}]"]
    if diagnostic.at is not None and diagnostic.line is not None:
        lines += _snippet(diagnostic, diagnostic.at, diagnostic.line, width=width, style=style)
    elif diagnostic.hint is not None:
        lines += _below(diagnostic.hint, " " * 8, width)
    lines += [f"   {printable(f'{mark}: {label}')}" for mark, label in diagnostic.related]
    return "\n".join(lines)


def _snippet(diagnostic: Diagnostic, at: Mark, line: str, *, width: int, style: Style) -> list[str]:
    gutter = f"{at.line:>5} | "
    blank = " " * len(gutter)
    start, end = diagnostic.marked or (at.column - 1, at.column - 1 + at.length)
    shown = crop(line, start, end - start, width=width - len(gutter))
    carets = style.paint(_COLOURS[diagnostic.severity], "^" * shown.length)
    under = f"{blank}{' ' * shown.start}{carets}"
    lines = [f"{gutter}{shown.text}"]
    if diagnostic.hint is None:
        return [*lines, under]
    hint = printable(diagnostic.hint)
    if len(blank) + shown.start + shown.length + 1 + width_of(hint) <= width:
        return [*lines, f"{under} {hint}"]
    return [*lines, under, *_below(diagnostic.hint, blank, width)]


def _below(hint: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(
        printable(hint),
        width=width,
        initial_indent=indent,
        subsequent_indent=indent,
        # References and commands stay whole, to be copied: a terminal wraps what is too long.
        break_long_words=False,
        break_on_hyphens=False,
    )


def diagnostics_as_json(diagnostics: Sequence[Diagnostic]) -> str:
    """Return a list of objects; codes are stable. Files are relative to the workspace folder."""
    return safe_json({"diagnostics": [_as_json(diagnostic) for diagnostic in diagnostics]})


def _as_json(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        **_place(diagnostic.at),
        "related": [{**_place(mark), "message": label} for mark, label in diagnostic.related],
    }


def _place(at: Mark | None) -> dict[str, Any]:
    if at is None:
        return {"file": None, "line": None, "column": None}
    return {"file": at.file, "line": at.line, "column": at.column}


def safe_json(value: Any) -> str:
    """Return JSON of several lines that a terminal can show."""
    return plain_json(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"
