"""What our schemas say beyond JSON Schema, compiled once for each: the `x-` words and `format`.

Comes between the schema files and the checks. Ten thousand resources share a few dozen schemas, so
each schema is walked once, and a value only where its schema has something to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from reconciler.model.schema_files import schema, schema_names
from reconciler.model.values import JSON, MISSING, Path, value_at


@dataclass(frozen=True, slots=True)
class Variants:
    """A body whose schema is chosen by a tag beside it: the config of a destination's type.

    `unless` is a field beside the body that may hold what the body lacks.
    """

    tag: str
    body: str
    folder: str
    unless: str

    def schema_of(self, value: Mapping[str, Any]) -> str | None:
        """The name of the schema for the body of a value, None where there is no telling."""
        tag = value.get(self.tag)
        return f"{self.folder}/{tag}" if isinstance(tag, str) else None


@dataclass(frozen=True, slots=True)
class OpenEnumeration:
    """Known values; the service may know more. Some need a feature that not everybody has."""

    known: tuple[str, ...]
    flagged: frozenset[str]


@dataclass(frozen=True, slots=True)
class Annotated:
    """A part of a schema. `open_below` says whether it takes fields that it does not name."""

    secret: bool = False
    open_below: bool = True
    enumeration: OpenEnumeration | None = None
    variants: Variants | None = None
    items: Annotated | None = None
    below: Mapping[str, Annotated] = field(default_factory=dict)
    enumerations: Mapping[str, OpenEnumeration] = field(default_factory=dict)
    """Those of the fields just below, by name."""


FREE = Annotated()
"""A part that no schema describes."""
HOLDS_SECRETS = Annotated(secret=True)
"""The same inside a part that may hold secrets."""


@cache
def annotations_of(name: str) -> Annotated:
    """The annotations of a whole schema."""
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
    """Paths inside a value whose schema carries an annotation, variants followed."""
    for path, node in _carriers(name, annotation):
        # Most are top-level fields that are not set: they are skipped without going inside.
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
    """The variants of a schema of which any carries an annotation."""
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
