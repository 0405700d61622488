"""The names in the schemas, by path: `batch_export.destination.S3.prefix`, `policy.prune`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from reconciler.model.dialect import Dialect
from reconciler.model.schema_files import known_schema, variant_schema
from reconciler.model.values import JSON, Path

Schema = Mapping[str, Any]

WORKSPACE = "workspace"
"""The schema of the workspace file. Its members are names without a prefix."""
_ANY = "*"
_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "array": "list",
    "object": "mapping",
    "null": "null",
}


class Entry(Struct, frozen=True):
    """One name of the schemas.

    `kind` is the kind that it belongs to, None for the workspace file. `path` is where a resource
    or the workspace file has it, and `tags` are the values on the way that select a variant.
    """

    name: str
    kind: str | None
    path: Path
    node: Schema
    required: bool = False
    tags: tuple[tuple[Path, str], ...] = ()

    @property
    def text(self) -> str:
        """Its description."""
        return str(self.node.get("description", ""))

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        """The servers that have it, () if all do."""
        since, until = (self.node.get(word) for word in ("x-since", "x-until"))
        if since is None and until is None:
            return ()
        return Dialect.between(Dialect(since) if since else None, Dialect(until) if until else None)

    @property
    def values(self) -> tuple[JSON, ...]:
        """The values that are allowed, or known."""
        node = self.node
        if "const" in node:
            return (node["const"],)
        return tuple(node.get("enum") or node.get("x-open-enum") or ())

    @property
    def takes(self) -> str:
        """The type of its value in words."""
        types = self.node.get("type", ())
        names = (types,) if isinstance(types, str) else types
        words = [self._word(name) for name in names if name in _WORDS]
        return ", ".join(words) + self._bounds

    def _word(self, name: str) -> str:
        items = self.node.get("items")
        inner = items.get("type") if isinstance(items, Mapping) else None
        if name == "array" and isinstance(inner, str):
            return f"list of {_WORDS[inner]}"
        if name == "string" and self.node.get("format") == "date-time":
            return "time (ISO 8601)"
        return _WORDS[name]

    @property
    def _bounds(self) -> str:
        least, most = self.node.get("minimum"), self.node.get("maximum")
        if least is not None:
            return f" ({least} to {most})" if most is not None else f" ({least} or more)"
        longest = self.node.get("maxLength")
        return f" ({longest} characters at most)" if longest is not None else ""

    def members(self) -> Iterator[Entry]:
        """Yield what is directly below it."""
        node = self.node
        required = node.get("required", ())
        for name, below in node.get("properties", {}).items():
            yield self._member(name, below, required=name in required)
        for inside in (node.get("additionalProperties"), node.get("items")):
            if isinstance(inside, Mapping) and inside.get("properties"):
                yield self._member(_ANY, inside)
        variants = node.get("x-variants")
        if variants is not None:
            tag_path = (*self.path, variants["tag"])
            for tag in node["properties"][variants["tag"]]["x-open-enum"]:
                body = variant_schema(variants, tag)
                path = (*self.path, variants["body"])
                tags = (*self.tags, (tag_path, tag))
                yield Entry(f"{self.name}.{tag}", self.kind, path, body, tags=tags)

    def _member(self, name: str, node: Schema, *, required: bool = False) -> Entry:
        full = f"{self.name}.{name}" if self.kind or self.path else name
        return Entry(full, self.kind, (*self.path, name), node, required, self.tags)


@cache
def entries(kinds: tuple[str, ...]) -> Mapping[str, Entry]:
    """Return every name of the schemas of some kinds and of the workspace file."""
    roots = [Entry(kind, kind, (), known_schema(kind)) for kind in kinds]
    roots.append(Entry(WORKSPACE, None, (), known_schema(WORKSPACE)))
    return {entry.name: entry for root in roots for entry in _all(root)}


def _all(entry: Entry) -> Iterator[Entry]:
    yield entry
    for member in entry.members():
        yield from _all(member)
