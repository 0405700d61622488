"""Files and folders of data: inside an installed package, or beside it in the repository.

importlib.resources would take 15 ms to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent


@cache
def packaged(name: str) -> Path:
    """Return the path of a file or folder of data, such as `schemas`."""
    inside = _PACKAGE / name
    return inside if inside.exists() else _PACKAGE.parent / name


@cache
def _removed() -> Mapping[str, Mapping[str, str]]:
    import tomllib

    return tomllib.loads(packaged("removed.toml").read_text(encoding="utf-8"))


def use_instead(name: str, table: str = "words") -> str | None:
    """Return what to use instead of a name that was removed, None for others: `removed.toml`.

    What an environment may set is also found below `environments.NAME`.
    """
    for glob, hint in _removed().get(table, {}).items():
        if fnmatchcase(name, glob) or fnmatchcase(name, f"environments.*.{glob}"):
            return hint
    return None
