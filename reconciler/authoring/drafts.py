"""Write resources to new files, and add them to existing files line by line.

An edit is used only if the new text contains all values of the old one when it is read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

import yaml
from msgspec import Struct

from reconciler.authoring.layout import STEP, Entry, block_of, content_end, line_end
from reconciler.authoring.yaml_text import yaml_text
from reconciler.diagnostics import DiagnosticCollector
from reconciler.model.values import JSONObject
from reconciler.workspace.references import escaped
from reconciler.workspace.sources import Source
from reconciler.workspace.yaml.loader import parse


class Draft(Struct, frozen=True):
    """A resource to write: its collection, key and fields, in order."""

    collection: str
    key: str
    fields: JSONObject

    def lines(self, indent: int) -> list[str]:
        """Return its indented lines."""
        text = yaml_text({self.key: escaped(dict(self.fields))})
        return [" " * indent + line if line else "" for line in text.splitlines()]


def new_file(drafts: Sequence[Draft], *, head: Sequence[str] = ()) -> str:
    """Return the text of a file with these resources, by collection."""
    lines = list(head)
    for collection, members in _by_collection(drafts):
        lines += [""] if lines else []
        lines += _collection(collection, members)
    return _joined(lines)


def _by_collection(drafts: Sequence[Draft]) -> Iterator[tuple[str, list[Draft]]]:
    for collection in dict.fromkeys(draft.collection for draft in drafts):
        yield collection, [draft for draft in drafts if draft.collection == collection]


def _collection(collection: str, members: Sequence[Draft]) -> list[str]:
    return [f"{collection}:", *_below_others(members, STEP)[1:]]


def _below_others(members: Sequence[Draft], indent: int) -> list[str]:
    """Return the lines of resources, with an empty line above each."""
    return [line for member in members for line in ("", *member.lines(indent))]


def extended_file(raw: bytes, drafts: Sequence[Draft]) -> str | None:
    """Return a file with resources added, and nothing else changed.

    None for a file that cannot be extended without being rewritten, such as one in flow style.
    """
    newline = line_end(raw)
    text = raw.decode("utf-8-sig")
    for collection, members in _by_collection(drafts):
        lines = _with(text, collection, members)
        if lines is None:
            return None
        text = _joined(lines)
    if not _keeps(raw, text, drafts):
        return None
    return text.replace("\n", newline)


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _with(text: str, collection: str, members: Sequence[Draft]) -> list[str] | None:
    """Return the lines of a file with members of one collection added."""
    document = parse(text.encode(), "", DiagnosticCollector())
    lines = list(document.lines)
    end = content_end(lines)
    if document.node is None:
        gap = [""] if end and lines[end - 1].strip() else []
        return [*lines[:end], *gap, *_collection(collection, members), *lines[end:]]
    root = block_of(document.node, lines, start=0, end=end)
    if root is None or root.column != 0:
        return None
    holder = next((entry for entry in root.entries if entry.name == collection), None)
    if holder is None:
        at = root.footer
        return [*lines[:at], "", *_collection(collection, members), *lines[at:]]
    block = block_of(holder.value, lines, start=holder.below, end=holder.end)
    if block is not None:
        added = _below_others(members, block.column)
        return [*lines[: block.footer], *added, *lines[block.footer :]]
    opened = _opened(lines[holder.line], holder)
    if opened is None:
        return None
    at = holder.below
    return [*lines[: at - 1], opened, *_collection(collection, members)[1:], *lines[at:]]


def _opened(line: str, holder: Entry) -> str | None:
    """Return the line of a key without a value, ready for members below; None with a value."""
    value = holder.value
    start, end = value.start_mark, value.end_mark
    if isinstance(value, yaml.ScalarNode) and start.index == end.index:
        return line
    if not isinstance(value, yaml.MappingNode) or value.value or start.line != end.line:
        return None
    return line[: start.column].rstrip() + line[end.column :]


def _keeps(raw: bytes, text: str, drafts: Sequence[Draft]) -> bool:
    """Return whether the new text has the values of the old one, and the drafts."""
    problems = DiagnosticCollector()
    before: Any = parse(raw, "", DiagnosticCollector()).value or {}
    after: Any = parse(text.encode(), "", problems).value
    if problems.failed or not isinstance(after, dict):
        return False
    wanted = {name: dict(value or {}) for name, value in before.items()}
    for draft in drafts:
        fields = parse("\n".join(draft.lines(0)).encode(), "", DiagnosticCollector()).value
        wanted.setdefault(draft.collection, {})[draft.key] = fields[draft.key]
    return {name: value or {} for name, value in after.items()} == wanted


def schema_line(name: str, source: Source, schema_file: str) -> list[str]:
    """Return the line that names the schema of a new file for editors."""
    if source.read(schema_file) is None:
        return []
    up = "../" * (len(PurePosixPath(name).parts) - 1)
    return [f"# yaml-language-server: $schema={up}{schema_file}"]
