"""Diagnostics as text for people, and as JSON for programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from typing import Any

from reconciler.errors import Diagnostic, Mark, Severity
from reconciler.model.wording import plain_json, printable, several
from reconciler.render.excerpt import excerpt, width_of

_NARROWEST = 40
_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "33"}


def diagnostics_as_text(
    diagnostics: Sequence[Diagnostic], *, colour: bool = False, width: int = 100
) -> str:
    """`file:line:column: message`, the line, a caret with the way out, and a count.

    Shown lines are cut to `width` cells; the first line of each is never broken, since editors
    and `grep` read it.
    """
    if not diagnostics:
        return ""
    width = max(_NARROWEST, width)
    blocks = [_block(each, colour=colour, width=width) for each in diagnostics]
    return "\n".join([*blocks, counted(diagnostics)]) + "\n"


def counted(diagnostics: Sequence[Diagnostic]) -> str:
    """`2 errors, 1 warning in 3 files`."""
    errors = sum(each.severity is Severity.ERROR for each in diagnostics)
    counts = [
        several(count, word)
        for count, word in ((errors, "error"), (len(diagnostics) - errors, "warning"))
        if count
    ]
    files = len({each.at.file for each in diagnostics if each.at is not None})
    return ", ".join(counts) + (f" in {files} files" if files > 1 else "")


def _paint(code: str, text: str, *, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


def _block(each: Diagnostic, *, colour: bool, width: int) -> str:
    word = _paint(_COLOURS[each.severity], each.severity.value, colour=colour)
    place = f"{printable(str(each.at))}: " if each.at is not None else ""
    lines = [f"{place}{word}: {printable(each.message)} [{each.code}]"]
    if each.at is not None and each.line is not None:
        lines += _snippet(each, each.at, each.line, colour=colour, width=width)
    elif each.hint is not None:
        lines += _below(each.hint, " " * 8, width)
    lines += [f"   {printable(f'{mark}: {word}')}" for mark, word in each.related]
    return "\n".join(lines)


def _snippet(each: Diagnostic, at: Mark, line: str, *, colour: bool, width: int) -> list[str]:
    gutter = f"{at.line:>5} | "
    blank = " " * len(gutter)
    start, end = each.marked or (at.column - 1, at.column - 1 + at.length)
    shown = excerpt(line, start, end - start, width=width - len(gutter))
    carets = _paint(_COLOURS[each.severity], "^" * shown.length, colour=colour)
    under = f"{blank}{' ' * shown.start}{carets}"
    lines = [f"{gutter}{shown.text}"]
    if each.hint is None:
        return [*lines, under]
    hint = printable(each.hint)
    if len(blank) + shown.start + shown.length + 1 + width_of(hint) <= width:
        return [*lines, f"{under} {hint}"]
    return [*lines, under, *_below(each.hint, blank, width)]


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
    """A list of objects; codes are stable. Files are relative to the workspace folder."""
    told = [
        {
            "code": each.code,
            "severity": each.severity.value,
            "message": each.message,
            "hint": each.hint,
            **_place(each.at),
            "related": [{**_place(mark), "message": word} for mark, word in each.related],
        }
        for each in diagnostics
    ]
    return safe_json({"diagnostics": told})


def _place(at: Mark | None) -> dict[str, Any]:
    if at is None:
        return {"file": None, "line": None, "column": None}
    return {"file": at.file, "line": at.line, "column": at.column}


def safe_json(value: Any) -> str:
    """JSON of several lines that a terminal can show."""
    return plain_json(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"
