"""Compose YAML nodes with PyYAML's C parser, with a fast tag resolver and a limit of depth.

Nodes are not kept, since they take most of the memory: `Document` composes again to find places.
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
"""Levels at which composing stops. The C parser would overflow its stack and crash."""
_RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
_NUMBER_IN_1_2 = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+")
_NOT_ALWAYS_TEXT = frozenset("yYnNtTfFoO0123456789+-.~<=")
"""First characters of plain scalars that may not be text."""


class TooDeep(Exception):
    """Composing stopped at a line and column, counted from 1."""


class _Loader(_Parser):
    """The parser. Tags are cached within a file, since keys and words repeat."""

    depth = 0

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.tags: dict[str, str] = {"": f"{PREFIX}null"}

    def descend_resolver(self, parent: Node, index: Any) -> None:  # noqa: ARG002
        """Enter a node. Called by PyYAML."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise TooDeep(parent.start_mark.line + 1, parent.start_mark.column + 1)

    def ascend_resolver(self) -> None:
        """Leave a node. Called by PyYAML."""
        self.depth -= 1

    def resolve(self, kind: type[Node], value: str | None, implicit: Any) -> str:
        """Return the tag of a node without one. Numbers of YAML 1.2 are numbers."""
        if kind is not ScalarNode:
            return _SEQUENCE_TAG if kind is SequenceNode else _MAPPING_TAG
        if value is None or not implicit[0] or (value and value[0] not in _NOT_ALWAYS_TEXT):
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
    """Return the root node of a text, None for an empty one.

    Raises yaml.YAMLError, TooDeep, and RecursionError where PyYAML has no C parser.
    """
    return yaml.compose(text, Loader=_Loader)
