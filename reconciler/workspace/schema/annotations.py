"""Compile the `x-` words of schemas once, so that values are visited only where they apply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from reconciler.model.json_tree import leaves
from reconciler.model.schema_files import schema, schema_names
from reconciler.model.secret_names import looks_secret
from reconciler.model.values import JSON, MISSING, Path, value_at


def body_schema(variants: Mapping[str, str], value: Mapping[str, Any]) -> str | None:
    """Return the name of the schema for the body that the tag of a value chooses by `x-variants`.

    The config of a destination depends on its type. None without a valid tag.
    """
    tag = value.get(variants["tag"])
    return f"{variants['folder']}/{tag}" if isinstance(tag, str) else None


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
    variants: Mapping[str, str] | None = None
    items: Annotated | None = None
    below: Mapping[str, Annotated] = field(default_factory=dict)


_SECRET = "x-secret"  # noqa: S105 - a word of schemas
FREE = Annotated()
"""The annotations of a part that no schema describes."""
HOLDS_SECRETS = Annotated(secret=True)
"""The same, inside a part that may hold secrets."""


@cache
def annotations_of(name: str) -> Annotated:
    """Return the annotations of a whole schema."""
    return _compiled(schema(name) or {})


def _compiled(node: Mapping[str, Any]) -> Annotated:
    known, items = node.get("x-open-enum"), node.get("items")
    return Annotated(
        secret=bool(node.get("x-secret") or node.get("x-holds-secrets")),
        open_below=node.get("additionalProperties") is not False,
        enumeration=OpenEnumeration(tuple(known), frozenset(node.get("x-feature-flag", ())))
        if known is not None
        else None,
        variants=node.get("x-variants"),
        items=_compiled(items) if isinstance(items, dict) else None,
        below={name: _compiled(below) for name, below in node.get("properties", {}).items()},
    )


def annotated(name: str, annotation: str, value: JSON) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the paths inside a value whose schema has an annotation, with the schema."""
    for path, node in _carriers(name, annotation):
        # Most are top-level fields that are not set: skip them early.
        if path and not (isinstance(value, dict) and path[0] in value):
            continue
        if len(path) < 2 or value_at(value, path) is not MISSING:
            yield path, node
    for path, node in _carriers(name, "x-variants"):
        holder = value_at(value, path)
        body = node["x-variants"]["body"]
        if isinstance(holder, dict) and body in holder:
            inner = body_schema(node["x-variants"], holder)
            if inner is not None and _carriers(inner, annotation):
                for deeper, node_below in annotated(inner, annotation, holder[body]):
                    yield (*path, body, *deeper), node_below
            elif annotation == _SECRET and inner not in schema_names():
                for deeper in _secret_by_name(holder[body]):
                    yield (*path, body, *deeper), {_SECRET: True}


def _secret_by_name(value: JSON) -> Iterator[Path]:
    """Yield the paths of fields that look secret, below a type that no schema describes."""
    for path, item in leaves(value):
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
        if not isinstance(item, bool) and looks_secret(name):
            yield path


@cache
def _carriers(name: str, annotation: str) -> tuple[tuple[Path, Mapping[str, Any]], ...]:
    return tuple(
        (path, node) for path, node in _nodes(schema(name) or {}, ()) if annotation in node
    )


def _nodes(node: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    yield path, node
    for name, below in node.get("properties", {}).items():
        yield from _nodes(below, (*path, name))
