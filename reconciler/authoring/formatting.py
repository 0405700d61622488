"""Format a file: keys in the order of the schemas, indentation in steps of two.

Comments stay with the key below them. The result is read again and compared with the original.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import dropwhile
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from msgspec import Struct

from reconciler.authoring.layout import (
    STEP,
    Block,
    Entry,
    block_of,
    content_end,
    head_of,
    indent_of,
    is_blank_or_comment,
    line_end,
    sets_indent,
    shifted,
    trimmed,
)
from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.model.kind import Kind
from reconciler.model.schema_files import schema, variant_schema
from reconciler.model.values import MISSING, Path, value_at
from reconciler.workspace.sources import WORKSPACE_FILE
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.loader import parse
from reconciler.workspace.yaml.nodes import MERGE_TAG, is_block_list, is_block_text, nodes_in

Schema: TypeAlias = Mapping[str, Any]
NOT_FORMATTED = "not-formatted"
"""Code of the warning about a file that cannot be formatted safely."""
_OVERRIDES = "overrides"


def format_file(
    raw: bytes, file: str, kinds: Sequence[Kind], problems: DiagnosticCollector
) -> tuple[Document, Document | None]:
    """Return a file as it was read, and the formatted one with the original line ends.

    The latter is None if the file cannot be read, or not formatted safely. Errors go to `problems`.
    """
    own = DiagnosticCollector()
    document = parse(raw, file, own, keep_nodes=True)
    problems.diagnostics.extend(own.diagnostics)
    if own.failed:
        return document, None
    root = file_schema(file, kinds)
    ending = line_end(raw)
    for reorder in (True, False):
        lines = _Formatting(document, trimmed(document), reorder=reorder).formatted(root)
        text = "".join(line + ending for line in lines)
        after = document if text == document.text else _equivalent(document, text)
        if after is not None:
            return document, after
    open_end = not raw.endswith((b"\n", b"\r"))
    problems.warning(
        NOT_FORMATTED,
        "file cannot be formatted without changing its values",
        at=Mark(file),
        hint="end it with a line break" if open_end else "use simpler YAML",
    )
    return document, None


def _equivalent(document: Document, text: str) -> Document | None:
    """Return the document of a text, None if a line is lost or a value differs."""
    problems = DiagnosticCollector()
    again = parse(text.encode(), document.file, problems, keep_nodes=True)
    if problems.failed or again.value != document.value:
        return None
    before = Counter(line.strip() for line in document.lines if line.strip())
    after = Counter(line.strip() for line in again.lines if line.strip())
    return again if before == after else None


def file_schema(file: str, kinds: Sequence[Kind]) -> Schema:
    """Return the schema of a file, with the keys of each mapping in order."""
    if PurePosixPath(file).name == WORKSPACE_FILE:
        return _workspace(kinds)
    return {
        "additionalProperties": False,
        "properties": {kind.collection: {"additionalProperties": _kind(kind)} for kind in kinds},
    }


def _kind(kind: Kind) -> Schema:
    known = schema(kind.name) or {}
    properties = known.get("properties", {})
    overrides = {**properties.get(_OVERRIDES, {}), "additionalProperties": known}
    return {**known, "properties": {**properties, _OVERRIDES: overrides}}


def _workspace(kinds: Sequence[Kind]) -> Schema:
    known = schema("workspace") or {}
    defaults = {"properties": {kind.name: schema(kind.name) or {} for kind in kinds}}
    return {**known, "properties": {**known.get("properties", {}), "defaults": defaults}}


def schema_below(document: Document, node: Schema, path: Path, name: str) -> Schema:
    """Return the schema of a key of the mapping at a path, {} if unknown."""
    variants = node.get("x-variants")
    if variants is not None and name == variants["body"]:
        return variant_schema(variants, _tag(document, path, variants["tag"]))
    below = node.get("properties", {}).get(name, node.get("additionalProperties"))
    return below if isinstance(below, dict) else {}


def _tag(document: Document, path: Path, name: str) -> Any:
    """Return the tag at a path; an override without one has that of its resource."""
    tag = value_at(document.value, (*path, name))
    if tag is MISSING and _OVERRIDES in path:
        at = path.index(_OVERRIDES)
        tag = value_at(document.value, (*path[:at], *path[at + 2 :], name))
    return tag


class _Formatting(Struct, frozen=True):
    """One pass over a file. `lines` are without trailing whitespace."""

    document: Document
    lines: tuple[str, ...]
    reorder: bool

    def formatted(self, root: Schema) -> list[str]:
        end = content_end(self.lines)
        block = block_of(self.document.node, self.lines, start=0, end=end)
        if block is None:
            return _without_trailing_empty(_without_leading_empty(self.lines))
        return [
            *self._block(block, root, (), start=0, indent=0),
            *_without_trailing_empty(self._comments(end, len(self.lines), 0)),
        ]

    def _block(
        self, block: Block, node: Schema, path: Path, *, start: int, indent: int
    ) -> list[str]:
        """Return the lines of a mapping, from the line `start` below its key.

        A comment with a blank line below it describes the whole mapping and stays at the top.
        """
        first = block.entries[0].line
        skip = start + head_of(self.lines[start:first], first - start)
        lines = _without_leading_empty(self._comments(start, skip, indent))
        owed = not path
        for position, entry in enumerate(self._in_order(block, node)):
            above = self._comments(max(entry.start, skip), entry.line, indent)
            was_first = entry is block.entries[0]
            if position == 0 and above and not above[0] and not (lines and lines[-1]):
                # Nothing is above it any more: the former first entry gets its empty line.
                above.pop(0)
                owed = owed or not was_first
            elif position and was_first and owed:
                above.insert(0, "")
            lines += above
            lines += self._entry(entry, node, path, column=block.column, indent=indent)
        return lines + _without_trailing_empty(self._comments(block.footer, block.end, indent))

    def _in_order(self, block: Block, node: Schema) -> Sequence[Entry]:
        entries = block.entries
        if not self.reorder or node.get("additionalProperties") is not False:
            return entries
        order = {name: position for position, name in enumerate(node.get("properties", {}))}
        last = len(order)
        places = [
            -1 if entry.key.tag == MERGE_TAG else order.get(entry.name, last) for entry in entries
        ]
        if places == sorted(places):
            return entries
        ordered = [entries[at] for at in sorted(range(len(entries)), key=places.__getitem__)]
        return entries if _separates_alias(ordered) else ordered

    def _entry(
        self, entry: Entry, node: Schema, path: Path, *, column: int, indent: int
    ) -> list[str]:
        by = indent - column
        first = shifted([self.lines[entry.line]], by)
        if entry.end == entry.below:
            return first
        inner = block_of(entry.value, self.lines, start=entry.below, end=entry.end)
        if inner is None or not self._only_blank_or_comments(entry.below, inner.entries[0].line):
            return first + self._leaf(entry, by, indent)
        below = schema_below(self.document, node, path, entry.name)
        path = (*path, entry.name)
        return first + self._block(inner, below, path, start=entry.below, indent=indent + STEP)

    def _leaf(self, entry: Entry, by: int, indent: int) -> list[str]:
        """Return the lines below the key of anything but a block mapping."""
        body = self.lines[entry.below : entry.body_end]
        target = indent + STEP
        if is_block_list(entry.value) and self._starts_below(entry):
            by = target - entry.value.start_mark.column
        elif is_block_text(entry.value) and entry.value.start_mark.line == entry.line:
            column = next((indent_of(line) for line in body if line.strip()), None)
            if column is not None and not sets_indent(self.lines[entry.line]):
                by = target - column
            # A comment below it at the same indentation would become part of the text.
            target = indent + 1
        return shifted(body, by) + self._comments(entry.body_end, entry.end, target)

    def _starts_below(self, entry: Entry) -> bool:
        """Return whether a value starts in a line of its own."""
        line = entry.value.start_mark.line
        return entry.below <= line < entry.end and self._only_blank_or_comments(entry.below, line)

    def _only_blank_or_comments(self, start: int, end: int) -> bool:
        return all(is_blank_or_comment(self.lines[line]) for line in range(start, end))

    def _comments(self, start: int, end: int, indent: int) -> list[str]:
        """Return comments at the column of their key, and blank lines without repetition."""
        kept: list[str] = []
        if start >= end:
            return kept
        for line in self.lines[start:end]:
            text = line.strip()
            if text:
                kept.append(" " * indent + text)
            elif not kept or kept[-1]:
                kept.append("")
        return kept


def _separates_alias(entries: Sequence[Entry]) -> bool:
    """Return whether an alias would be above its anchor, whose node it shares."""
    for position, entry in enumerate(entries):
        lines = {node.start_mark.line for node in nodes_in(entry.value)}
        for later in entries[position + 1 :]:
            if not lines.isdisjoint(range(later.line, later.end)):
                return True
    return False


def _without_leading_empty(lines: Sequence[str]) -> list[str]:
    return list(dropwhile(lambda line: not line, lines))


def _without_trailing_empty(lines: Sequence[str]) -> list[str]:
    return _without_leading_empty(lines[::-1])[::-1]
