"""Add a name to `lifecycle.renamed_from` of a resource, in the text of its file."""

from __future__ import annotations

from collections.abc import Sequence

import yaml
from yaml.nodes import Node

from reconciler.authoring.layout import STEP, Block, block_of, content_end, line_end
from reconciler.authoring.yaml_text import yaml_item
from reconciler.diagnostics import DiagnosticCollector
from reconciler.model.schema_files import common_properties
from reconciler.model.values import Path
from reconciler.workspace.yaml.loader import parse
from reconciler.workspace.yaml.nodes import is_block_list

_LIFECYCLE, _RENAMED_FROM = "lifecycle", "renamed_from"
_BELOW = frozenset(list(common_properties())[list(common_properties()).index(_LIFECYCLE) :])
"""The fields that the order of the reference places at or below `lifecycle`."""


def with_former_name(text: str, path: Path, name: str) -> str | None:
    """Return a file in which the resource at a path has a former name, None for odd layouts.

    `name` is as the file has it: references in it are not escaped.
    """
    raw = text.encode()
    document = parse(raw, "", DiagnosticCollector(), keep_nodes=True)
    names = f"{_RENAMED_FROM}: [{yaml_item(name)}]"
    lifecycle = _member(_at(document.node, path), _LIFECYCLE)
    former = _member(lifecycle, _RENAMED_FROM)
    if former is not None:
        return _with_item(text, former, yaml_item(name))
    if lifecycle is not None and _is_flow(lifecycle):
        return _with_member(text, lifecycle, names)
    whole = (*path, _LIFECYCLE) if lifecycle is not None else path
    if lifecycle is None and _is_flow(_at(document.node, path)):
        return _with_member(text, _at(document.node, path), f"{_LIFECYCLE}: {{{names}}}")
    block = _block(document.node, document.lines, whole)
    if block is None:
        return None
    margin, ending = " " * block.column, line_end(raw)
    if lifecycle is not None:
        return _with_lines(text, block.entries[-1].body_end, [margin + names], ending)
    above = [entry for entry in block.entries if entry.name not in _BELOW]
    added = [f"{margin}{_LIFECYCLE}:", f"{margin}{' ' * STEP}{names}"]
    return _with_lines(text, above[-1].end, added, ending) if above else None


def _member(node: Node | None, name: str) -> Node | None:
    """Return the value of a key that a mapping itself has."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for key, value in pairs if key.value == name), None)


def _at(node: Node | None, path: Path) -> Node | None:
    for part in path:
        node = _member(node, str(part))
    return node


def _is_flow(node: Node | None) -> bool:
    return isinstance(node, yaml.CollectionNode) and bool(node.flow_style)


def _block(node: Node | None, lines: Sequence[str], path: Path) -> Block | None:
    """Return the block mapping at a path, None if it or a mapping above is in another style."""
    block = block_of(node, lines, start=0, end=content_end(lines))
    for part in path:
        entries = block.entries if block is not None else ()
        entry = next((entry for entry in entries if entry.name == part), None)
        if entry is None:
            return None
        block = block_of(entry.value, lines, start=entry.below, end=entry.end)
    return block


def _with_item(text: str, names: Node, item: str) -> str | None:
    """Return the text with an item at the beginning of a list."""
    if not isinstance(names, yaml.SequenceNode):
        return None
    if is_block_list(names) and names.value:
        line, column = names.start_mark.line, names.start_mark.column
        added = f"{' ' * column}- {item}"
        return _with_lines(text, line, [added], line_end(text.encode()))
    start = names.start_mark.index
    comma = ", " if names.value else ""
    return f"{text[: start + 1]}{item}{comma}{text[start + 1 :]}"


def _with_member(text: str, mapping: Node | None, member: str) -> str | None:
    """Return the text with a member at the end of a mapping in flow style."""
    if mapping is None:
        return None
    if not mapping.value:
        end = mapping.end_mark.index - 1
        return f"{text[:end]}{member}{text[end:]}"
    end = mapping.value[-1][1].end_mark.index
    return f"{text[:end]}, {member}{text[end:]}"


def _with_lines(text: str, at: int, added: Sequence[str], ending: str) -> str:
    lines = text.splitlines(keepends=True)
    if at == len(lines) and lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += ending
    return "".join([*lines[:at], *(line + ending for line in added), *lines[at:]])
