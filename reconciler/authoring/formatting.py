"""Format the files of a workspace, or one text, without changing their meaning."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import dropwhile
from pathlib import Path as FolderPath
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeAlias

import yaml
from msgspec import Struct
from msgspec.structs import replace
from yaml.nodes import Node

from reconciler.authoring.difference import differences_as_text
from reconciler.diagnostics import Diagnostic, DiagnosticCollector, InvalidConfiguration, Mark
from reconciler.errors import BadUsage
from reconciler.kinds import all_kinds, kinds_by_collection, kinds_by_name
from reconciler.model.files import FileChange
from reconciler.model.kind import Kind
from reconciler.model.public import Public, derived
from reconciler.model.schemas import schema, variant_schema
from reconciler.model.text import several
from reconciler.model.values import MISSING, Path, value_at
from reconciler.render.diagnostics import PublicDiagnostic, public_diagnostic
from reconciler.workspace.redaction import side_of
from reconciler.workspace.resource_files import ResourceFiles, with_lines
from reconciler.workspace.sources import WORKSPACE_FILE, FolderSource
from reconciler.workspace.workspace_file import DEFAULTS, read_workspace
from reconciler.workspace.writing import write_files
from reconciler.workspace.yaml.document import (
    MERGE_TAG,
    Document,
    is_block_list,
    is_block_text,
    nodes_in,
)
from reconciler.workspace.yaml.loader import collector_paused, parse

Schema: TypeAlias = Mapping[str, Any]
NOT_FORMATTED = "not-formatted"
"""Code of the warning about a file that cannot be formatted safely."""
_OVERRIDES = "overrides"
STEP = 2
_KEEPS_EMPTY_LINES = re.compile(r"[|>][0-9]*\+")
"""The header of a block scalar that includes the blank lines below."""
_SETS_INDENT = re.compile(r"[|>][-+]?[0-9]")
_ITEM = re.compile(r"\s*#\s*-\s")
_NOT_PLAIN = ("&", "!", "*", "? ")
"""What a key begins with that is not only its text."""
_PINNED = ("# yaml-language-server:", "---", "%")
"""Lines that stay at the top of a file."""


class Formatted(Public, frozen=True, kw_only=True):
    """Formatted files: `fmt --format json`.

    `texts` are the new texts of the files that were not formatted, by name; `changes` are their
    changes, if asked for.
    """

    version = 1
    schema = "fmt"
    internal = frozenset({"texts", "changes", "diagnostics"})

    texts: Mapping[str, str]
    changes: Mapping[str, FileChange] = {}
    diagnostics: tuple[Diagnostic, ...] = ()
    written: bool = False
    """Whether the files were written."""
    files: int
    """The number of files that were looked at."""
    skipped: int = 0
    """The number of files that can't be formatted safely."""

    @derived
    def changed(self) -> tuple[str, ...]:
        """Paths of the files that were not formatted, relative to the workspace."""
        return tuple(self.texts)

    @derived
    def diagnostics_(self) -> tuple[PublicDiagnostic, ...]:
        """Why files were skipped."""
        return tuple(map(public_diagnostic, self.diagnostics))

    @derived
    def diff(self) -> str:
        """The unified difference, if asked for."""
        return differences_as_text(self.changes)


def format_workspace(
    folder: FolderPath, files: Sequence[FolderPath] = (), *, write: bool = True, diff: bool = False
) -> Formatted:
    """Format the files of a workspace: all of them, or those that are named or in a named folder.

    Paths are relative to the current folder. Without `write`, nothing is changed. With `diff`, the
    result contains the changes.

    Raises:
        InvalidConfiguration: one of them is not valid YAML; nothing is written.
        BadUsage: a named file is not a file of the workspace.

    """
    source = FolderSource(folder)
    collector = DiagnosticCollector(lenient=frozenset({"no-files"}))
    texts = _contents(source, collector)
    names = _selected(folder, files, list(texts))
    formatted = _formatted({name: texts[name] for name in names}, collector, diff=diff)
    if write:
        write_files(folder, formatted.texts)
        formatted = replace(formatted, written=True)
    return formatted


def format_text(raw: bytes, name: str, *, diff: bool = False) -> tuple[str, Formatted]:
    """Return a formatted text, unchanged if it cannot be formatted, and what was done.

    The text is that of a file of any workspace with this name. Raises InvalidConfiguration.
    """
    formatted = _formatted({name: raw}, DiagnosticCollector(), diff=diff)
    text = formatted.texts.get(name)
    return raw.decode() if text is None else text, formatted


