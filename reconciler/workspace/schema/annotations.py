"""Compile the `x-` words of schemas once, so that values are visited only where they apply."""

from __future__ import annotations

import re
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
    """Known values. The service may accept others.

    `flagged` ones require a feature flag. `misnamed` are the right values for frequent wrong ones.
    `nullable`: null is a value too.
    """

    known: tuple[str, ...]
    flagged: frozenset[str] = frozenset()
    misnamed: Mapping[str, str] = field(default_factory=dict)
    nullable: bool = False

    def fix(self, value: str) -> str | None:
        """Return the hint for a value that no service accepts, None for one that may be new."""
        plain = _plain(value)
        if self.nullable and plain in _NULLS:
            return "write null, without quotes"
        for known in self.known:
            if _plain(known) == plain:
                return f"write '{known}'"
        right = self.misnamed.get(plain)
        return f"write '{right}'" if right is not None else None


@dataclass(frozen=True, slots=True)
class Annotated:
    """The annotations of a part of a schema. `open_below`: other fields are allowed.

    `checks_text`: a text has an enumeration, is a URL, or may have the listed placeholders.
    """

    secret: bool = False
    open_below: bool = True
    enumeration: OpenEnumeration | None = None
    is_url: bool = False
    placeholders: tuple[str, ...] = ()
    checks_text: bool = False
    variants: Mapping[str, str] | None = None
    items: Annotated | None = None
    below: Mapping[str, Annotated] = field(default_factory=dict)


_NULLS = frozenset({"", "none", "null", "nil"})
_PUNCTUATION = re.compile(r"[\W_]+")


def _plain(value: str) -> str:
    """Return a value without case, spaces and punctuation."""
    return _PUNCTUATION.sub("", value).casefold()


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
    items = node.get("items")
    return Annotated(
        secret=bool(node.get("x-secret") or node.get("x-holds-secrets")),
        open_below=node.get("additionalProperties") is not False,
        enumeration=_enumeration(node),
        is_url=bool(node.get("x-url")),
        placeholders=tuple(node.get("x-placeholders", ())),
        checks_text=not {"x-open-enum", "x-url", "x-placeholders"}.isdisjoint(node),
        variants=node.get("x-variants"),
        items=_compiled(items) if isinstance(items, dict) else None,
        below={name: _compiled(below) for name, below in node.get("properties", {}).items()},
    )


def _enumeration(node: Mapping[str, Any]) -> OpenEnumeration | None:
    known = node.get("x-open-enum")
    if known is None:
        return None
    return OpenEnumeration(
        tuple(known),
        frozenset(node.get("x-feature-flag", ())),
        node.get("x-misnamed", {}),
        "null" in node.get("type", ()),
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
