"""Names: addresses of resources, patterns that select names, and suggestions for unknown ones."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import ClassVar, Self, TypeAlias

from msgspec import Struct, field

from reconciler.errors import ReconcilerError
from reconciler.model.text import quoted
from reconciler.model.values import JSON

UNMANAGED_PREFIX = "id:"
"""Starts the key in the address of an unmanaged object: `<kind>.id:<id>`."""
_TOKEN = re.compile(r"\*\*/|\*\*|.", re.DOTALL)
_FOLDERS, _ANYTHING, _IN_NAME, _CHARACTER = "**/", "**", "*", "?"
_LONGEST_GLOB = 500
_MOST_STEPS = 20_000
"""Steps to remember. Ordinary patterns have some hundreds."""
_MOST_LISTED = 16
_MANY = 100
"""Names from which only similar ones are compared: comparing takes about 30 microseconds."""
_LONGEST_NAME = 60
_SHORTEST = 5

_Known: TypeAlias = tuple[str, ...] | frozenset[str]


class Address(str):
    """`KIND.KEY`: a text, as in public JSON."""

    __slots__ = ()

    def __new__(cls, kind: str, key: str) -> Self:
        """Return the address of a kind and a key."""
        return str.__new__(cls, f"{kind}.{key}")

    @property
    def kind(self) -> str:
        """The name of its kind."""
        return self.partition(".")[0]

    @property
    def key(self) -> str:
        """The key in the configuration, or `id:ID` of an unmanaged object."""
        return self.partition(".")[2]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the address of a text. Raises ValueError for one without a dot."""
        kind, dot, key = text.partition(".")
        if not (kind and dot and key):
            raise ValueError(f"'{text}' is not an address; write kind.key")
        return cls(kind, key)

    @classmethod
    def of_unmanaged(cls, kind: str, live_id: str) -> Self:
        """Return the address of an unmanaged object."""
        return cls(kind, f"{UNMANAGED_PREFIX}{live_id}")

    @property
    def is_unmanaged(self) -> bool:
        """Whether it names a live object by its id, since no resource claims it."""
        return self.key.startswith(UNMANAGED_PREFIX)


class TooComplex(ReconcilerError):
    """A pattern of paths is too long, or has too many ways to match."""

    def __init__(self, glob: str) -> None:
        super().__init__(f"pattern {quoted(glob[:_LONGEST_GLOB])} is too long or too complex")


def fits_any(text: str, globs: Iterable[str]) -> bool:
    """Return whether any of the patterns fits the whole text, case-sensitively."""
    return any(fnmatchcase(text, glob) for glob in globs)


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
        for position, token in enumerate((*self._tokens[first:], ""), first):
            state |= 1 << position
            if token not in self._LOOPS:
                break
        return state


def nearest(given: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to the given one, which may be cut short or misspelt.

    Pass the same frozenset again where there may be many names: it knows its hash.
    """
    return _nearest(given, _frozen(known))


def _frozen(known: Iterable[str]) -> _Known:
    return known if isinstance(known, frozenset) else tuple(known)


# Cached, since the same mistake is often in many resources.
@lru_cache(maxsize=10_000)
def _nearest(given: str, known: _Known) -> str | None:
    names = _names(known)
    wanted = _plain(given)
    if wanted in names.plain:
        return names.plain[wanted]
    position = bisect_left(names.ordered, wanted)
    after = names.ordered[position : position + 2]
    longer = [name for name in after if len(wanted) > 2 and name.startswith(wanted)]
    from difflib import get_close_matches

    close = longer if len(longer) == 1 else get_close_matches(wanted, names.similar(wanted), n=1)
    return names.plain[close[0]] if close else None


class _Names(Struct, frozen=True):
    """Known names: as listed, by plain form, in order, and by what is left without a character.

    A set is listed in alphabetical order.
    """

    listed: Sequence[str]
    plain: Mapping[str, str]
    ordered: Sequence[str]
    shortened: Mapping[str, Sequence[str]]

    def similar(self, wanted: str) -> Iterable[str]:
        """Return the names to compare: among many, only those that differ in a character or two."""
        if not self.shortened:
            return self.ordered
        forms = _without_a_character(wanted)
        return dict.fromkeys(name for form in forms for name in self.shortened.get(form, ()))


@lru_cache(maxsize=100)
def _names(known: _Known) -> _Names:
    listed = sorted(known) if isinstance(known, frozenset) else tuple(known)
    plain = {_plain(name): name for name in listed}
    shortened: dict[str, list[str]] = defaultdict(list)
    if len(plain) > _MANY:
        for name in plain:
            for form in _without_a_character(name):
                shortened[form].append(name)
    return _Names(listed, plain, sorted(plain), shortened)


def _without_a_character(name: str) -> set[str]:
    """Return a name and what is left without one of its characters."""
    name = name[:_LONGEST_NAME]
    return {name, *(name[:index] + name[index + 1 :] for index in range(len(name)))}


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")


def near_miss(given: JSON, known: Sequence[str]) -> str | None:
    """Return the known value that a text of five letters or more misspells, None without one.

    At most two letters are missing, added or others.
    """
    if not isinstance(given, str) or not given.isalpha() or given in known:
        return None
    fits = _SHORTEST <= len(given) <= _LONGEST_NAME
    pairs = ((name, most) for most in (1, 2) for name in known if fits)
    return next((name for name, most in pairs if _are_near(given, name, most)), None)


def _are_near(first: str, second: str, most: int) -> bool:
    """Return whether at most some letters have to be added, removed or replaced."""
    if most < 0 or not first or not second:
        return len(first) + len(second) <= most
    if first[0].casefold() == second[0].casefold():
        return _are_near(first[1:], second[1:], most)
    shorter = ((first[1:], second), (first, second[1:]), (first[1:], second[1:]))
    return any(_are_near(*pair, most - 1) for pair in shorter)


def joined(*hints: str | None) -> str:
    """Return hints as one text. A question such as `did you mean 'x'?` ends a sentence."""
    text = ""
    for hint in filter(None, hints):
        separator = (" " if text.endswith("?") else "; ") if text else ""
        text += f"{separator}{hint}"
    return text


def choice(given: JSON, known: Iterable[str], word: str = "allowed") -> str:
    """Return a hint: the closest known name, or a list of the known names."""
    known = _frozen(known)
    close = _nearest(str(given), known)
    if close is not None:
        return f"did you mean '{close}'?"
    more = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
    return f"{word}: {', '.join(_names(known).listed[:_MOST_LISTED])}{more}"
