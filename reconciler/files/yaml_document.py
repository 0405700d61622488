"""A parsed file: its nodes, its value, and the place of every part of it, computed on demand.

Nodes are not kept, since they take most of the memory: `Document` composes again to find places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml
from msgspec import Struct
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reconciler.diagnostics import Mark
from reconciler.model.schemas import may_hold_credential
from reconciler.model.values import JSON, MISSING, UNSET, Path, leaves, value_at, walk
from reconciler.paths import MAX_DEPTH

PREFIX = "tag:yaml.org,2002:"
TEXT_TAG = f"{PREFIX}str"
NULL_TAG = f"{PREFIX}null"
MERGE_TAG = f"{PREFIX}merge"
SEQUENCE_TAG = f"{PREFIX}seq"
MAPPING_TAG = f"{PREFIX}map"
_RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
_NUMBER_IN_1_2 = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+")
NOT_ALWAYS_TEXT = frozenset("yYnNtTfFoO0123456789+-.~<=")
"""First characters of plain scalars that may not be text."""


LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")
FLOAT = re.compile(r"([-+]?(0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+)([eE][-+][0-9]+)?")
NUMERIC = re.compile(r"[-+0-9.][-+0-9a-fA-FoxXbeE._:]*|[-+]?\.(inf|nan)", re.IGNORECASE)
LONG = 25
"""Characters from which a number is too long for 64 bits, and for a message."""
_LARGEST = 2**63
"""JSON readers hold whole numbers in 64 bits; longer ones would change."""
TRUE_OR_FALSE = {"true": True, "false": False}
_NULLS = frozenset({"~", "null"})
Members: TypeAlias = Mapping[str, tuple[Node, Node]]


if TYPE_CHECKING:
    Parser = yaml.SafeLoader
else:
    Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def tag_of(text: str) -> str:
    """Return the tag of a plain scalar that is not empty."""
    for tag, pattern in _RESOLVERS.get(text[0], ()):
        if pattern.match(text):
            return str(tag)
    if text in ("y", "n", "Y", "N"):
        return f"{PREFIX}bool"
    return f"{PREFIX}float" if _NUMBER_IN_1_2.fullmatch(text) else TEXT_TAG


def nodes_in(root: Node | None, *, keys: bool = True) -> Iterator[Node]:
    """Yield a node and all inside it, each once although aliases share nodes."""
    seen: set[int] = set()
    pending = [root] if root is not None else []
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, MappingNode):
            pending.extend(part for pair in node.value for part in pair[0 if keys else 1 :])
        elif isinstance(node, SequenceNode):
            pending.extend(node.value)


def is_block_text(node: Node) -> bool:
    """Return whether a node is text after `|` or `>`."""
    return isinstance(node, ScalarNode) and node.style in ("|", ">")


def tagged_value(tag: str, text: str) -> JSON:
    """Return the value of a scalar without quotes by its tag, MISSING if it is ambiguous."""
    kind, word = tag.removeprefix(PREFIX), text.lower()
    if tag == TEXT_TAG or kind in ("timestamp", "value", "merge"):
        return text
    if kind == "null" and word in _NULLS:
        return None
    if kind == "bool" and word in TRUE_OR_FALSE:
        return TRUE_OR_FALSE[word]
    if kind in ("int", "float") and NUMERIC.fullmatch(text):
        return _number(text)
    return MISSING


def _number(text: str) -> JSON:
    if DECIMAL.fullmatch(text):
        fits = len(text) < LONG and -_LARGEST <= int(text) < _LARGEST
        return int(text) if fits else MISSING
    return float(text) if FLOAT.fullmatch(text) and isfinite(float(text)) else MISSING


class Unknown(str):
    """An unknown value: the YAML is ambiguous, or a reference cannot be resolved.

    The error is reported already. Checks skip unknown values, so that it is reported once.
    """

    __slots__ = ()


class UnknownText(Unknown):
    """Text with unknown content, such as an environment variable of another machine."""

    __slots__ = ()


class UnknownInput(UnknownText):
    """An input with unknown content, which may be a number or a boolean."""

    __slots__ = ()


class Input(str):
    """The whole text of an environment variable or of a file.

    It becomes a number or a boolean where the schema wants one. `reference` is its reference,
    without a default.
    """

    __slots__ = ("reference",)
    reference: str

    @classmethod
    def of(cls, text: str, reference: str) -> Input:
        """Return the text of a reference."""
        value = cls(text)
        value.reference = reference
        return value


def is_misread(value: JSON) -> bool:
    """Return whether a value is unknown because of a reported error."""
    return isinstance(value, Unknown) and not isinstance(value, UnknownText)


def place(file: str, text: str, position: int) -> Mark:
    """Return the place of a position in a text."""
    lines = LINE_BREAK.split(text[:position])
    return Mark(file, len(lines), len(lines[-1]) + 1)


# Without slots, since cached properties need a dict.
@dataclass(frozen=True)
class Document:
    """One YAML document: its value and text. Its nodes are composed again when needed.

    `unread` is True for a file that cannot be parsed, which is reported; False for an empty one.
    `keys` are the places of resources, which are always needed. `nodes` is the number of values
    with aliases expanded.
    """

    file: str
    value: JSON = None
    text: str = field(default="", repr=False)
    unread: bool = False
    keys: Mapping[Path, Mark] = field(default_factory=dict, repr=False)
    nodes: int = 0

    @cached_property
    def node(self) -> Node | None:
        """The node of the whole document, None for an empty or unread one."""
        return None if self.unread else yaml.compose(self.text, Loader=Parser)

    @cached_property
    def _members(self) -> dict[int, Members]:
        return {}

    @cached_property
    def lines(self) -> Sequence[str]:
        """The source lines."""
        return self.text.splitlines()

    @cached_property
    def has_unset(self) -> bool:
        """Whether `${unset}` occurs in the text."""
        return UNSET in self.text

    @cached_property
    def may_hold_credential(self) -> bool:
        """Whether a value may be an address with a credential, also one with escapes."""
        return "\\" in self.text or may_hold_credential(self.text)

    def mark(self, path: Path, part: str | None = None) -> Mark:
        """Return the place of the value at a path, or of the nearest part above it.

        `part` is a reference in its text.
        """
        node = self.nearest(path)[1]
        within = self.mark_within(node, part) if part is not None else None
        return within or self.mark_of(node)

    def key_mark(self, path: Path) -> Mark:
        """Return the place of the key of the value at a path."""
        mark = self.keys.get(path)
        if mark is not None:
            return mark
        key, value = self.nearest(path)
        return self.mark_of(key if key is not None else value)

    def line(self, number: int) -> str:
        """Return a source line, counted from 1."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def nearest(self, path: Path) -> tuple[Node | None, Node | None]:
        """Return the key and value nodes at a path, or of the nearest part above it."""
        key: Node | None = None
        value = self.node
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
        """Return the first key and value nodes of a mapping by key, merge keys included.

        Cached, since the mapping with all resources of a file is requested for each of them.
        """
        members = self._members.get(id(node))
        if members is None:
            members = self._members[id(node)] = _collected(node)
        return members

    def mark_within(self, node: Node | None, part: str) -> Mark | None:
        """Return the place of a reference in a text, None if escapes or line breaks hide it."""
        if not isinstance(node, yaml.ScalarNode):
            return None
        first, last = node.start_mark, node.end_mark
        for row in range(first.line, min(last.line + 1, len(self.lines))):
            line = self.lines[row][: last.column] if row == last.line else self.lines[row]
            column = first.column if row == first.line else 0
            while (column := line.find(part, column)) >= 0:
                if line[column - 1 : column] != "$":  # Not escaped.
                    return Mark(self.file, row + 1, column + 1, len(part))
                column += len(part)
        return None

    def mark_of(self, node: Any) -> Mark:
        """Return the place of a node or of an event of the parser, of the file for None."""
        if node is None:
            return Mark(self.file)
        start, end = node.start_mark, node.end_mark
        if start.line == end.line:
            length = end.column - start.column
        else:
            length = len(self.lines[start.line]) - start.column
        return Mark(self.file, start.line + 1, start.column + 1, max(1, length))


