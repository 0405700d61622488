"""Shell-style patterns: of texts, as options and policies have them, and of paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import count
from typing import ClassVar

from msgspec import Struct, field

from reconciler.errors import ReconcilerError
from reconciler.model.wording import quoted

_TOKEN = re.compile(r"\*\*/|\*\*|.", re.DOTALL)
_FOLDERS, _ANYTHING, _IN_NAME, _CHARACTER = "**/", "**", "*", "?"
_LONGEST_GLOB = 500
_MOST_STEPS = 20_000
"""Steps to remember. Ordinary patterns have some hundreds."""


class TooComplex(ReconcilerError):
    """A pattern of paths is too long, or has too many ways to match."""

    def __init__(self, glob: str) -> None:
        super().__init__(f"pattern {quoted(glob[:_LONGEST_GLOB])} is too long or too complex")


def fits_any(text: str, globs: Iterable[str]) -> bool:
    """Return whether any of the patterns fits the whole text, case-sensitively."""
    return any(fnmatchcase(text, glob) for glob in globs)


def matching(names: Sequence[str], glob: str) -> list[str]:
    """Return the paths that a pattern matches. Raises TooComplex."""
    pattern = PathGlob(glob)
    return [name for name in names if pattern.matches(name)]


def has_wildcard(glob: str) -> bool:
    """Return whether a pattern of paths is more than one path."""
    return _IN_NAME in glob or _CHARACTER in glob


class PathGlob(Struct):
    """A pattern of paths. `*` and `?` do not match a slash, `**` matches zero or more folders.

    All ways to match are followed at once, as a set of positions in the pattern: a regular
    expression with several stars would try them one after the other, for hours. The sets are the
    bits of a number, and the steps between them are remembered, since names resemble each other.
    """

    glob: str
    _tokens: tuple[str, ...] = ()
    _ending: str = ""
    _start: int = 0
    _steps: dict[tuple[int, str], int] = field(default_factory=dict)

    _LOOPS: ClassVar[tuple[str, ...]] = (_FOLDERS, _ANYTHING, _IN_NAME)

    def __post_init__(self) -> None:
        if len(self.glob) > _LONGEST_GLOB:
            raise TooComplex(self.glob)
        self._tokens = tuple(_TOKEN.findall(self.glob))
        after_wildcards = max(self.glob.rfind(_IN_NAME), self.glob.rfind(_CHARACTER)) + 1
        self._ending = self.glob[after_wildcards:].removeprefix("/")
        self._start = self._entered(0)

    def matches(self, path: str) -> bool:
        """Return whether the pattern matches the whole path. Raises TooComplex."""
        if not path.endswith(self._ending):
            return False
        state, steps = self._start, self._steps
        for character in path:
            following = steps.get((state, character))
            if following is None:
                if len(steps) >= _MOST_STEPS:
                    raise TooComplex(self.glob)
                following = steps[state, character] = self._after(state, character)
            if not following:
                return False
            state = following
        return bool(state >> len(self._tokens))

    def _after(self, state: int, character: str) -> int:
        """Return the positions after a character."""
        following = 0
        for position, token in enumerate(self._tokens):
            if not state >> position & 1:
                continue
            if token == _ANYTHING or (token == _IN_NAME and character != "/"):
                following |= self._entered(position)
            elif token == _FOLDERS:
                following |= self._entered(position + 1) if character == "/" else 0
                following |= 1 << position
            elif token == character or (token == _CHARACTER and character != "/"):
                following |= self._entered(position + 1)
        return following

    def _entered(self, first: int) -> int:
        """Return a position and those behind it that no character separates from it."""
        state = 0
        for position in count(first):
            state |= 1 << position
            if position == len(self._tokens) or self._tokens[position] not in self._LOOPS:
                return state
        raise AssertionError
