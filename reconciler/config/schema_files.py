"""Finds the JSON Schemas: inside an installed package, or in the repository beside it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import orjson

_SUFFIX = ".schema.json"


def _folder() -> Traversable:
    packaged = files("reconciler").joinpath("schemas")
    if packaged.is_dir():
        return packaged
    return Path(__file__).resolve().parents[2] / "schemas"


@cache
def schema(name: str) -> dict[str, Any] | None:
    """The schema of a name such as "workspace" or "destinations/S3", None if there is none.

    Names come from files of users (the type of a destination), so that only known ones are opened.
    """
    if name not in schema_names():
        return None
    place = _folder()
    for part in f"{name}{_SUFFIX}".split("/"):
        place = place.joinpath(part)
    found: dict[str, Any] = orjson.loads(place.read_bytes())
    return found


@cache
def schema_names() -> tuple[str, ...]:
    """All names, sorted."""
    return tuple(sorted(_names(_folder(), "")))


def _names(folder: Traversable, prefix: str) -> list[str]:
    found = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _names(each, f"{prefix}{each.name}/")
        elif each.name.endswith(_SUFFIX):
            found.append(f"{prefix}{each.name.removesuffix(_SUFFIX)}")
    return found
