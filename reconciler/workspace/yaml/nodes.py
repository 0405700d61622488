"""Text to nodes: PyYAML's C parser, with an eye of its own for plain text and a bound on depth.

The first step of reading a file (`loader`). `Document` composes a file a second time when it is
asked for places, which happens where something is wrong, so that it need not keep all the nodes
of a large workspace: they are most of what it would take in memory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml
from yaml.nodes import Node, ScalarNode, SequenceNode

if TYPE_CHECKING:
    from yaml import SafeLoader as _Parser
else:
    _Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

PREFIX = "tag:yaml.org,2002:"
TEXT_TAG = f"{PREFIX}str"
MERGE_TAG = f"{PREFIX}merge"
_SEQUENCE_TAG = f"{PREFIX}seq"
_MAPPING_TAG = f"{PREFIX}map"
_MAX_DEPTH = 200
"""Levels at which composing stops: the C parser would overflow its stack, and the process die."""
_RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
_NUMBER_IN_1_2 = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+")
_TELLING = frozenset("yYnNtTfFoO0123456789+-.~<=")
"""First characters of plain text that may be something else than text."""


class TooDeep(Exception):
    """Composing stopped at a place: line and column, from 1."""


class _Loader(_Parser):
    """The parser. Tags are remembered within a file, since keys and words repeat."""

    depth = 0

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.tags: dict[str, str] = {"": f"{PREFIX}null"}

    def descend_resolver(self, parent: Node, index: Any) -> None:  # noqa: ARG002
        """Called on the way into each node."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise TooDeep(parent.start_mark.line + 1, parent.start_mark.column + 1)

    def ascend_resolver(self) -> None:
        """Called on the way out."""
        self.depth -= 1

    def resolve(self, kind: type[Node], value: str | None, implicit: Any) -> str:
        """The tag of a node that has none. What YAML 1.2 takes for a number has its tag."""
        if kind is not ScalarNode:
            return _SEQUENCE_TAG if kind is SequenceNode else _MAPPING_TAG
        if value is None or not implicit[0] or (value and value[0] not in _TELLING):
            return TEXT_TAG
        tag = self.tags.get(value)
        if tag is None:
            tag = self.tags[value] = _tag_of(value)
        return tag


def _tag_of(text: str) -> str:
    for tag, pattern in _RESOLVERS.get(text[0], ()):
        if pattern.match(text):
            return str(tag)
    if text in ("y", "n", "Y", "N"):
        return f"{PREFIX}bool"
    return f"{PREFIX}float" if _NUMBER_IN_1_2.fullmatch(text) else TEXT_TAG


def compose(text: str) -> Node | None:
    """The nodes of the one document of a text; None for an empty one.

    Raises yaml.YAMLError, TooDeep, and RecursionError where PyYAML has no C parser.
    """
    return yaml.compose(text, Loader=_Loader)
