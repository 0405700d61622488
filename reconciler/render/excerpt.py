"""A source line as a terminal shows it: cut around a place, and the place underlined.

Columns of files count characters; terminals count cells. A wide character takes two cells, a
combining one none, and a control character is shown as an escape of several.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from reconciler.model.wording import printable

_TAB = 4
_CUT = "…"
_FAR = 4
# Vowels and final consonants of Korean syllables: drawn inside the cells of the consonant before.
_JAMO = range(0x1160, 0x1200)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What is shown of a line. `start` and `length` of the marked place count cells, from 0."""

    text: str
    start: int
    length: int


def excerpt(line: str, start: int, length: int, *, width: int) -> Excerpt:
    """The part of a line around `length` characters from `start` (from 0), `width` cells at most.

    A place behind the end of the line is marked there.
    """
    start = max(0, min(start, len(line)))
    # A file may be one line of megabytes, told a thousand times: only what can be shown is read.
    skipped = max(0, start - _FAR * width)
    beyond = len(line) > start + _FAR * width
    cells = _cells(line[skipped : start + _FAR * width])
    widths = [width_of(cell) for cell in cells]
    start -= skipped
    end = min(start + length, len(cells))
    first, last = 0, len(cells)
    if skipped or beyond or sum(widths) + (start == len(cells)) > width:
        first, last = _window(widths, start, end, room=width - 2 * len(_CUT))
    before = _CUT if skipped or first else ""
    after = _CUT if beyond or last < len(cells) else ""
    return Excerpt(
        f"{before}{''.join(cells[first:last])}{after}",
        len(before) + sum(widths[first:start]),
        max(1, sum(widths[start : min(end, last)])),
    )


def width_of(text: str) -> int:
    """How many cells of a terminal printable text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(each: str) -> int:
    if unicodedata.category(each) in ("Mn", "Me") or ord(each) in _JAMO:
        return 0
    return 2 if unicodedata.east_asian_width(each) in "WF" else 1


def _cells(line: str) -> list[str]:
    """Each character as it is shown: tabs reach to the next stop, what controls is escaped."""
    shown: list[str] = []
    column = 0
    for each in line:
        shown.append(" " * (_TAB - column % _TAB) if each == "\t" else printable(each))
        column += width_of(shown[-1])
    return shown


def _window(widths: list[int], start: int, end: int, *, room: int) -> tuple[int, int]:
    """First and last of the characters that fit: the marked ones, then both sides in turn."""
    first = last = start
    while last < end and room >= widths[last]:
        room -= widths[last]
        last += 1
    grown = True
    while grown:
        grown = False
        if first > 0 and room >= widths[first - 1]:
            first, room, grown = first - 1, room - widths[first - 1], True
        if last < len(widths) and room >= widths[last]:
            last, room, grown = last + 1, room - widths[last], True
    while first < start and not widths[first]:
        # What combines with a character that is cut off would combine with the ellipsis.
        first += 1
    return first, last
