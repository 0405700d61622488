"""Change items of a list in the text of a file: the others keep their lines and comments."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import orjson
import yaml
from msgspec import Struct
from yaml.nodes import Node

from reconciler.authoring.yaml_text import flow_text, yaml_text
from reconciler.model.values import JSON
from reconciler.workspace.yaml.document import is_block_text, nodes_in

_ALIAS = re.compile(r"\s*:\s*(\*[\w-]+)")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)
_OPTIONS = orjson.OPT_SORT_KEYS


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


_Inside: TypeAlias = Callable[[Node, JSON, JSON], list[Splice] | None]
"""Return what changes inside an item, None if it has to be written as a whole."""


class ListText(Struct, frozen=True):
    """Where a list is: the text of the file, the indices of its lines, and its line end."""

    text: str
    starts: Sequence[int]
    ending: str

    def splices(
        self, node: Node, have: Sequence[JSON], want: Sequence[JSON], inside: _Inside
    ) -> list[Splice] | None:
        """Return what changes in a list, None if it has to be written as a whole."""
        if not isinstance(node, yaml.SequenceNode) or not have or not want:
            return None
        items = node.value
        at = [item.start_mark.index for item in items]
        if at[0] < node.start_mark.index or at != sorted(set(at)):
            return None  # An alias has the node of its anchor.
        if not node.flow_style and not all(map(self._has_own_lines, items)):
            return None
        splices: list[Splice] = []
        changes = list(_changes(have, want))
        moved = {source for *_, added in changes for _, source in added if source is not None}
        lines = [self._lines_of(items, position, moved) for position in range(len(items))]
        for pairs, low, high, added in changes:
            for position, value in pairs:
                changed = self._changed(items[position], have[position], value, inside)
                if changed is None:
                    return None
                splices += changed
            if node.flow_style:
                splices += self._in_flow(items, low, high, [value for value, _ in added])
            else:
                splices += self._in_block(lines, low, high, added)
        removed = [splice for splice in splices if splice.end > splice.start]
        scalars = [item for item in nodes_in(node) if isinstance(item, yaml.ScalarNode)]
        if node.flow_style and any(
            comments_in(self.text, splice.start, splice.end, scalars) for splice in removed
        ):
            return None
        return splices

    def _changed(self, item: Node, have: JSON, want: JSON, inside: _Inside) -> list[Splice] | None:
        """Return what changes in an item, None if it cannot change in place."""
        if isinstance(item, yaml.CollectionNode):
            return inside(item, have, want)
        is_line = item.start_mark.line == item.end_mark.line
        return [Splice(_start(item), _end(item), flow_text(want))] if is_line else None

    def _has_own_lines(self, item: Node) -> bool:
        """Return whether an item begins its line after a dash, without text after | or >."""
        begin = self.starts[item.start_mark.line]
        before = self.text[begin : item.start_mark.index]
        return before.strip(" ") == "-" and not any(map(is_block_text, nodes_in(item)))

    def _in_flow(
        self, items: Sequence[Node], low: int, high: int, added: Sequence[JSON]
    ) -> Iterator[Splice]:
        """Yield the changes of `[a, b]`."""
        for item in range(low, high):
            if high == len(items):
                yield Splice(_end(items[item - 1]), _end(items[item]), "")
            else:
                yield Splice(_start(items[item]), _start(items[item + 1]), "")
        texts = [flow_text(value) for value in added]
        if texts and low:
            at = _end(items[low - 1])
            yield Splice(at, at, "".join(f", {text}" for text in texts))
        elif texts:
            at = _start(items[0])
            yield Splice(at, at, "".join(f"{text}, " for text in texts))

    def _in_block(
        self, lines: Sequence[tuple[int, int]], low: int, high: int, added: Sequence[_Added]
    ) -> Iterator[Splice]:
        """Yield the changes of a list with a dash before each item.

        An item that moves keeps its lines, with the comments above it and beside it.
        """
        for begin, end in lines[low:high]:
            yield Splice(self.starts[begin], self.starts[end], "")
        line = lines[low - 1][1] if low else lines[0][0]
        begin = self.starts[lines[0][0]]
        margin = self.text[begin : self.text.index("-", begin)]
        is_open = line == len(self.starts) - 1 and not self.text.endswith(("\n", "\r"))
        for value, source in added:
            if source is None:
                shown = self._block_text(value, margin)
            else:
                first, last = lines[source]
                shown = self.text[self.starts[first] : self.starts[last]].rstrip("\r\n")
                shown += self.ending
            yield Splice(
                self.starts[line], self.starts[line], f"{self.ending}{shown}" if is_open else shown
            )
            is_open = False

    def _block_text(self, value: JSON, margin: str) -> str:
        """Return the lines of a new item."""
        lines = yaml_text([value]).splitlines() if isinstance(value, dict) else ()
        shown = "".join(f"{margin}{text}{self.ending}" for text in lines)
        return shown or f"{margin}- {flow_text(value)}{self.ending}"

    def _lines_of(
        self, items: Sequence[Node], position: int, moved: Collection[int]
    ) -> tuple[int, int]:
        """Return the first line of an item and the line below it.

        The comments above one that moves are part of it. Those above the first item may be about
        the list, and those above one that is removed about the items below.
        """
        line = items[position].start_mark.line
        first = _line_after(items[position - 1]) if position and position in moved else line
        while line > first and self._is_comment(line - 1):
            line -= 1
        return line, _line_after(items[position])

    def _is_comment(self, line: int) -> bool:
        return self.text[self.starts[line] : self.starts[line + 1]].lstrip().startswith("#")


_Added: TypeAlias = tuple[JSON, int | None]
"""A value to add, and the position of the item that moves there, None for a new one."""
_Change: TypeAlias = tuple[list[tuple[int, JSON]], int, int, Sequence[_Added]]


def _changes(have: Sequence[JSON], want: Sequence[JSON]) -> Iterator[_Change]:
    """Yield the items that change in place, the range of those to remove, and those to add.

    An item that moves does not change in place: what a comment says of it would be at another.
    """
    before, after = (
        [orjson.dumps(item, option=_OPTIONS) for item in side] for side in (have, want)
    )
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    removed = [position for _, low, high, *_ in changes for position in range(low, high)]
    for _, low, high, new_low, new_high in changes:
        added: list[_Added] = []
        for position in range(new_low, new_high):
            source = next((old for old in removed if before[old] == after[position]), None)
            if source is not None:
                removed.remove(source)
            added.append((want[position], source))
        moves = any(source is not None for _, source in added)
        left = {*before[low:high]} & {*after}
        common = 0 if moves or left else min(high - low, new_high - new_low)
        pairs = [(low + step, want[new_low + step]) for step in range(common)]
        yield pairs, low + common, high, added[common:]


def _line_after(item: Node) -> int:
    """Return the line below the last value of an item, above comments."""
    leaves = [
        node
        for node in nodes_in(item)
        if not isinstance(node, yaml.CollectionNode) or node.flow_style
    ]
    return max(int(node.end_mark.line) for node in leaves) + 1


def _start(node: Node) -> int:
    """Return the index at which a node begins."""
    return int(node.start_mark.index)


def _end(node: Node) -> int:
    """Return the index at which a node ends."""
    return int(node.end_mark.index)
