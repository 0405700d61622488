"""Parts of a text to replace, and where the nodes of a YAML file are in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

import yaml
from yaml.nodes import Node

from reconciler.workspace.yaml.nodes import is_block_text

_ALIAS = re.compile(r"\s*:\s*(\*[\w-]+)")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)


class Span(NamedTuple):
    """A part of a text, by index."""

    start: int
    end: int


class Splice(NamedTuple):
    """A part of a text, and what replaces it."""

    start: int
    end: int
    text: str


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """Return a text with parts replaced, which do not overlap. At one place, order is kept."""
    parts: list[str] = []
    position = 0
    for splice in sorted(splices, key=lambda splice: (splice.start, splice.end)):
        parts += [text[position : splice.start], splice.text]
        position = max(position, splice.end)
    return "".join([*parts, text[position:]])


def line_starts(text: str) -> list[int]:
    """Return the index at which each line begins, and the length of the text."""
    return list(accumulate(map(len, text.splitlines(keepends=True)), initial=0))


def alias_of(text: str, key: Node, value: Node) -> Span | None:
    """Return the place of the alias that is the value of a key, None if it is no alias.

    The node of an alias is that of its anchor, which is above it.
    """
    if value.start_mark.index >= key.start_mark.index:
        return None
    match = _ALIAS.match(text, key.end_mark.index)
    return Span(*match.span(1)) if match is not None else Span(-1, -1)


def span_of(text: str, key: Node, value: Node) -> Span:
    """Return the place of the value of a key, for an empty one that below the colon."""
    alias = alias_of(text, key, value)
    if alias is not None:
        return alias
    start, end = value.start_mark.index, value.end_mark.index
    if isinstance(value, yaml.ScalarNode) and start == end:
        below = text.index(":", key.end_mark.index) + 1
        return Span(below, below)
    return Span(start, end)


def comments_in(text: str, start: int, end: int, scalars: Iterable[Node]) -> list[str]:
    """Return the comments between two indices. A # inside one of the scalars begins none."""
    spans = [(_text_start(text, scalar), scalar.end_mark.index) for scalar in scalars]
    comments: list[str] = []
    while (match := _COMMENT.search(text, start, end)) is not None:
        inside = [last for first, last in spans if first <= match.start() < last]
        start = max(inside) if inside else match.end()
        if not inside:
            comments.append(match[0].rstrip("\r"))
    return comments


def _text_start(text: str, scalar: Node) -> int:
    """Return where a scalar begins, below the line of | or >, which may have a comment."""
    start = int(scalar.start_mark.index)
    return text.find("\n", start) + 1 if is_block_text(scalar) else start
