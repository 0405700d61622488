"""Colour, width and cells of a terminal: the only module that writes colour codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

_FORCING = ("FORCE_COLOR", "CLICOLOR_FORCE")
_FIRST_COMBINING = "\u0300"
DEFAULT_WIDTH = 100
"""Cells of a line where the output is no terminal."""


class Colour(StrEnum):
    """A colour or weight. The value is the parameter of the SGR escape sequence (ECMA-48)."""

    BOLD = "1"
    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"
    MAGENTA = "35"
    CYAN = "36"
    BOLD_RED = "1;31"


@dataclass(frozen=True, slots=True)
class Style:
    """How text is printed: with colour or without, and how many cells a line has."""

    colour: bool = False
    width: int = DEFAULT_WIDTH

    def paint(self, colour: Colour | None, text: str) -> str:
        """Return the text in a colour if the output takes colours."""
        if colour is None or not self.colour or not text:
            return text
        return f"\x1b[{colour.value}m{text}\x1b[0m"


PLAIN = Style()


def colour_wanted(environ: Mapping[str, str], *, terminal: bool) -> bool:
    """Return whether to print colours: on a terminal, or where the environment forces them.

    NO_COLOR forbids colours and FORCE_COLOR forces them (https://no-color.org,
    https://force-color.org); CLICOLOR=0 and CLICOLOR_FORCE do the same.
    """
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name, "0") not in ("", "0") for name in _FORCING):
        return True
    if environ.get("CLICOLOR") == "0" or environ.get("TERM") == "dumb":
        return False
    return terminal


def width_of(text: str) -> int:
    """Return how many cells of a terminal printable text takes.

    wcwidth is imported only for scripts that have wide or combining characters: it takes 50 ms.
    """
    if not text or max(text) < _FIRST_COMBINING:
        return len(text)
    from wcwidth import wcwidth

    return sum(max(0, wcwidth(character)) for character in text)
