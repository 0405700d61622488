"""Edit values in the text of a YAML file: only the lines of the edited keys change.

Values that an anchor, an alias or a merge key shares, and values with comments that an edit would
remove, are refused with their place.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path as FolderPath
from typing import Any, NamedTuple

import yaml
from msgspec import Struct
from yaml.nodes import Node

from reconciler.diagnostics import DiagnosticCollector, InvalidConfiguration, Level, Mark
from reconciler.editing.yaml_text import flow_text, yaml_item, yaml_text
from reconciler.errors import ReconcilerError
from reconciler.files.loading import load_all
from reconciler.files.sources import FolderSource
from reconciler.files.yaml_document import MERGE_TAG, Document, is_block_text, nodes_in
from reconciler.files.yaml_loader import parse
from reconciler.kinds import kinds_by_collection
from reconciler.model.values import (
    JSON,
    MISSING,
    Path,
    SecretRef,
    map_leaves,
    mapping_of,
    value_at,
    walk,
)
from reconciler.planning.compare import is_same

_KEEPS_EMPTY_LINES = re.compile(r"[|>][0-9]*\+")
"""The header of a block scalar that includes the blank lines below."""
_NOT_PLAIN = ("&", "!", "*", "? ")
"""What a key begins with that is not only its text."""
_COMMENT = re.compile(r"(?:^|(?<=\s))#", re.MULTILINE)
_TOP = 2
"""Levels of mappings that stay when they become empty: those that hold resources."""
_SHARED = "an anchor, an alias or a merge key"
_COMMENTS = "a comment that it would remove"
_LAYOUT = "keys that do not begin their lines"


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


class Edit(Struct, frozen=True):
    """A value to set at a path of a file, `MISSING` to remove it.

    The path has names only. The value is as the file writes it, with references; see `escaped`.
    Mappings that a removal leaves empty are removed too.
    """

    path: Path
    value: JSON


class NotEditable(ReconcilerError):
    """A place that cannot be edited safely, and why."""

    def __init__(self, mark: Mark, what: str) -> None:
        super().__init__(
            f"{mark}: cannot edit a value with {what}; nothing was written",
            hint="edit this place manually",
        )
        self.reason = f"{mark}: cannot edit a value with {what}"


class Splice(NamedTuple):
    """A part of a text, by index, and what replaces it."""

    start: int
    end: int
    text: str


def edited(document: Document, edits: Iterable[Edit]) -> str:
    """Return the text of a file with values set and removed.

    Raises NotEditable for a place that cannot be edited safely.
    """
    wanted = mapping_of(document.value)
    for edit in edits:
        wanted = _with(wanted, edit.path, edit.value)
    parts: list[str] = []
    position = 0
    splices = _Editing(document).splices(wanted)
    for splice in sorted(splices, key=lambda splice: splice[:2]):
        parts += [document.text[position : splice.start], splice.text]
        position = splice.end
    text = "".join([*parts, document.text[position:]])
    check_text(document, text, wanted)
    return text


def reason_against(document: Document, edit: Edit) -> str | None:
    """Return why a file cannot be edited at a place, None if it can."""
    wanted = _with(mapping_of(document.value), edit.path, edit.value)
    try:
        list(_Editing(document).splices(wanted))
    except NotEditable as error:
        return error.reason
    return None


def _with(values: Mapping[str, JSON], path: Path, value: JSON, depth: int = 0) -> dict[str, Any]:
    """Return values with one set or removed. All others are the same objects."""
    name, below = str(path[0]), value
    if len(path) > 1:
        inner = values.get(name)
        if not isinstance(inner, dict) and value is MISSING:
            return dict(values)
        below = _with(mapping_of(inner), path[1:], value, depth + 1)
        if value is MISSING and not below and depth >= _TOP:
            below = MISSING
    if below is MISSING:
        return {key: item for key, item in values.items() if key != name}
    return {**values, name: below}


class _Editing:
    """One file: what changes in its text."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.text = document.text
        self.lines = document.lines
        lines = document.text.splitlines(keepends=True)
        self.starts = list(accumulate(map(len, lines), initial=0))
        self.ending = line_end(document.text.encode())
        self.is_open = bool(lines) and not lines[-1].endswith(("\n", "\r"))

    def splices(self, wanted: Mapping[str, Any]) -> Iterator[Splice]:
        """Yield what changes, in parts that do not overlap. Raises NotEditable."""
        end = content_end(self.lines)
        if self.document.node is None:
            above = [""] if end and self.lines[end - 1].strip() else []
            added = (_key_lines((name,), value) for name, value in wanted.items())
            lines = [line for new in added for line in ("", *new)][1:]
            yield self._inserted(end, [*above, *lines])
            return
        block = block_of(self.document.node, self.lines, start=0, end=end)
        if block is None:
            raise NotEditable(self.document.mark(()), _LAYOUT)
        yield from self._block(block, mapping_of(self.document.value), wanted, ())

    def _block(
        self,
        block: Block,
        have: Mapping[str, Any],
        want: Mapping[str, Any],
        path: Path,
    ) -> Iterator[Splice]:
        """Yield what changes in a mapping in block style."""
        entries = {entry.name: entry for entry in block.entries if entry.key.tag != MERGE_TAG}
        for name in {**have, **want}:
            before, after = have.get(name, MISSING), want.get(name, MISSING)
            if before is after or is_same(before, after):
                continue
            if name not in entries:
                if before is not MISSING:
                    raise self._refused(block.entries[0].key, _SHARED)
                yield self._insertion(block, (*path, name), after)
            elif after is MISSING:
                self._check_removal(entries[name])
                yield Splice(self.starts[entries[name].line], self.starts[entries[name].end], "")
            else:
                yield from self._entry(entries[name], before, after, (*path, name))

    def _entry(self, entry: Entry, have: JSON, want: JSON, path: Path) -> Iterator[Splice]:
        """Yield what changes in the value of a key in block style."""
        node = entry.value
        is_block = isinstance(node, yaml.MappingNode) and not node.flow_style
        if not (is_block and isinstance(have, dict) and isinstance(want, dict) and want):
            yield self._replaced(entry, want, path)
            return
        self._check_shared(entry.key, (node,))
        inner = block_of(node, self.lines, start=entry.below, end=entry.end)
        if inner is None:
            raise self._refused(entry.key, _LAYOUT)
        yield from self._block(inner, have, want, path)

    def _replaced(self, entry: Entry, want: JSON, path: Path) -> Splice:
        """Return a new value of a key. A mapping in brackets in one line stays so."""
        key, node = entry.key, entry.value
        self._check_shared(key, nodes_in(node))
        colon = self.text.index(":", key.end_mark.index) + 1
        start, end = node.start_mark.index, node.end_mark.index
        is_flow = isinstance(node, yaml.CollectionNode) and node.flow_style
        one_line = "\n" not in self.text[start:end]
        in_line = one_line and (is_flow or isinstance(node, yaml.ScalarNode))
        in_brackets = in_line and is_flow and node.value and isinstance(want, dict) and want
        first, *rest = [flow_text(want)] if in_brackets else _lines(path, want)
        if in_line and not rest:
            return Splice(start, end, first) if end > start else Splice(colon, colon, f" {first}")
        below, beside = colon, ""
        if in_line or node.start_mark.line > entry.line:
            below = self.starts[entry.below]
            beside = self.text[end if in_line and end > start else colon : below].rstrip()
        # A comment below a text in lines would be part of it.
        last = entry.end if first.startswith("|") else entry.body_end
        if self._has_comments(node, below, self.starts[last]):
            raise self._refused(key, _COMMENTS)
        margin = " " * key.start_mark.column
        lines = [f" {first}".rstrip() + beside, *(margin + line if line else "" for line in rest)]
        text = "".join(f"{line}{self.ending}" for line in lines)
        return Splice(colon, self.starts[entry.body_end], text)

    def _check_removal(self, entry: Entry) -> None:
        """Raise NotEditable if the lines of a key have comments that are not beside a key."""
        self._check_shared(entry.key, (entry.value,))
        inner = block_of(entry.value, self.lines, start=entry.below, end=entry.end)
        if inner is None:
            self._check_shared(entry.key, nodes_in(entry.value))
            start, end = entry.key.end_mark.index, self.starts[entry.end]
            if entry.end > entry.below and self._has_comments(entry.value, start, end):
                raise self._refused(entry.key, _COMMENTS)
            return
        for item in inner.entries:
            if any(line.strip() for line in self.lines[item.start : item.line]):
                raise self._refused(item.key, _COMMENTS)
            self._check_removal(item)

    def _check_shared(self, key: Node, nodes: Iterable[Node]) -> None:
        """Raise NotEditable if a node has an anchor, or is that of an anchor elsewhere."""
        for node in nodes:
            start = node.start_mark.index
            if start < key.start_mark.index or self.text.startswith("&", start):
                raise self._refused(key, _SHARED)

    def _has_comments(self, node: Node, start: int, end: int) -> bool:
        """Return whether there are comments between two indices: # inside texts begins none."""
        texts = [
            (item.start_mark.index, item.end_mark.index)
            for item in nodes_in(node)
            if isinstance(item, yaml.ScalarNode)
        ]
        if is_block_text(node):
            texts = [(self.text.find("\n", texts[0][0]), texts[0][1])]
        return any(
            not any(first <= match.start() < last for first, last in texts)
            for match in _COMMENT.finditer(self.text, start, end)
        )

    def _refused(self, key: Node, what: str) -> NotEditable:
        mark = key.start_mark
        return NotEditable(Mark(self.document.file, mark.line + 1, mark.column + 1), what)

    def _insertion(self, block: Block, path: Path, value: JSON) -> Splice:
        """Return a new key of a mapping, which comes last."""
        lines = [" " * block.column + line if line else "" for line in _key_lines(path, value)]
        if len(path) <= _TOP and path[0] in kinds_by_collection():
            return self._inserted(block.footer, ["", *lines])
        return self._inserted(block.entries[-1].end, lines)

    def _inserted(self, line: int, lines: Iterable[str]) -> Splice:
        """Return lines to insert above a line."""
        text = "".join(f"{line}{self.ending}" for line in lines)
        at = self.starts[line]
        if at == len(self.text) and self.is_open:
            self.is_open = False
            text = f"{self.ending}{text}"
        return Splice(at, at, text)


