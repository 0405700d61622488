"""Files and folders of data: inside an installed package, or beside it in the repository.

importlib.resources would take 15 ms to import.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent


@cache
def packaged(name: str) -> Path:
    """Return the path of a file or folder of data, such as `schemas`."""
    inside = _PACKAGE / name
    return inside if inside.exists() else _PACKAGE.parent / name
