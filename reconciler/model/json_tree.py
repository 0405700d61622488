"""Walk JSON values, and change their leaves: the two ways in which all code goes through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reconciler.model.values import JSON, Path


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


def map_leaves(value: JSON, change: Callable[[JSON], JSON]) -> JSON:
    """Return the value with `change` applied to all that is neither a mapping nor a list.

    What does not change is shared with the value and not copied: most values have nothing to
    change, and there are many.
    """
    if not isinstance(value, (dict, list, Mapping, tuple)):
        return change(value)
    items: Any = value.items() if isinstance(value, (dict, Mapping)) else enumerate(value)
    changed: Any = None
    for key, item in items:
        new = map_leaves(item, change)
        if new is not item:
            if changed is None:
                changed = dict(value) if isinstance(value, Mapping) else list(value)
            changed[key] = new
    return value if changed is None else changed
