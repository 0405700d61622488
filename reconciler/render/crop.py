"""A source line, cropped to the width of a terminal around a marked place.

Columns of files count characters, terminals count cells: two for a wide character, none for a
combining one, several for a control character, which is shown as an escape.
"""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.text import printable
from reconciler.render.style import width_of

_TAB = 4
_CUT = "…"
_FAR = 4


class Cropped(Struct, frozen=True):
    """The visible part of a line. `start` and `length` of the marked place count cells, from 0."""

    text: str
    start: int
    length: int


def crop(line: str, start: int, length: int, *, width: int) -> Cropped:
    """Return at most `width` cells of a line around `length` characters from `start` (from 0).

    A place after the end of the line is marked at the end.
    """
    start = max(0, min(start, len(line)))
    # A line may have megabytes and a thousand diagnostics: read only what can be visible.
    skipped = max(0, start - _FAR * width)
    beyond = len(line) > start + _FAR * width
    cells = _cells(line[skipped : start + _FAR * width])
    widths = [width_of(cell) for cell in cells]
    start -= skipped
    end = min(start + length, len(cells))
    first, last = 0, len(cells)
    if skipped or beyond or sum(widths) + (start == len(cells)) > width:
        first, last = _window(widths, start, end, space=width - 2 * len(_CUT))
    before = _CUT if skipped or first else ""
    after = _CUT if beyond or last < len(cells) else ""
    return Cropped(
        f"{before}{''.join(cells[first:last])}{after}",
        len(before) + sum(widths[first:start]),
        max(1, sum(widths[start : min(end, last)])),
    )


def _cells(line: str) -> list[str]:
    """Return each character as it is shown: tabs as spaces, control characters as escapes."""
    shown: list[str] = []
    column = 0
    for character in line:
        tab = character == "\t"
        shown.append(" " * (_TAB - column % _TAB) if tab else printable(character))
        column += width_of(shown[-1])
    return shown


def _window(widths: list[int], start: int, end: int, *, space: int) -> tuple[int, int]:
    """Return the range of the characters that fit: the marked ones first, then both sides."""
    first = last = start
    while last < end and space >= widths[last]:
        space -= widths[last]
        last += 1
    grown = True
    while grown:
        grown = False
        if first > 0 and space >= widths[first - 1]:
            first, space, grown = first - 1, space - widths[first - 1], True
        if last < len(widths) and space >= widths[last]:
            last, space, grown = last + 1, space - widths[last], True
    while first < start and not widths[first]:
        # A combining character whose base is cropped would combine with the ellipsis.
        first += 1
    return first, last
