"""Change items of a list in the text of a file: the others keep their lines and comments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import orjson
import yaml

from reconciler.authoring.splices import Splice
from reconciler.authoring.yaml_text import flow_text
from reconciler.model.values import JSON
from reconciler.workspace.yaml.document import Node

_OPTIONS = orjson.OPT_SORT_KEYS


def list_splices(
    node: Node, have: Sequence[JSON], want: Sequence[JSON], starts: Sequence[int], ending: str
) -> Iterator[Splice] | None:
    """Return what changes in a list, None if it has to be written as a whole.

    `starts` are the indices of the lines of the text.
    """
    if not isinstance(node, yaml.SequenceNode) or not have or not want:
        return None
    items = node.value
    is_simple = all(
        isinstance(item, yaml.ScalarNode) and item.start_mark.line == item.end_mark.line
        for item in items
    )
    lines = [item.start_mark.line for item in items]
    if not is_simple or lines[0] < node.start_mark.line or lines != sorted(lines):
        return None
    if node.flow_style:
        return _in_flow(items, have, want)
    is_indented = all(item.start_mark.column > node.start_mark.column for item in items)
    if not is_indented or len(set(lines)) < len(lines):
        return None
    return _in_block(node, have, want, starts, ending)


def _in_flow(items: Sequence[Node], have: Sequence[JSON], want: Sequence[JSON]) -> Iterator[Splice]:
    """Yield the changes of `[a, b]`."""
    for same, low, high, new_low, new_high in _changes(have, want):
        for item, value in same:
            yield Splice(_start(items[item]), _end(items[item]), flow_text(want[value]))
        for item in range(low, high):
            if high == len(items):
                yield Splice(_end(items[item - 1]), _end(items[item]), "")
            else:
                yield Splice(_start(items[item]), _start(items[item + 1]), "")
        added = [flow_text(want[value]) for value in range(new_low, new_high)]
        if added and low:
            at = _end(items[low - 1])
            yield Splice(at, at, "".join(f", {text}" for text in added))
        elif added:
            at = _start(items[0])
            yield Splice(at, at, "".join(f"{text}, " for text in added))


def _in_block(
    node: Node, have: Sequence[JSON], want: Sequence[JSON], starts: Sequence[int], ending: str
) -> Iterator[Splice]:
    """Yield the changes of a list with an item in each line."""
    items, margin = node.value, " " * node.start_mark.column
    for same, low, high, new_low, new_high in _changes(have, want):
        for item, value in same:
            yield Splice(_start(items[item]), _end(items[item]), flow_text(want[value]))
        for item in range(low, high):
            line = items[item].start_mark.line
            yield Splice(starts[line], starts[line + 1], "")
        line = items[low - 1].start_mark.line + 1 if low else items[0].start_mark.line
        for value in range(new_low, new_high):
            yield Splice(starts[line], starts[line], f"{margin}- {flow_text(want[value])}{ending}")


_Change = tuple[list[tuple[int, int]], int, int, int, int]


def _changes(have: Sequence[JSON], want: Sequence[JSON]) -> Iterator[_Change]:
    """Yield the items that are replaced in place, then the ranges of old and new ones."""
    before, after = (
        [orjson.dumps(item, option=_OPTIONS) for item in side] for side in (have, want)
    )
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, low, high, new_low, new_high in matcher.get_opcodes():
        if tag == "equal":
            continue
        common = min(high - low, new_high - new_low)
        same = [(low + step, new_low + step) for step in range(common)]
        yield same, low + common, high, new_low + common, new_high


def _start(node: Node) -> int:
    """Return the index at which a node begins."""
    return int(node.start_mark.index)


def _end(node: Node) -> int:
    """Return the index at which a node ends."""
    return int(node.end_mark.index)
