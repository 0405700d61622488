"""How to write a result: colours, width and cells of a terminal, and other options.

No other module writes colour codes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from textwrap import wrap

from msgspec import Struct

_FORCING = ("FORCE_COLOR", "CLICOLOR_FORCE")
_CODE = re.compile("`[^`]+`")
_FIRST_COMBINING = "\u0300"
DEFAULT_WIDTH = 100
"""Cells of a line if the output is not a terminal."""
NARROWEST = 40
"""Cells of a line on a terminal that is narrower."""
COMMENT_LIMIT = 65_536
"""Characters of a comment on GitHub."""


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


class Style(Struct, frozen=True):
    """Whether text is coloured, the number of cells of a line, and whether a terminal shows it."""

    colour: bool = False
    width: int = DEFAULT_WIDTH
    terminal: bool = False

    def paint(self, colour: Colour | None, text: str) -> str:
        """Return the text, coloured if the output is."""
        if colour is None or not self.colour or not text:
            return text
        return f"\x1b[{colour.value}m{text}\x1b[0m"

    def wrapped(self, text: str, prefix: str, indent: str) -> list[str]:
        """Return text in lines, the first after `prefix`, the others after `indent`."""
        width = max(NARROWEST, self.width)
        space = width - len(indent)

        def whole(code: re.Match[str]) -> str:
            return code[0].replace(" ", "\0") if len(code[0]) <= space else code[0]

        # References and commands stay whole to be copied; a terminal wraps what is too long.
        lines = wrap(
            _CODE.sub(whole, text),
            width=width,
            initial_indent=prefix,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return [line.replace("\0", " ") for line in lines]

    def on_terminal(self, text: str, prefix: str, indent: str) -> list[str]:
        """Return text in lines that fit a terminal, in one line anywhere else."""
        wraps = self.terminal and text
        return self.wrapped(text, prefix, indent) if wraps else [f"{prefix}{text}"]


PLAIN = Style()


def colour_wanted(environ: Mapping[str, str], *, terminal: bool) -> bool:
    """Return whether to print colours: on a terminal, or if the environment forces them.

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


def padded(text: str, width: int) -> str:
    """Return text with spaces at its end, so that it has at least `width` cells."""
    return text + " " * (width - width_of(text))


def width_of(text: str) -> int:
    """Return the number of terminal cells of printable text.

    wcwidth, whose import takes 50 ms, is imported only for wide and combining characters.
    """
    if not text or max(text) < _FIRST_COMBINING:
        return len(text)
    from wcwidth import wcwidth

    return sum(max(0, wcwidth(character)) for character in text)


class RenderOptions(Struct, frozen=True):
    """How to write a result. A format ignores options that do not concern it.

    `root` is the path from the root of the repository to the workspace folder, with forward
    slashes, "" if they are the same. GitHub places annotations and code scanning results by it.

    Of a plan, `verbose` shows every field and every member of a group, and `summary` only counts,
    dangers and violations. `cost` is what applying it takes, as text. `limit` is for the characters
    of Markdown, and `page` the address of the job, which has what is cut.

    Of diagnostics, `passed` is the text if there are none.

    Of states, `verbose` lists also the objects that are fine, and `links` their pages.

    `again` are the options that commands in reports need again, besides the environment.
    """

    style: Style = PLAIN
    show_unmanaged: bool = False
    root: str = ""
    verbose: bool = False
    summary: bool = False
    cost: str = ""
    links: bool = False
    limit: int = COMMENT_LIMIT
    page: str = ""
    passed: str = "The configuration is valid"
    again: tuple[str, ...] = ()

    def repository_path(self, file: str) -> str:
        """Return the path of a file of the workspace from the root of the repository."""
        return f"{self.root}/{file}" if self.root else file


DEFAULTS = RenderOptions()
