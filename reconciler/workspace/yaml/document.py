"""A parsed file: its value, and the place of every part of it, found when it is asked for.

Places are kept beside the values and never in them: dicts that remember lose it in the first merge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import yaml

from reconciler.errors import Mark
from reconciler.model.json_tree import walk
from reconciler.model.values import JSON, MISSING, Path, value_at
from reconciler.workspace.yaml.nodes import MERGE_TAG, compose

Node: TypeAlias = yaml.nodes.Node
Members: TypeAlias = Mapping[str, tuple[Node, Node]]


class Unknown(str):
    """Stands where a value can't be known: it was misread, or a reference leads nowhere.

    That is reported already. Checks pass over it, so that one mistake is reported once.
    """

    __slots__ = ()


class UnknownText(Unknown):
    """Text whose content is not known here, such as a variable of another machine."""

    __slots__ = ()


def is_misread(value: JSON) -> bool:
    """Return whether a value is wrong and reported: nothing else is known about it."""
    return isinstance(value, Unknown) and not isinstance(value, UnknownText)


class Nodes:
    """The composed nodes of a file, asked for places. `top` is None for an empty file."""

    def __init__(self, file: str, text: str, top: Node | None) -> None:
        self.file = file
        self.text = text
        self.top = top
        self._members: dict[int, Members] = {}

    @cached_property
    def lines(self) -> Sequence[str]:
        """The source lines."""
        return self.text.splitlines()

    def nearest(self, path: Path) -> tuple[Node | None, Node | None]:
        """The key and value nodes at a path, or those of the nearest part above it."""
        key: Node | None = None
        value = self.top
        for part in path:
            if isinstance(value, yaml.MappingNode):
                below = self.members(value).get(str(part))
                if below is None:
                    break
                key, value = below
            elif (
                isinstance(value, yaml.SequenceNode)
                and isinstance(part, int)
                and part < len(value.value)
            ):
                key, value = None, value.value[part]
            else:
                break
        return key, value

    def members(self, node: yaml.MappingNode) -> Members:
        """The key and value nodes of a mapping by key, those of merge keys included.

        Of a key that is there twice, the first. Kept, since the mappings that hold all
        resources of a file are asked again and again.
        """
        members = self._members.get(id(node))
        if members is None:
            members = self._members[id(node)] = _collected(node)
        return members

    def mark_of(self, node: Node | None) -> Mark:
        """The place of a node."""
        if node is None:
            return Mark(self.file)
        start, end = node.start_mark, node.end_mark
        if start.line == end.line:
            length = end.column - start.column
        else:
            length = len(self.lines[start.line]) - start.column
        return Mark(self.file, start.line + 1, start.column + 1, max(1, length))

    def upper_keys(self) -> Mapping[Path, Mark]:
        """Return the places of the keys two levels below the top: those of resources."""
        if not isinstance(self.top, yaml.MappingNode):
            return {}
        marks: dict[Path, Mark] = {}
        for upper, below in self.top.value:
            if isinstance(upper, yaml.ScalarNode) and isinstance(below, yaml.MappingNode):
                for key, _ in below.value:
                    if isinstance(key, yaml.ScalarNode):
                        marks.setdefault((upper.value, key.value), self.mark_of(key))
        return marks


# Without slots, so that what is made on first use has a place.
@dataclass(frozen=True)
class Document:
    """One YAML document: its value and text. Its nodes are composed again when asked for.

    `unread` is True for a file that can't be read, which is reported; False for an empty one.
    `keys` are places that every resource needs, so that they are kept.
    """

    file: str
    value: JSON = None
    text: str = field(default="", repr=False)
    unread: bool = False
    keys: Mapping[Path, Mark] = field(default_factory=dict, repr=False)

    @cached_property
    def _nodes(self) -> Nodes:
        return Nodes(self.file, self.text, None if self.unread else compose(self.text))

    @property
    def node(self) -> Node | None:
        """The node of the whole document, None for an empty or unread one."""
        return self._nodes.top

    @cached_property
    def lines(self) -> Sequence[str]:
        """The source lines."""
        return self.text.splitlines()

    def mark(self, path: Path) -> Mark:
        """The place of the value at a path; of the nearest part above it if it is not there."""
        return self._nodes.mark_of(self._nodes.nearest(path)[1])

    def key_mark(self, path: Path) -> Mark:
        """The place of the key of the value at a path."""
        known = self.keys.get(path)
        if known is not None:
            return known
        key, value = self._nodes.nearest(path)
        return self._nodes.mark_of(key if key is not None else value)

    def line(self, number: int) -> str:
        """A source line, counted from 1."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""


def _collected(node: yaml.MappingNode) -> dict[str, tuple[Node, Node]]:
    """Own members first, then merged ones; a mapping that merges itself is gone into once."""
    members: dict[str, tuple[Node, Node]] = {}
    seen: set[int] = set()
    waiting: list[Node] = [node]
    while waiting:
        mapping = waiting.pop()
        if not isinstance(mapping, yaml.MappingNode) or id(mapping) in seen:
            continue
        seen.add(id(mapping))
        sources: list[Node] = []
        for key, value in mapping.value:
            if key.tag == MERGE_TAG:
                sources += value.value if isinstance(value, yaml.SequenceNode) else [value]
            elif isinstance(key, yaml.ScalarNode):
                members.setdefault(key.value, (key, value))
        waiting += reversed(sources)
    return members


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of a resource's fields: a part of a document, with a word for what it is."""

    document: Document
    path: Path
    label: str

    @property
    def value(self) -> JSON:
        """The value at that place."""
        return value_at(self.document.value, self.path)


class Places(Mapping[Path, Mark]):
    """Where each field of a merged resource comes from: the topmost layer that has it.

    Lazy, since nearly none of the places of a large workspace are ever asked for.
    """

    __slots__ = ("layers",)

    def __init__(self, layers: tuple[Layer, ...]) -> None:
        self.layers = layers

    def layer_of(self, path: Path) -> Layer | None:
        """The layer that a field comes from."""
        for layer in self.layers:
            if value_at(layer.value, path) is not MISSING:
                return layer
        return None

    def source_of(self, path: Path) -> tuple[Layer, Path] | None:
        """The layer that a field comes from, and the nearest path above it that it has.

        The two differ below a reference to a variable that is a list or mapping.
        """
        while path:
            layer = self.layer_of(path)
            if layer is not None:
                return layer, path
            path = path[:-1]
        return None

    def __getitem__(self, path: Path) -> Mark:
        layer = self.layer_of(path)
        if layer is None:
            raise KeyError(path)
        return layer.document.mark(layer.path + path)

    def key(self, path: Path) -> Mark:
        """The place of the key of a field; of the resource if the field is not there."""
        source = self.source_of(path)
        if source is None:
            return self.layers[0].document.key_mark(self.layers[0].path)
        layer, nearest = source
        return layer.document.key_mark(layer.path + nearest)

    def near(self, path: Path) -> Mark:
        """The place of a field, or of the nearest part above it."""
        source = self.source_of(path)
        if source is None:
            return self.key(())
        layer, nearest = source
        return layer.document.mark(layer.path + nearest)

    def __iter__(self) -> Iterator[Path]:
        seen: set[Path] = set()
        for layer in self.layers:
            for path, _ in walk(layer.value):
                if path and path not in seen:
                    seen.add(path)
                    yield path

    def __len__(self) -> int:
        return sum(1 for _ in self)
