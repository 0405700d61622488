"""Shapes of values. A check that depends on the shape only runs once for all values of a shape.

Resources have few shapes: most of those of an organization set the same fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

from reconciler.model.values import JSON, MISSING, PLAIN, Path, form_of

Shape: TypeAlias = Any
"""The class of a leaf, the text of a tag, or a tuple for a container.

The tuple of a mapping holds its keys, each followed by the shape of its value. That of a list holds
`list` and the shapes of its items. Shapes are hashable.
"""

MOST_SHAPES = 4_096
"""Shapes of which results are remembered. A workspace where each resource has its own has more."""


class TextWithAt:
    """The shape of a text with an @, which may be a URL with a password."""


def shape_of(value: JSON, tags: AbstractSet[str] = frozenset()) -> Shape:
    """Return the shape of a value. `tags` are the keys whose texts belong to the shape."""
    form = form_of(value.__class__)
    parts: list[Any]
    if form is dict:
        parts = []
        for key, item in value.items():
            # The shapes of leaves are here again, without a call: most values are leaves.
            kind = item.__class__
            if kind is str:
                kind = item if key in tags else TextWithAt if "@" in item else str
            elif kind not in PLAIN and form_of(kind) is not None:
                kind = shape_of(item, tags)
            parts.append(key)
            parts.append(kind)
        return tuple(parts)
    if form is list:
        parts = [list]
        for item in value:
            kind = item.__class__
            parts.append(str if kind is str and "@" not in item else shape_of(item, tags))
        return tuple(parts)
    return TextWithAt if value.__class__ is str and "@" in value else value.__class__


def is_text(shape: Shape) -> bool:
    """Return whether a shape is that of plain text."""
    return shape is str or shape is TextWithAt or isinstance(shape, str)


def is_mapping(shape: Shape) -> bool:
    """Return whether a shape is that of a mapping."""
    return isinstance(shape, tuple) and shape[:1] != (list,)


def members(shape: Shape) -> Mapping[str, Shape]:
    """Return the shapes in a mapping by key, none for another value."""
    return dict(zip(shape[::2], shape[1::2], strict=True)) if is_mapping(shape) else {}


def items(shape: Shape) -> Sequence[Shape]:
    """Return the shapes in a list, none for another value."""
    return shape[1:] if isinstance(shape, tuple) and not is_mapping(shape) else ()


def shape_at(shape: Shape, path: Path) -> Shape:
    """Return the shape of the value at a path, or `MISSING`."""
    for part in path:
        if isinstance(part, str):
            shape = members(shape).get(part, MISSING)
        else:
            shape = items(shape)[part] if part < len(items(shape)) else MISSING
    return shape


def leaf_shapes(shape: Shape, path: Path = ()) -> Iterator[tuple[Path, Shape]]:
    """Yield the shapes of all leaves with their paths."""
    if not isinstance(shape, tuple):
        yield path, shape
        return
    parts = members(shape).items() if is_mapping(shape) else enumerate(items(shape))
    for name, item in parts:
        yield from leaf_shapes(item, (*path, name))