def _key_lines(path: Path, value: JSON) -> list[str]:
    """Return the lines of a new key."""
    first, *rest = _lines(path, value)
    return [f"{yaml_item(str(path[-1]))}: {first}".rstrip(), *rest]


def _lines(path: Path, value: JSON) -> list[str]:
    """Return the text of a value after its key and below it, with empty lines between resources."""
    first, *rest = yaml_text({"k": value}).splitlines()
    if len(path) == 1 and path[0] in kinds_by_collection():
        text = "\n".join(rest)
        rest = re.sub(r"\n(?=  [^ ])", "\n\n", text).split("\n") if text else rest
    return [first.removeprefix("k:").strip(), *rest]


def check_text(document: Document, text: str, expected: JSON) -> None:
    """Raise NotEditable if a new text of a file has other values than expected."""
    problems = DiagnosticCollector()
    after = parse(text.encode(), document.file, problems)
    expected = map_leaves(expected, lambda leaf: str(leaf) if isinstance(leaf, SecretRef) else leaf)
    if not problems.failed and is_same(after.value, expected):
        return
    places = [diagnostic.at for diagnostic in problems.diagnostics]
    places += [
        after.mark(path)
        for path, value in walk(after.value)
        if not isinstance(value, (dict, list)) and value_at(expected, path) != value
    ]
    raise NotEditable(next(filter(None, places), Mark(document.file)), _LAYOUT)


