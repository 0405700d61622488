"""Block mappings of a file: the lines of each key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import yaml
from msgspec import Struct
from yaml.nodes import Node

from reconciler.files.yaml.document import is_block_text

_KEEPS_EMPTY_LINES = re.compile(r"[|>][0-9]*\+")
"""The header of a block scalar that includes the blank lines below."""
_NOT_PLAIN = ("&", "!", "*", "? ")
"""What a key begins with that is not only its text."""


class Entry(NamedTuple):
    """One key of a block mapping. Lines count from 0, `end` is exclusive.

    `start` is the first of the comment and blank lines above the key, `line` that of the key.
    From `body_end` to `end` there are comments that are indented more than the key.
    """

    key: Node
    value: Node
    start: int
    line: int
    body_end: int
    end: int

    @property
    def name(self) -> str:
        """The key as text."""
        return str(self.key.value)

    @property
    def below(self) -> int:
        """The line after that of the key."""
        return self.line + 1


class Block(Struct, frozen=True):
    """A block mapping: its entries, and the lines after the last one that are still its own."""

    entries: tuple[Entry, ...]
    column: int
    footer: int


def block_of(node: Node | None, lines: Sequence[str], *, start: int, end: int) -> Block | None:
    """Return the entries of a mapping between two lines, None if it is not a plain block mapping.

    Flow style, explicit keys (`? key`) and aliases, whose text is elsewhere, are not.
    """
    if not isinstance(node, yaml.MappingNode) or node.flow_style or not node.value:
        return None
    column = node.value[0][0].start_mark.column
    at = [key.start_mark.line for key, _ in node.value]
    if at[0] < start or at[-1] >= end or at != sorted(set(at)):
        return None
    entries: list[Entry] = []
    begin = start
    for (key, value), line, limit in zip(node.value, at, [*at[1:], end], strict=True):
        if not _is_plain(key, lines[line], column):
            return None
        body_end = until = limit
        if limit > line + 1:
            body_end = _body_end(value, lines, line=line, limit=limit)
            until = _with_own_comments(lines, column, start=body_end, end=limit)
        entries.append(Entry(key, value, begin, line, body_end, until))
        begin = until
    return Block(tuple(entries), column, begin)


def _is_plain(key: Node, line: str, column: int) -> bool:
    """Return whether a key is the first text of its line, in a column, and ends in that line."""
    start = key.start_mark
    return (
        key.__class__ is yaml.ScalarNode
        and start.column == column
        and key.end_mark.line == start.line
        and not line[:column].strip()
        and not line.startswith(_NOT_PLAIN, column)
    )


def _body_end(value: Node, lines: Sequence[str], *, line: int, limit: int) -> int:
    """Return the line after the last one that is neither blank nor a comment."""
    end = limit
    while end > line + 1 and is_blank_or_comment(lines[end - 1]):
        end -= 1
    leaf = _last_leaf(value)
    mark = leaf.end_mark
    # An alias has the node of its anchor, whose marks are elsewhere.
    if line <= leaf.start_mark.line < limit:
        ended = (
            mark.line if mark.column == 0 and mark.line > leaf.start_mark.line else mark.line + 1
        )
        keeps = not is_block_text(leaf) or _KEEPS_EMPTY_LINES.search(lines[leaf.start_mark.line])
        while ended > line + 1 and not lines[ended - 1] and not keeps:
            ended -= 1
        end = max(end, min(ended, limit))
    return end


def _last_leaf(node: Node) -> Node:
    while isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return node


def _with_own_comments(lines: Sequence[str], column: int, *, start: int, end: int) -> int:
    """Return the end of the comments that belong to the value above: indented more than its key."""
    until = start
    for line in range(start, end):
        text = lines[line]
        if text.strip():
            if indent_of(text) <= column:
                break
            until = line + 1
    return until


def content_end(lines: Sequence[str]) -> int:
    """Return the line of `...`, which ends a document, or the number of lines."""
    for line in range(len(lines) - 1, -1, -1):
        if lines[line].startswith("...") and not lines[line][3:4].strip():
            return line
        if not is_blank_or_comment(lines[line]):
            break
    return len(lines)


def line_end(raw: bytes) -> str:
    """Return the line end of the first line, which is used for all lines."""
    return "\r\n" if raw.partition(b"\n")[0].endswith(b"\r") else "\n"


def is_blank_or_comment(line: str) -> bool:
    """Return whether a line is blank or a comment."""
    text = line.strip()
    return not text or text.startswith("#")


def indent_of(line: str) -> int:
    """Return the number of leading spaces of a line."""
    return len(line) - len(line.lstrip(" "))
