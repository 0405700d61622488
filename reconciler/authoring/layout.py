"""The lines of a YAML file by the keys that they belong to: what `fmt` and `import` edit.

Files are edited as text, entry by entry, and never written again from values: whatever is not
touched stays as it was, byte for byte, comments and quotes included. An entry of a block mapping
is the comment lines above its key, and all lines down to the next entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml

from reconciler.workspace.yaml.document import Document, Node

STEP = 2
_KEEPS_BLANKS = re.compile(r"[|>][0-9]*\+")
"""A block of text that says that the blank lines below are part of it."""
_TELLS_INDENT = re.compile(r"[|>][-+]?[0-9]")
_ITEM = re.compile(r"\s*#\s*-\s")
_PINNED = ("# yaml-language-server:", "---", "%")
"""Lines that stay at the top of a file, whatever is moved below."""


@dataclass(frozen=True, slots=True)
class Entry:
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


@dataclass(frozen=True, slots=True)
class Block:
    """A block mapping: its entries, and the lines after the last one that are still its own."""

    entries: tuple[Entry, ...]
    column: int
    footer: int
    end: int


def block_of(node: Node | None, lines: Sequence[str], *, start: int, end: int) -> Block | None:
    """The entries of a mapping between two lines; None where it is no plain block mapping.

    That is so for flow style, explicit keys (`? key`), and aliases, whose text is elsewhere.
    """
    if not isinstance(node, yaml.MappingNode) or node.flow_style or not node.value:
        return None
    keys = [key for key, _ in node.value]
    column = keys[0].start_mark.column
    at = [key.start_mark.line for key in keys]
    if not _plain(keys, lines, column) or at != sorted(set(at)) or at[0] < start or at[-1] >= end:
        return None
    entries: list[Entry] = []
    begin = start
    for position, (key, value) in enumerate(node.value):
        limit = at[position + 1] if position + 1 < len(keys) else end
        body_end = _body_end(value, lines, line=at[position], limit=limit)
        until = _with_own_comments(value, lines, column, start=body_end, end=limit)
        entries.append(Entry(key, value, begin, at[position], body_end, until))
        begin = until
    return Block(tuple(entries), column, begin, end)


def _plain(keys: Sequence[Node], lines: Sequence[str], column: int) -> bool:
    return all(
        isinstance(key, yaml.ScalarNode)
        and key.start_mark.column == column
        and key.end_mark.line == key.start_mark.line
        and not lines[key.start_mark.line][:column].strip()
        and not lines[key.start_mark.line][column:].startswith(("? ", "&", "!", "*"))
        for key in keys
    )


def _body_end(value: Node, lines: Sequence[str], *, line: int, limit: int) -> int:
    """The line after the last one that is neither blank nor a comment."""
    end = limit
    while end > line + 1 and is_aside(lines[end - 1]):
        end -= 1
    leaf = _last_leaf(value)
    mark = leaf.end_mark
    # An alias is the node of its anchor: its marks are elsewhere and say nothing.
    if line <= leaf.start_mark.line < limit:
        ended = (
            mark.line if mark.column == 0 and mark.line > leaf.start_mark.line else mark.line + 1
        )
        least = _least_indent(lines, leaf)
        while ended > line + 1 and _is_empty(lines[ended - 1], least):
            ended -= 1
        end = max(end, min(ended, limit))
    return end


def _least_indent(lines: Sequence[str], leaf: Node) -> int:
    """Blanks up to which a line below a block of text is no part of it; -1 if every line is."""
    header = lines[leaf.start_mark.line]
    if not isinstance(leaf, yaml.ScalarNode) or leaf.style not in ("|", ">"):
        return -1
    if _KEEPS_BLANKS.search(header):
        return -1
    if tells_indent(header):
        # The text may begin further left than any line of it.
        return 0
    text = (lines[number] for number in _lines_of_text(leaf) if number < len(lines))
    return min((indent_of(line) for line in text if line.strip()), default=0)


def tells_indent(header: str) -> bool:
    """Whether the first line of a block of text says how far the text is indented."""
    return _TELLS_INDENT.search(header) is not None


def _is_empty(line: str, least: int) -> bool:
    return not line.strip() and len(line) <= least


def _last_leaf(node: Node) -> Node:
    while isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return node


def _with_own_comments(
    value: Node, lines: Sequence[str], column: int, *, start: int, end: int
) -> int:
    """Comments that are indented more than the next key belong to what is above them.

    So do items of a list that are commented out, where the list is indented no more than its key.
    """
    is_list = (
        isinstance(value, yaml.SequenceNode)
        and not value.flow_style
        and value.start_mark.column == column
    )
    until = start
    for line in range(start, end):
        text = lines[line]
        if text.strip():
            if indent_of(text) <= column and not (is_list and _ITEM.match(text)):
                break
            until = line + 1
    return until


def head_of(lines: Sequence[str], first_key: int) -> int:
    """How many lines are the head of the file, above the comment of its first key.

    The head ends with the last blank line, or with a line that has to stay at the top.
    """
    for line in range(first_key - 1, -1, -1):
        if not lines[line].strip() or lines[line].startswith(_PINNED):
            return line + 1
    return 0


def content_end(lines: Sequence[str]) -> int:
    """The line of `...`, which ends a document, or how many lines there are."""
    for line in range(len(lines) - 1, -1, -1):
        if lines[line].startswith("...") and not lines[line][3:4].strip():
            return line
        if not is_aside(lines[line]):
            break
    return len(lines)


def trimmed(document: Document) -> tuple[str, ...]:
    """Return the lines of a document without whitespace at their ends that is no text."""
    kept = {line for scalar in _scalars(document.node) for line in _lines_of_text(scalar)}
    return tuple(
        line if number in kept else line.rstrip(" \t") for number, line in enumerate(document.lines)
    )


def _scalars(root: Node | None) -> Iterator[yaml.ScalarNode]:
    """Every scalar once, although aliases put a node into several places."""
    seen: set[int] = set()
    left = [root] if root is not None else []
    while left:
        node = left.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            yield node
        elif isinstance(node, yaml.MappingNode):
            left.extend(part for pair in node.value for part in pair)
        else:
            left.extend(node.value)


def _lines_of_text(scalar: yaml.ScalarNode) -> range:
    """Return the lines at whose ends whitespace may be part of a text."""
    start, end = scalar.start_mark.line, scalar.end_mark.line
    if scalar.style in ("|", ">"):
        return range(start + 1, end + 1 if scalar.end_mark.column else end)
    return range(start, end) if scalar.style in ("'", '"') else range(0)


def line_end(raw: bytes) -> str:
    """The line end of the first line, which a file gets on every line that is written."""
    return "\r\n" if raw.partition(b"\n")[0].endswith(b"\r") else "\n"


def is_aside(line: str) -> bool:
    """Whether a line is blank or a comment."""
    text = line.strip()
    return not text or text.startswith("#")


def indent_of(line: str) -> int:
    """Return how many spaces a line begins with."""
    return len(line) - len(line.lstrip(" "))


def shifted(lines: Sequence[str], by: int) -> list[str]:
    """Lines moved to the right, or to the left as far as there are spaces."""
    if by >= 0:
        return [" " * by + line if line else line for line in lines]
    return [line[min(-by, indent_of(line)) :] for line in lines]
