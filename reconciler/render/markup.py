"""Escape text for Markdown, so that live names are read as text only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from reconciler.model.text import printable, safe_output

_CODE = re.compile(r"`([^`]+)`")
_SPECIAL = re.compile(
    r"[\\`*\[\]#|~<>@$&]|:(?=\S)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|(?<=www)\."
    r"|!(?=\d)|%(?=[\w\"'])|(?<=\bGH)-(?=\d)|(?<=\b[0-9a-f]{39})[0-9a-f]\b",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"[@#-]|[!$&](?=\d)|[%~](?=[\w\"'])")
"""The sign of a mention, or of a link to an issue, a merge request, a milestone or a label."""


def marked_up(text: str) -> str:
    """Return a message, in which text between backticks is code."""
    pieces = _CODE.split(printable(text))
    return "".join(
        (code(piece) if position % 2 else inline(piece) or _between(position, pieces))
        for position, piece in enumerate(pieces)
    )


def _between(position: int, pieces: Sequence[str]) -> str:
    """Return what separates two pieces of code: adjacent backticks would not end the first."""
    return "&#8203;" if 0 < position < len(pieces) - 1 else ""


def code(text: str) -> str:
    """Return text as code, which has no markup in it; what would end code or a cell is escaped."""
    shown = printable(text)
    if not shown.strip() or "`" in shown or "|" in shown:
        return inline(shown)
    return f"`{shown}`"


def inline(text: str) -> str:
    """Return text in which nothing is read as markup, HTML, a link, a mention or a table cell."""
    return _SPECIAL.sub(_entity, printable(text))


def within(pieces: Iterator[str], space: int) -> tuple[list[str], int]:
    """Return the pieces that fit with a line end each, and how many are missing.

    They are returned as they are printed: what a CI runner would execute is longer then.
    """
    kept: list[str] = []
    for piece in map(safe_output, pieces):
        space -= len(piece) + 1
        if space < 0:
            return kept, 1 + sum(1 for _ in pieces)
        kept.append(piece)
    return kept, 0


def _entity(match: re.Match[str]) -> str:
    # Forges look for mentions, issues and commits after they decode entities. A zero-width space
    # breaks them: after a sign, and before the last digit of a commit.
    if match[0].isalnum():
        return f"&#8203;{match[0]}"
    broken = "&#8203;" if _REFERENCE.match(match.string, match.start()) else ""
    return f"&#{ord(match[0])};{broken}"
