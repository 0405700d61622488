"""Compose YAML nodes with PyYAML's C parser, with a fast tag resolver and a limit of depth.

Nodes are not kept, since they take most of the memory: `Document` composes again to find places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reconciler.workspace.limits import MAX_DEPTH, MAX_NODES

if TYPE_CHECKING:
    Parser = yaml.SafeLoader
else:
    Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

PREFIX = "tag:yaml.org,2002:"
TEXT_TAG = f"{PREFIX}str"
NULL_TAG = f"{PREFIX}null"
MERGE_TAG = f"{PREFIX}merge"
SEQUENCE_TAG = f"{PREFIX}seq"
MAPPING_TAG = f"{PREFIX}map"
_MAX_DEPTH = 200
"""Levels at which composing stops. The C parser would overflow its stack and crash."""
_RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
_NUMBER_IN_1_2 = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+")
NOT_ALWAYS_TEXT = frozenset("yYnNtTfFoO0123456789+-.~<=")
"""First characters of plain scalars that may not be text."""


TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
TOO_MANY = f"more than {MAX_NODES:,} values"


class TooDeep(Exception):
    """Composing stopped at a line and column, counted from 1."""


class TooMany(Exception):
    """Composing stopped at a line and column, counted from 1: too many nodes."""


class _Loader(Parser):
    """The parser. Tags are cached within a file, since keys and words repeat."""

    depth = 0
    nodes = 0

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.tags: dict[str, str] = {"": NULL_TAG}

    def descend_resolver(self, parent: Node, index: Any) -> None:  # noqa: ARG002
        """Enter a node. Called by PyYAML."""
        self.depth += 1
        self.nodes += 1
        if self.depth > _MAX_DEPTH:
            raise TooDeep(parent.start_mark.line + 1, parent.start_mark.column + 1)
        if self.nodes > MAX_NODES:
            raise TooMany(parent.start_mark.line + 1, parent.start_mark.column + 1)

    def ascend_resolver(self) -> None:
        """Leave a node. Called by PyYAML."""
        self.depth -= 1

    def resolve(self, kind: type[Node], value: str | None, implicit: Any) -> str:
        """Return the tag of a node without one. Numbers of YAML 1.2 are numbers."""
        if kind is not ScalarNode:
            return SEQUENCE_TAG if kind is SequenceNode else MAPPING_TAG
        if value is None or not implicit[0] or (value and value[0] not in NOT_ALWAYS_TEXT):
            return TEXT_TAG
        tag = self.tags.get(value)
        if tag is None:
            tag = self.tags[value] = tag_of(value)
        return tag


def tag_of(text: str) -> str:
    """Return the tag of a plain scalar that is not empty."""
    for tag, pattern in _RESOLVERS.get(text[0], ()):
        if pattern.match(text):
            return str(tag)
    if text in ("y", "n", "Y", "N"):
        return f"{PREFIX}bool"
    return f"{PREFIX}float" if _NUMBER_IN_1_2.fullmatch(text) else TEXT_TAG


def compose(text: str) -> Node | None:
    """Return the root node of a text, None for an empty one.

    Raises yaml.YAMLError, TooDeep, TooMany, and RecursionError where PyYAML has no C parser.
    """
    return yaml.compose(text, Loader=_Loader)


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


def is_block_list(node: Node) -> bool:
    """Return whether a node is a list with a dash before each item."""
    return isinstance(node, SequenceNode) and not node.flow_style