def edited_texts(folder: FolderPath, edits: Iterable[tuple[Document, Edit]]) -> dict[str, str]:
    """Return the new texts of the files that change, by name. Raises ReconcilerError.

    A byte order mark stays.
    """
    source, texts = FolderSource(folder), {}
    by_file: dict[str, tuple[Document, list[Edit]]] = {}
    for document, edit in edits:
        by_file.setdefault(document.file, (document, []))[1].append(edit)
    for file, (document, own) in by_file.items():
        text = edited(document, own)
        if text != document.text:
            texts[file] = with_mark(source, file, text)
    return texts


def with_mark(source: FolderSource, file: str, text: str) -> str:
    """Return a text with the byte order mark of its file, which documents do not have."""
    return f"\ufeff{text}" if (source.read(file) or b"").startswith(BOM_UTF8) else text


def check_files(
    folder: FolderPath, environ: Mapping[str, str], drafts: Mapping[str, str] | None = None
) -> None:
    """Raise InvalidConfiguration if the files have errors in any environment.

    `drafts` are texts in place of some files.
    """
    diagnostics = load_all(folder, environ=environ, drafts=drafts)
    errors = tuple(item for item in diagnostics if item.level is Level.ERROR)
    if errors:
        raise InvalidConfiguration(errors)