def format_summary(formatted: Formatted, *, written: bool) -> str:
    """Return `2 files formatted, 5 files unchanged, 1 file skipped`."""
    count = len(formatted.texts)
    counts = {
        "formatted" if written else "would be formatted": count,
        "unchanged": formatted.files - count - formatted.skipped,
        "skipped": formatted.skipped,
    }
    parts = [f"{several(number, 'file')} {word}" for word, number in counts.items() if number]
    return ", ".join(parts) or "no files"


def _formatted(
    texts: Mapping[str, bytes], collector: DiagnosticCollector, *, diff: bool
) -> Formatted:
    """Format texts by name. Raises InvalidConfiguration."""
    documents: dict[str, Document] = {}
    changed: dict[str, str] = {}
    changes: dict[str, FileChange] = {}
    # The nodes of a file are freed without the collector, which would walk through them.
    with collector_paused():
        for name, raw in texts.items():
            known = len(collector.diagnostics)
            before, after = format_file(raw, name, collector)
            if len(collector.diagnostics) > known:
                # Other documents are not kept: their nodes take most of the memory.
                documents[name] = before
            if after is not None and after.text.encode() != raw:
                changed[name] = after.text
                if diff:
                    changes[name] = FileChange(side_of(before), side_of(after))
    diagnostics = with_lines(collector.in_order(), documents)
    if collector.failed:
        raise InvalidConfiguration(diagnostics)
    skipped = sum(diagnostic.code == NOT_FORMATTED for diagnostic in diagnostics)
    return Formatted(
        texts=changed,
        files=len(texts),
        changes=changes,
        skipped=skipped,
        diagnostics=diagnostics,
    )


def _contents(source: FolderSource, collector: DiagnosticCollector) -> dict[str, bytes]:
    """Return every file of the workspace, `reconciler.yaml` first. Raises InvalidConfiguration.

    `reconciler.yaml` lists the files. Without it, or with a list that can't be read, any YAML file
    could be one of them: none is touched.
    """
    own = DiagnosticCollector()
    workspace = read_workspace(source, own)
    globs = workspace.value.get("resources", [])
    if own.failed and not (workspace.value and isinstance(globs, list)):
        raise InvalidConfiguration(with_lines(own.in_order(), {WORKSPACE_FILE: workspace.document}))
    texts = ResourceFiles(source, workspace, collector).contents()
    raw = source.read(WORKSPACE_FILE) or b""
    return {WORKSPACE_FILE: raw, **{name: text for name, text in texts if text is not None}}


def _selected(
    folder: FolderPath, files: Sequence[FolderPath], known: Sequence[str]
) -> Sequence[str]:
    """Return the files that the caller names, in order. Raises BadUsage."""
    if not files:
        return known
    selected: set[str] = set()
    for path in files:
        wanted = FolderPath(os.path.relpath(path, folder)).as_posix()
        matches = [name for name in known if wanted in (name, ".") or name.startswith(f"{wanted}/")]
        if not matches:
            raise BadUsage(
                f"{path} is not a file of this workspace"
                if path.exists()
                else f"{path} does not exist",
                hint="use a path relative to the current folder, of a file that `resources:` of "
                f"{WORKSPACE_FILE} includes",
            )
        selected.update(matches)
    return [name for name in known if name in selected]


def format_file(
    raw: bytes, file: str, problems: DiagnosticCollector
) -> tuple[Document, Document | None]:
    """Return a file as it was read, and the formatted one with the original line ends.

    The latter is None if the file cannot be read, or not formatted safely. Errors go to `problems`.
    """
    own = DiagnosticCollector()
    document = parse(raw, file, own, keep_nodes=True)
    problems.diagnostics.extend(own.diagnostics)
    if own.failed:
        return document, None
    root = file_schema(file)
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


def file_schema(file: str) -> Schema:
    """Return the schema of a file, with the keys of each mapping in order."""
    if PurePosixPath(file).name == WORKSPACE_FILE:
        known = schema("workspace") or {}
        return {**known, "properties": {**known.get("properties", {}), DEFAULTS: _defaults()}}
    collections = {kind.collection: {"additionalProperties": _kind(kind)} for kind in all_kinds()}
    return {"additionalProperties": False, "properties": {DEFAULTS: _defaults(), **collections}}


def _kind(kind: Kind) -> Schema:
    known = schema(kind.name) or {}
    properties = known.get("properties", {})
    overrides = {**properties.get(_OVERRIDES, {}), "additionalProperties": known}
    return {**known, "properties": {**properties, _OVERRIDES: overrides}}


def _defaults() -> Schema:
    return {"properties": {name: schema(name) or {} for name in kinds_by_name()}}


