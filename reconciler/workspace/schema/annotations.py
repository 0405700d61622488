"""Compile the `x-` words of schemas once, so that values are visited only where they apply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from reconciler.model.schema_files import schema, schema_names
from reconciler.model.values import JSON, MISSING, Path, value_at


@dataclass(frozen=True, slots=True)
class Variants:
    """A body whose schema depends on a tag: the config of a destination depends on its type.

    `unless` is a field beside the body that can replace required fields of the body.
    """

    tag: str
    body: str
    folder: str
    unless: str

    def schema_of(self, value: Mapping[str, Any]) -> str | None:
        """Return the name of the schema for the body of a value, None without a valid tag."""
        tag = value.get(self.tag)
        return f"{self.folder}/{tag}" if isinstance(tag, str) else None


@dataclass(frozen=True, slots=True)
class OpenEnumeration:
    """Known values. The service may accept others. `flagged` ones require a feature flag."""

    known: tuple[str, ...]
    flagged: frozenset[str]


@dataclass(frozen=True, slots=True)
class Annotated:
    """The annotations of a part of a schema. `open_below`: other fields are allowed."""

    secret: bool = False
    open_below: bool = True
    enumeration: OpenEnumeration | None = None
    variants: Variants | None = None
    items: Annotated | None = None
    below: Mapping[str, Annotated] = field(default_factory=dict)
    enumerations: Mapping[str, OpenEnumeration] = field(default_factory=dict)
    """The enumerations of the direct fields, by name."""


FREE = Annotated()
"""The annotations of a part that no schema describes."""
HOLDS_SECRETS = Annotated(secret=True)
"""The same, inside a part that may hold secrets."""


@cache
def annotations_of(name: str) -> Annotated:
    """Return the annotations of a whole schema."""
    return _compiled(schema(name) or {})


def _compiled(node: Mapping[str, Any]) -> Annotated:
    known, variants = node.get("x-open-enum"), node.get("x-variants")
    items, additional = node.get("items"), node.get("additionalProperties")
    below = {name: _compiled(node_below) for name, node_below in node.get("properties", {}).items()}
    return Annotated(
        secret=bool(node.get("x-secret") or node.get("x-holds-secrets")),
        open_below=additional is not False,
        enumeration=OpenEnumeration(tuple(known), frozenset(node.get("x-feature-flag", ())))
        if known is not None
        else None,
        variants=Variants(**variants) if variants is not None else None,
        items=_compiled(items) if isinstance(items, dict) else None,
        below=below,
        enumerations={
            name: part.enumeration for name, part in below.items() if part.enumeration is not None
        },
    )


def annotated(name: str, annotation: str, value: JSON) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the paths inside a value whose schema has an annotation, with the schema."""
    for path, node in _carriers(name, annotation):
        # Most are top-level fields that are not set: skip them early.
        if path and not (isinstance(value, dict) and path[0] in value):
            continue
        if len(path) < 2 or value_at(value, path) is not MISSING:
            yield path, node
    for path, variants in _variants(name, annotation):
        holder = value_at(value, path)
        if isinstance(holder, dict) and variants.body in holder:
            inner = variants.schema_of(holder)
            if inner is not None and _carriers(inner, annotation):
                below = (*path, variants.body)
                for deeper, node in annotated(inner, annotation, holder[variants.body]):
                    yield below + deeper, node


@cache
def _carriers(name: str, annotation: str) -> tuple[tuple[Path, Mapping[str, Any]], ...]:
    return tuple(
        (path, node) for path, node in _nodes(schema(name) or {}, ()) if annotation in node
    )


@cache
def _variants(name: str, annotation: str) -> tuple[tuple[Path, Variants], ...]:
    """Return the variants of a schema with an annotation in any of their schemas."""
    holders = (
        (path, Variants(**node["x-variants"])) for path, node in _carriers(name, "x-variants")
    )
    return tuple(
        (path, variants)
        for path, variants in holders
        if any(
            _carriers(schema_name, annotation)
            for schema_name in schema_names()
            if schema_name.startswith(f"{variants.folder}/")
        )
    )


def _nodes(node: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    yield path, node
    for name, below in node.get("properties", {}).items():
        yield from _nodes(below, (*path, name))
