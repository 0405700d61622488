"""Finds the JSON Schemas: inside an installed package, or in the repository beside it."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
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


def variant_schema(variants: Mapping[str, str], tag: Any) -> dict[str, Any]:
    """The schema of the body that a tag chooses, as `x-variants` tells; {} where there is none."""
    return schema(f"{variants['folder']}/{tag}") or {}


def member_schema(
    node: Mapping[str, Any], value: Mapping[str, Any], name: str
) -> dict[str, Any] | None:
    """The schema of a member of a value, a body that its tag chooses included; else None."""
    variants = node.get("x-variants")
    if variants is not None and name == variants["body"]:
        return variant_schema(variants, value.get(variants["tag"]))
    found: dict[str, Any] | None = node.get("properties", {}).get(name)
    return found


@cache
def schema_names() -> tuple[str, ...]:
    """All names, sorted."""
    return tuple(sorted(_names(_folder(), "")))


def nearest_schema(name: str) -> str | None:
    """The name that was probably meant, whole or by its last part, whatever its case."""
    names = schema_names()
    known = {each.rpartition("/")[2].casefold(): each for each in names}
    known |= {each.casefold(): each for each in names}
    close = get_close_matches(name.casefold(), known, n=1)
    return known[close[0]] if close else None


def _names(folder: Traversable, prefix: str) -> list[str]:
    found = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _names(each, f"{prefix}{each.name}/")
        elif each.name.endswith(_SUFFIX):
            found.append(f"{prefix}{each.name.removesuffix(_SUFFIX)}")
    return found
