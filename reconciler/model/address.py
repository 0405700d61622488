"""Names: addresses of resources, patterns that select names, and suggestions for unknown ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from heapq import nsmallest
from typing import Self

from reconciler.model.text import listed
from reconciler.model.values import JSON

UNMANAGED_PREFIX = "id:"
"""Starts the key in the address of an unmanaged object: `<kind>.id:<id>`."""
_MOST_LISTED = 16
_MANY = 50
"""Names from which only those with similar letters are compared, which takes 20 us each."""
_LONGEST_NAME = 60
_SHORTEST = 5


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


def fits_any(text: str, globs: Iterable[str]) -> bool:
    """Return whether any of the patterns fits the whole text, case-sensitively."""
    return any(fnmatchcase(text, glob) for glob in globs)


def nearest(given: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to the given one, which may be cut short or misspelt."""
    return _nearest(given, tuple(known))


# Cached, since the same mistake is often in many resources.
@lru_cache(maxsize=10_000)
def _nearest(given: str, known: tuple[str, ...]) -> str | None:
    from difflib import get_close_matches

    names = {_plain(name): name for name in known}
    wanted = _plain(given)
    if wanted in names:
        return names[wanted]
    longer = [name for name in names if len(wanted) > 2 and name.startswith(wanted)]
    near: Iterable[str] = names
    if len(names) > _MANY:
        letters = set(wanted)
        near = nsmallest(_MANY, names, key=lambda name: len(letters ^ set(name)))
    close = longer if len(longer) == 1 else get_close_matches(wanted, near, n=1)
    return names[close[0]] if close else None


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
    names = sorted(known) if isinstance(known, frozenset) else tuple(known)
    close = nearest(str(given), names)
    if close is not None:
        return f"did you mean '{close}'?"
    return f"{word}: {listed(names, _MOST_LISTED)}"
