"""Shell-style patterns, as options and policies have them."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase


def fits_any(text: str, globs: Iterable[str]) -> bool:
    """Return whether any of the patterns fits the whole text, case-sensitively."""
    return any(fnmatchcase(text, glob) for glob in globs)
