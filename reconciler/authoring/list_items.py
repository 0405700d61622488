"""Change items of a list in the text of a file: the others keep their lines and comments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

import orjson
import yaml
from msgspec import Struct
from yaml.nodes import Node

from reconciler.authoring.splices import Splice, comments_in
from reconciler.authoring.yaml_text import flow_text, yaml_text
from reconciler.model.values import JSON
from reconciler.workspace.yaml.nodes import is_block_text, nodes_in

_OPTIONS = orjson.OPT_SORT_KEYS
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
