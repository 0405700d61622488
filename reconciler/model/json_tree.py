"""Walk JSON values, and map their leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any, TypeAlias, TypeVar

JSON: TypeAlias = Any
"""A JSON value, with `SecretRef` in place of secrets."""

JSONObject: TypeAlias = Mapping[str, Any]

_Leaf = TypeVar("_Leaf")

Path: TypeAlias = tuple[str | int, ...]
"""The path of a value inside a resource, for example ("destination", "config", "prefix")."""


@cache
def form_of(kind: type) -> type | None:
    """Return dict or list for a container's class, None for that of a leaf.

    Cached, since abstract classes are slow.
    """
    if issubclass(kind, Mapping):
        return dict
    return list if issubclass(kind, (list, tuple)) else None


PLAIN: AbstractSet[type] = frozenset({str, int, bool, float, type(None)})
"""The classes of plain JSON leaves: neither secret nor unknown."""


def _items(value: JSON) -> Iterable[tuple[str | int, JSON]] | None:
    """Return the parts of a container with their names or positions, None for a leaf."""
    form = None if value.__class__ in PLAIN else form_of(value.__class__)
    if form is None:
        return None
    items: Iterable[tuple[str | int, JSON]] = value.items() if form is dict else enumerate(value)
    return items


def parts_of(value: JSON) -> Iterable[JSON]:
    """Return the values directly inside a container, nothing for a leaf."""
    return (item for _, item in _items(value) or ())


def walk(value: JSON, path: Path = ()) -> Iterator[tuple[Path, JSON]]:
    """Yield a value and everything inside it with its path, containers before their content."""
    yield path, value
    for name, item in _items(value) or ():
        yield from walk(item, (*path, name))


def leaves(
    value: JSON, path: Path = (), *, skip: AbstractSet[type] = frozenset()
) -> Iterator[tuple[Path, JSON]]:
    """Yield every value that is neither a mapping nor a list, with its path.

    Leaves whose class is in `skip` are left out, which saves most of the time.
    """
    if value.__class__ in skip:
        return
    items = _items(value)
    if items is None:
        yield path, value
        return
    for name, item in items:
        if item.__class__ not in skip:
            yield from leaves(item, (*path, name), skip=skip)


def leaves_of(value: JSON, wanted: type[_Leaf]) -> Iterator[_Leaf]:
    """Yield the leaves of one class inside a container, in any order: their paths cost most."""
    pending = [value]
    while pending:
        value = pending.pop()
        for item in value.values() if form_of(value.__class__) is dict else value:
            kind = item.__class__
            if kind is wanted:
                yield item
            elif kind not in PLAIN and form_of(kind) is not None:
                pending.append(item)


def mapped_leaves(value: JSON, path: Path = ()) -> Iterator[tuple[Path, JSON]]:
    """Yield every value that is not a mapping, and empty mappings, with their paths."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from mapped_leaves(item, (*path, name))
    else:
        yield path, value


def map_leaves(
    value: JSON, change: Callable[[JSON], JSON], *, keep: AbstractSet[type] = frozenset()
) -> JSON:
    """Return the value with `change` applied to all leaves.

    Leaves whose class is in `keep` never change, which saves most of the time. Unchanged parts are
    shared with the value, not copied.
    """
    form = form_of(value.__class__)
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