def schema_below(document: Document, node: Schema, path: Path, name: str) -> Schema:
    """Return the schema of a key of the mapping at a path, {} if unknown."""
    variants = node.get("x-variants")
    if variants is not None and name == variants["body"]:
        return variant_schema(variants, _tag(document, path, variants["tag"]))
    below = node.get("properties", {}).get(name, node.get("additionalProperties"))
    return below if isinstance(below, dict) else {}


def _tag(document: Document, path: Path, name: str) -> Any:
    """Return the tag at a path; a layer without one has that of the layers below in its file."""
    tag = value_at(document.value, (*path, name))
    if tag is MISSING and _OVERRIDES in path:
        at = path.index(_OVERRIDES)
        return _tag(document, (*path[:at], *path[at + 2 :]), name)
    if tag is MISSING:
        kind = kinds_by_collection().get(str(path[0]))
        within = (DEFAULTS, kind.name if kind is not None else "", *path[2:], name)
        tag = value_at(document.value, within)
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
    end: int


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
            until = _with_own_comments(value, lines, column, start=body_end, end=limit)
        entries.append(Entry(key, value, begin, line, body_end, until))
        begin = until
    return Block(tuple(entries), column, begin, end)


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
        least = _least_indent(lines, leaf)
        while ended > line + 1 and not lines[ended - 1].strip() and len(lines[ended - 1]) <= least:
            ended -= 1
        end = max(end, min(ended, limit))
    return end


def _least_indent(lines: Sequence[str], leaf: Node) -> int:
    """Return the indent up to which a blank line is not part of a block scalar; -1 for none."""
    header = lines[leaf.start_mark.line]
    if not is_block_text(leaf) or _KEEPS_EMPTY_LINES.search(header):
        return -1
    if sets_indent(header):
        # The text may start further left than any of its lines.
        return 0
    text = (lines[number] for number in _lines_of_text(leaf) if number < len(lines))
    return min((indent_of(line) for line in text if line.strip()), default=0)


def sets_indent(header: str) -> bool:
    """Return whether the header of a block scalar sets the indentation."""
    return _SETS_INDENT.search(header) is not None


def _last_leaf(node: Node) -> Node:
    while isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return node


def _with_own_comments(
    value: Node, lines: Sequence[str], column: int, *, start: int, end: int
) -> int:
    """Return the end of the comments that belong to the value above them.

    These are indented more than the next key, or are commented-out items of an unindented list.
    """
    is_list = is_block_list(value) and value.start_mark.column == column
    until = start
    for line in range(start, end):
        text = lines[line]
        if text.strip():
            if indent_of(text) <= column and not (is_list and _ITEM.match(text)):
                break
            until = line + 1
    return until


def head_of(lines: Sequence[str], first_key: int) -> int:
    """Return the number of lines of the head of a file, above the comment of its first key.

    The head ends with the last blank line, or with a line that must stay at the top.
    """
    for line in range(first_key - 1, -1, -1):
        if not lines[line].strip() or lines[line].startswith(_PINNED):
            return line + 1
    return 0


def content_end(lines: Sequence[str]) -> int:
    """Return the line of `...`, which ends a document, or the number of lines."""
    for line in range(len(lines) - 1, -1, -1):
        if lines[line].startswith("...") and not lines[line][3:4].strip():
            return line
        if not is_blank_or_comment(lines[line]):
            break
    return len(lines)


def trimmed(document: Document) -> tuple[str, ...]:
    """Return the lines of a document without trailing whitespace, except inside text."""
    lines = document.lines
    ended = [number for number, line in enumerate(lines) if line.endswith((" ", "\t"))]
    if not ended:
        return tuple(lines)
    kept = {line for node in nodes_in(document.node) for line in _lines_of_text(node)}
    changed = {number: lines[number].rstrip(" \t") for number in ended if number not in kept}
    return tuple(changed.get(number, line) for number, line in enumerate(lines))


def _lines_of_text(node: Node) -> range:
    """Return the lines whose trailing whitespace may be part of a text."""
    start, end = node.start_mark.line, node.end_mark.line
    if is_block_text(node):
        return range(start + 1, end + 1 if node.end_mark.column else end)
    is_quoted = isinstance(node, yaml.ScalarNode) and node.style in ("'", '"')
    return range(start, end) if is_quoted else range(0)


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


def shifted(lines: Sequence[str], by: int) -> list[str]:
    """Return lines moved to the right, or to the left as far as there are spaces."""
    if by >= 0:
        return [" " * by + line if line else line for line in lines]
    return [line[min(-by, indent_of(line)) :] for line in lines]