def _collected(node: yaml.MappingNode) -> dict[str, tuple[Node, Node]]:
    """Return own members, then merged ones. A mapping that merges itself is visited once."""
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


RESOURCE = "resource"
"""The label of the layer of a resource itself."""


class Layer(Struct, frozen=True, gc=False):
    """One source of a resource's fields: a part of a document with a label."""

    document: Document
    path: Path
    label: str

    @property
    def value(self) -> JSON:
        """The value of the layer."""
        return value_at(self.document.value, self.path)


class Places(Mapping[Path, Mark]):
    """The places of the fields of a merged resource, in the topmost layer that has each.

    Computed on demand, since few places of a large workspace are needed.
    """

    __slots__ = ("layers",)

    def __init__(self, layers: tuple[Layer, ...]) -> None:
        self.layers = layers

    def layer_of(self, path: Path) -> Layer | None:
        """Return the topmost layer that has a field."""
        for layer in self.layers:
            if value_at(layer.value, path) is not MISSING:
                return layer
            if any(value_at(layer.value, path[:end]) == UNSET for end in range(1, len(path))):
                return None
        return None

    def unset(self) -> Iterator[Path]:
        """Yield the paths at which any layer has `${unset}`."""
        for layer in self.layers:
            if layer.document.has_unset:
                yield from (path for path, value in leaves(layer.value) if value == UNSET)

    def source_of(self, path: Path) -> tuple[Layer, Path]:
        """Return the layer of a field, and the path itself or the nearest one above it there.

        A path below a reference to a list or a mapping is in no layer. The layer of the resource
        and an empty path are returned for a field that no layer has.
        """
        while path:
            layer = self.layer_of(path)
            if layer is not None:
                return layer, path
            path = path[:-1]
        return next((layer for layer in self.layers if layer.label == RESOURCE), self.layers[0]), ()

    def written(self, path: Path) -> JSON:
        """Return the value of a field, or of the nearest part above it, with its references."""
        layer, nearest = self.source_of(path)
        return value_at(layer.value, nearest) if nearest else MISSING

    def __getitem__(self, path: Path) -> Mark:
        layer = self.layer_of(path)
        if layer is None:
            raise KeyError(path)
        return layer.document.mark(layer.path + path)

    def key(self, path: Path) -> Mark:
        """Return the place of the key of a field, or of the nearest part above it."""
        layer, nearest = self.source_of(path)
        return layer.document.key_mark(layer.path + nearest)

    def near(self, path: Path, part: str | None = None) -> Mark:
        """Return the place of a field, or of the nearest part above it."""
        layer, nearest = self.source_of(path)
        return layer.document.mark(layer.path + nearest, part) if nearest else self.key(())

    def __iter__(self) -> Iterator[Path]:
        paths = (path for layer in self.layers for path, _ in walk(layer.value) if path)
        return iter(dict.fromkeys(paths))

    def __len__(self) -> int:
        return sum(1 for _ in self)
