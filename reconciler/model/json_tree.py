"""Walk JSON values, and change their leaves: the two ways in which all code goes through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any, TypeAlias

JSON: TypeAlias = Any
"""A value that JSON can hold, and `SecretRef` in its place where a secret goes."""

JSONObject: TypeAlias = Mapping[str, Any]

Path: TypeAlias = tuple[str | int, ...]
"""Where a value is inside a resource, for example ("destination", "config", "prefix")."""


def walk(value: JSON, path: Path = ()) -> Iterator[tuple[Path, JSON]]:
    """Yield a value and everything inside it with its path, containers before their content."""
    yield path, value
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from walk(item, (*path, name))
    elif isinstance(value, (list, tuple)):
        for position, item in enumerate(value):
            yield from walk(item, (*path, position))


def leaves(value: JSON, path: Path = ()) -> Iterator[tuple[Path, JSON]]:
    """Yield what is neither a mapping nor a list, with its path."""
    for place, item in walk(value, path):
        if not isinstance(item, (Mapping, list, tuple)):
            yield place, item


def mapped_leaves(value: JSON, path: Path = ()) -> Iterator[tuple[Path, JSON]]:
    """Yield what is no mapping, lists included, and empty mappings, with its path."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from mapped_leaves(item, (*path, name))
    else:
        yield path, value


@cache
def _form(kind: type) -> type | None:
    """Return dict or list for a container's class. Cached: to ask an abstract class is slow."""
    if issubclass(kind, Mapping):
        return dict
    return list if issubclass(kind, (list, tuple)) else None


PLAIN: AbstractSet[type] = frozenset({str, int, bool, float, type(None)})
"""The classes of JSON leaves themselves: what is not a secret or unknown."""


def map_leaves(
    value: JSON, change: Callable[[JSON], JSON], *, keep: AbstractSet[type] = frozenset()
) -> JSON:
    """Return the value with `change` applied to all that is neither a mapping nor a list.

    Leaves whose class is in `keep` are known not to change, which saves most of the time.

    What does not change is shared with the value and not copied: most values have nothing to
    change, and there are many.
    """
    form = _form(value.__class__)
    if form is None:
        return change(value)
    items: Any = value.items() if form is dict else enumerate(value)
    changed: Any = None
    for key, item in items:
        if item.__class__ in keep:
            continue
        new = map_leaves(item, change, keep=keep)
        if new is not item:
            if changed is None:
                changed = form(value)
            changed[key] = new
    return value if changed is None else changed
