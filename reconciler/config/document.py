"""A parsed file: its value, and the place of every part of it, found when it is asked for.

Places are kept beside the values and never in them: dicts that remember lose it in the first merge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from reconciler.errors import Mark
from reconciler.model.values import JSON, Path

Node: TypeAlias = yaml.nodes.Node
MERGE_TAG = "tag:yaml.org,2002:merge"


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document. `node` is None for an empty file."""

    file: str
    value: JSON
    node: Node | None
    lines: tuple[str, ...]

    def mark(self, path: Path) -> Mark:
        """The place of the value at a path; of the nearest part above it if it is not there."""
        found = self.node
        for part in path:
            below = _child(found, part)
            if below is None:
                break
            found = below[1]
        return self.mark_of(found)

    def key_mark(self, path: Path) -> Mark:
        """The place of the key of the value at a path."""
        found = self.node
        key = None
        for part in path:
            below = _child(found, part)
            if below is None:
                break
            key, found = below
        return self.mark_of(key if key is not None else found)

    def has(self, path: Path) -> bool:
        """Whether there is a value at a path."""
        found = self.node
        for part in path:
            below = _child(found, part)
            if below is None:
                return False
            found = below[1]
        return found is not None

    def mark_of(self, node: Node | None) -> Mark:
        """The place of a node."""
        if node is None:
            return Mark(self.file)
        start, end = node.start_mark, node.end_mark
        same_line = start.line == end.line
        length = (
            end.column - start.column
            if same_line
            else len(self.line(start.line + 1)) - start.column
        )
        return Mark(self.file, start.line + 1, start.column + 1, max(1, length))

    def line(self, number: int) -> str:
        """A source line, counted from 1."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""


def _child(node: Node | None, part: str | int) -> tuple[Node | None, Node] | None:
    """The key and value nodes of a part, those that a merge key brings included."""
    if isinstance(node, yaml.MappingNode):
        merged: tuple[Node | None, Node] | None = None
        for key, value in node.value:
            if key.tag == MERGE_TAG:
                for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    merged = merged or _child(source, part)
            elif key.value == part:
                return key, value
        return merged
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return None, node.value[part]
    return None


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of a resource's fields: a part of a document, with a word for what it is."""

    document: Document
    path: Path
    label: str


class Places(Mapping[Path, Mark]):
    """Where each field of a merged resource comes from: the topmost layer that has it.

    Lazy, since nearly none of the places of a large workspace are ever asked for.
    """

    def __init__(self, layers: tuple[Layer, ...]) -> None:
        self.layers = layers

    def layer_of(self, path: Path) -> Layer | None:
        """The layer that a field comes from."""
        for layer in self.layers:
            if layer.document.has(layer.path + path):
                return layer
        return None

    def __getitem__(self, path: Path) -> Mark:
        layer = self.layer_of(path)
        if layer is None:
            raise KeyError(path)
        return layer.document.mark(layer.path + path)

    def key(self, path: Path) -> Mark:
        """The place of the key of a field; of the resource if the field is not there."""
        layer = self.layer_of(path)
        if layer is None:
            return self.layers[0].document.key_mark(self.layers[0].path)
        return layer.document.key_mark(layer.path + path)

    def near(self, path: Path) -> Mark:
        """The place of a field, or of the nearest part above it."""
        while path:
            layer = self.layer_of(path)
            if layer is not None:
                return layer.document.mark(layer.path + path)
            path = path[:-1]
        return self.key(())

    def __iter__(self) -> Iterator[Path]:
        for layer in self.layers:
            yield from _paths(_inside(layer), ())

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _inside(layer: Layer) -> Any:
    value = layer.document.value
    for part in layer.path:
        value = value[part]
    return value


def _paths(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key)
            yield from _paths(item, (*path, key))
