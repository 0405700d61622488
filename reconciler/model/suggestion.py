"""Suggest names for an unknown one: the closest one, or all of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from reconciler.model.values import JSON

_MOST_LISTED = 16
_MANY = 100
"""Names from which only similar ones are compared: comparing takes about 30 microseconds."""
_LONGEST_NAME = 60
_SHORTEST = 5

_Known: TypeAlias = tuple[str, ...] | frozenset[str]


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
