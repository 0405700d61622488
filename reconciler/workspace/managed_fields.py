"""The managed fields of a resource: those that are sent, under the kind's own names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from reconciler.model.kind import Kind
from reconciler.model.schemas import common_properties
from reconciler.model.values import Path
from reconciler.workspace.checks.values import ANNOTATIONS, relevant
from reconciler.workspace.schema.annotations import Carriers, carriers_of
from reconciler.workspace.schema.outlines import Outline, outline
from reconciler.workspace.schema.shapes import Shape, TextWithAt, leaf_shapes, members

COMMON = frozenset(common_properties())
"""The fields of all kinds, which are not sent."""
_SECRET = "x-secret"  # noqa: S105 - a word of schemas
_ANNOTATIONS = ANNOTATIONS | {_SECRET}


class ManagedFields(Struct, frozen=True):
    """The managed fields of resources of a shape.

    outline
        What the checks of the schema look at, in the whole resource.
    names
        The kind's own name of each field, with the name in the files.
    repeated
        The names in the files that set a field again, with its own name.
    written
        The names in the files that differ, by the kind's own names.
    carriers
        The fields with an annotation in their schema that matters here.
    secret
        The secret fields.
    with_at
        The texts that may be a URL with a password.
    """

    outline: Outline
    names: tuple[tuple[str, str], ...]
    repeated: tuple[tuple[str, str], ...]
    written: Mapping[str, str]
    carriers: Carriers
    secret: tuple[Path, ...]
    with_at: tuple[Path, ...]


def managed_in(
    shape: Shape, *, kind: Kind, canonical: Mapping[str, str], holders: Iterable[str]
) -> ManagedFields:
    """Return the managed fields of resources of a shape.

    `canonical` are the kind's own names by the names in the files. `holders` are the fields whose
    texts may be URLs with passwords.
    """
    names: dict[str, str] = {}
    repeated: list[tuple[str, str]] = []
    written = members(shape)
    for name in written:
        if name in COMMON or name == kind.parent_key:
            continue
        own = canonical.get(name, name)
        if own in names:
            repeated.append((name, own))
        else:
            names[own] = name
    shapes = {own: written[name] for own, name in names.items()}
    spec = tuple(part for item in shapes.items() for part in item)
    carriers = relevant(carriers_of(kind.name, _ANNOTATIONS, spec), spec)
    inside = ((holder, shapes[holder]) for holder in holders if holder in shapes)
    leaves = (leaf for holder, below in inside for leaf in leaf_shapes(below, (holder,)))
    return ManagedFields(
        outline=outline(kind.name, shape),
        names=tuple(names.items()),
        repeated=tuple(repeated),
        written={own: name for own, name in names.items() if own != name},
        carriers=carriers,
        secret=tuple(path for path, _ in carriers.get(_SECRET, ())),
        with_at=tuple(path for path, leaf in leaves if leaf is TextWithAt),
    )
