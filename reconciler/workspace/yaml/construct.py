"""Construct values from YAML nodes in one pass, and report ambiguous YAML.

`events` reads most files. Text, the usual case, is handled inline.
"""

from __future__ import annotations

import re
from typing import Unpack

from msgspec import Struct, field
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reconciler.diagnostics import Details, DiagnosticCollector
from reconciler.model.values import JSON, MISSING, holds_reference, walk
from reconciler.workspace.sources import MAX_DEPTH, MAX_NODES
from reconciler.workspace.yaml.document import (
    DECIMAL,
    FLOAT,
    LONG,
    MERGE_TAG,
    NUMERIC,
    PREFIX,
    TEXT_TAG,
    TOO_DEEP,
    TOO_MANY,
    Document,
    Unknown,
    tagged_value,
)

_BOOLEAN_WORDS = {"yes": True, "on": True, "y": True, "no": False, "off": False, "n": False}
_COMMENT_AS_VALUE = re.compile(r"\s+#\w")


class Constructor(Struct):
    """The values of one file, and what is known after the last one."""

    places: Document
    problems: DiagnosticCollector
    nodes: int = 0
    above: set[int] = field(default_factory=set)
    gave_up: bool = False
    wraps: bool = False
    """Whether a list or mapping in brackets takes more than one line."""
    reported: set[tuple[int, str]] = field(default_factory=set)
    merged: dict[int, tuple[JSON, int]] = field(default_factory=dict)
    """The values of merged mappings, and how many values are in them: chains are read once."""

    def error(self, code: str, message: str, node: Node, **details: Unpack[Details]) -> None:
        """Report an error once, however many aliases the node has."""
        if (id(node), code) not in self.reported:
            self.reported.add((id(node), code))
            details["at"] = self.places.mark_of(node)
            self.problems.error(code, message, **details)

    def value(self, node: Node, depth: int) -> JSON:
        """Return the value of a node. Errors go to `problems`."""
        if node.__class__ is ScalarNode:
            return node.value if node.tag == TEXT_TAG else self._scalar(node)
        tag = "map" if isinstance(node, MappingNode) else "seq"
        if not self._bounded(node, depth) or not self._check_tag(node, tag):
            return Unknown()
        self.above.add(id(node))
        value: JSON
        if isinstance(node, MappingNode):
            value = self._mapping(node, depth)
        else:
            value = [self.value(item, depth + 1) for item in node.value]
        self.above.discard(id(node))
        return value

    def _bounded(self, node: Node, depth: int) -> bool:
        """Return whether to construct a node: not if it contains itself or exceeds a limit."""
        self.nodes += len(node.value) + 1
        if getattr(node, "flow_style", False) and node.start_mark.line != node.end_mark.line:
            self.wraps = True
        if self.gave_up:
            return False
        if id(node) in self.above:
            self.error("recursive-alias", "alias contains itself", node)
            return False
        if depth > MAX_DEPTH:
            self.error("too-deep", TOO_DEEP, node)
            return False
        if self.nodes > MAX_NODES:
            self.error("alias-bomb", f"{TOO_MANY} after aliases are expanded", node)
            self.gave_up = True
        return not self.gave_up

    def _check_tag(self, node: Node, expected: str) -> bool:
        if node.tag == f"{PREFIX}{expected}":
            return True
        self.error("unknown-tag", f"unknown tag {node.tag.replace(PREFIX, '!!')}", node)
        return False

    def _mapping(self, node: MappingNode, depth: int) -> JSON:
        misread = False
        own: dict[str, JSON] = {}
        merged: dict[str, JSON] = {}
        for key_node, value_node in node.value:
            key: str | None
            if (
                key_node.__class__ is ScalarNode
                and key_node.tag == TEXT_TAG
                and "$" not in key_node.value
            ):
                key = key_node.value
            elif key_node.tag == MERGE_TAG:
                self._merge(value_node, depth, into=merged)
                continue
            else:
                key = self._key(key_node)
                if key is None:
                    misread = True
                    continue
            if key in own:
                self._report_duplicate(node, key_node)
            elif value_node.__class__ is ScalarNode and value_node.tag == TEXT_TAG:
                own[key] = value_node.value
            else:
                own[key] = self.value(value_node, depth + 1)
        if misread and not own and not merged:
            return Unknown()
        return {**merged, **own} if merged else own

    def _report_duplicate(self, node: MappingNode, again: ScalarNode) -> None:
        first, _ = self.places.members(node)[again.value]
        self.error(
            "duplicate-key",
            f"duplicate key '{again.value}'",
            again,
            related=((self.places.mark_of(first), "first defined here"),),
        )

    def _merge(self, node: Node, depth: int, *, into: dict[str, JSON]) -> None:
        """Add the members of a merge key. Earlier sources take precedence."""
        for source in node.value if node.__class__ is SequenceNode else [node]:
            value = self._merged(source, depth)
            if isinstance(value, dict):
                for key, item in value.items():
                    into.setdefault(key, item)
            elif not isinstance(value, Unknown):
                self.error(
                    "bad-merge", "a merge key must have a mapping, or a list of mappings", source
                )

    def _merged(self, source: Node, depth: int) -> JSON:
        if id(source) not in self.merged:
            value = self.value(source, depth + 1)
            if id(source) not in self.above and not self.gave_up:
                self.merged[id(source)] = value, sum(1 for _ in walk(value))
            return value
        value, nodes = self.merged[id(source)]
        self.nodes += nodes - len(source.value) - 1  # Which `_bounded` counts.
        return value if self._bounded(source, depth) else Unknown()

    def _key(self, node: Node) -> str | None:
        if node.__class__ is not ScalarNode:
            self.error(
                "bad-key",
                "a key must be text, not a list or a mapping",
                node,
                hint="quote a value that starts with { or [; for templates such as {{ … }}, use "
                "${var:NAME}",
            )
            return None
        key = str(node.value)
        if node.tag != TEXT_TAG and not node.style and key.lower() not in ("y", "n"):
            if key.lower() not in _BOOLEAN_WORDS:
                shown = key or "null"
                self.error(
                    "bad-key", f"key {shown} must be text", node, hint=f"quote it: '{shown}'"
                )
                return None
            self.error(
                "ambiguous-boolean",
                f"ambiguous key {key}: some YAML readers take it for true or false",
                node,
                hint=f"quote it: '{key}'",
            )
        if holds_reference(key):
            self.error("reference-in-key", "a key must not contain a reference", node)
        return key

    def _scalar(self, node: ScalarNode) -> JSON:
        """Return the value of a scalar that is not text."""
        kind = node.tag.removeprefix(PREFIX)
        text = str(node.value)
        word = text.lower()
        if node.style:
            return text if self._check_tag(node, "str") else Unknown()
        if kind == "null" and not text:
            return self._empty(node)
        value = tagged_value(node.tag, text)
        if value is not MISSING:
            return value
        if kind in ("int", "float") and NUMERIC.fullmatch(text):
            self._report_number(text, node)
        elif kind == "bool" and word in _BOOLEAN_WORDS:
            boolean = str(_BOOLEAN_WORDS[word]).lower()
            self.error(
                "ambiguous-boolean",
                f"ambiguous value {text}: some YAML readers take it for {boolean}, others for text",
                node,
                hint=f"write {boolean}, or quote it: '{text}'",
            )
        else:
            self._check_tag(node, "str")
        return Unknown()

    def _empty(self, node: ScalarNode) -> JSON:
        """Return null for an empty value, unless it is text such as #1, which is a comment."""
        mark = node.start_mark
        lines = self.places.lines
        rest = lines[mark.line][mark.column :].rstrip() if mark.line < len(lines) else ""
        if not _COMMENT_AS_VALUE.match(rest):
            return None
        code, quoted = "ambiguous-yaml", rest.lstrip() if "'" in rest else f"'{rest.lstrip()}'"
        self.error(
            code,
            "no value: # begins a comment",
            node,
            hint=f"quote it: {quoted}; write a space after # in a comment",
        )
        return None if code in self.problems.lenient else Unknown()

    def _report_number(self, text: str, node: ScalarNode) -> None:
        shown = text if len(text) < LONG else f"{text[:LONG]}…"
        if DECIMAL.fullmatch(text):
            self.error(
                "not-a-number",
                f"whole number {shown} does not fit into 64 bits",
                node,
                hint="quote it if it is text",
            )
        elif FLOAT.fullmatch(text) or text.lower().lstrip("+-") in (".inf", ".nan"):
            self.error(
                "not-a-number",
                f"JSON cannot hold the number {shown}",
                node,
                hint="write a finite number, or quote it if it is text",
            )
        else:
            self.error(
                "ambiguous-number",
                f"ambiguous number {shown}: YAML readers interpret it differently",
                node,
                hint=f"write it as a decimal number, or quote it: '{shown}'",
            )
