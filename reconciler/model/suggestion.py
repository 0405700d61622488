"""Suggest names for an unknown one: the closest one, or all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache

from reconciler.model.values import JSON

_MOST_LISTED = 16


def nearest(given: str, known: Sequence[str]) -> str | None:
    """Return the known name closest to the given one, which may be cut short or misspelt."""
    plain = {_plain(name): name for name in known}
    wanted = _plain(given)
    if wanted in plain:
        return plain[wanted]
    longer = [name for name in plain if len(wanted) > 2 and name.startswith(wanted)]
    close = longer if len(longer) == 1 else get_close_matches(wanted, plain, n=1)
    return plain[close[0]] if close else None


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")


def choice(given: JSON, known: Iterable[str], word: str = "allowed") -> str:
    """Return a hint: the closest known name, or a list of the known names."""
    return _choice(str(given), tuple(known), word)


@lru_cache(maxsize=1000)
def _choice(given: str, known: tuple[str, ...], word: str) -> str:
    # Cached, since the same mistake is often in many resources.
    close = nearest(given, known)
    if close is not None:
        return f"did you mean '{close}'?"
    more = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
    return f"{word}: {', '.join(known[:_MOST_LISTED])}{more}"
