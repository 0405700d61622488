"""Edit values in the text of a YAML file: everything else stays byte for byte, comments too.

The edits of one pass are what differs between the values of the file and those that are wanted.
What an edit changes elsewhere, through an anchor, is set back by the next pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson
import yaml
from msgspec import Struct
from yaml.nodes import Node

from reconciler.authoring.formatting import (
    STEP,
    Block,
    Entry,
    Schema,
    block_of,
    content_end,
    file_schema,
    indent_of,
    line_end,
    schema_below,
)
from reconciler.authoring.list_items import (
    ListText,
    Span,
    Splice,
    alias_of,
    comments_in,
    line_starts,
    span_of,
    spliced,
)
from reconciler.authoring.yaml_text import flow_text, yaml_text
from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.errors import ReconcilerError
from reconciler.model.kind import Kind
from reconciler.model.text import COMMAND
from reconciler.model.values import JSON, MISSING, Path, value_at, walk
from reconciler.workspace.yaml.document import MERGE_TAG, Document, is_block_text, nodes_in
from reconciler.workspace.yaml.loader import parse

_PASSES = 4
_ANCHOR = re.compile(r"&\S+\s+")
_REST_OF_LINE = re.compile(r"[ \t]*,[ \t]*(?:#[^\r\n]*)?(?:\r\n|\n)")
"""What may follow a member of a mapping in flow style in its line."""
_TOP = 2
"""Levels of mappings that stay when they become empty: those that hold resources."""


class Edit(Struct, frozen=True):
    """A value to set at a path of a file, `MISSING` to remove it.

    The path has names only. The value is as the file writes it, with references; see `escaped`.
    Mappings that a removal leaves empty are removed too.
    """

    path: Path
    value: JSON


def edited(document: Document, edits: Iterable[Edit], kinds: Sequence[Kind]) -> str:
    """Return the text of a file with values set and removed.

    Of lists and mappings only the items and keys that differ change. Raises ReconcilerError for a
    place that cannot be edited safely.
    """
    wanted = copied(document.value if document.value is not None else {})
    for edit in edits:
        _put(wanted, edit)
    file = document
    schema = file_schema(document.file, kinds)
    for number in range(_PASSES):
        if is_same(file.value, wanted):
            break
        problems = DiagnosticCollector()
        # An alias may be right already after its anchor has changed.
        editing = _Editing(file, with_shared=number > 0)
        text = spliced(file.text, editing.splices(wanted, schema))
        file = parse(text.encode(), document.file, problems, keep_nodes=True)
        if problems.failed:
            break
    check_text(document, file.text, wanted)
    return file.text


def is_same(left: JSON, right: JSON) -> bool:
    """Return whether values are equal, and neither is a boolean where the other is a number."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _put(wanted: dict[str, Any], edit: Edit) -> None:
    """Apply an edit to the values of a file."""
    holders = [wanted]
    for part in edit.path[:-1]:
        below = holders[-1].get(str(part))
        if not isinstance(below, dict):
            if edit.value is MISSING:
                return
            below = holders[-1][str(part)] = {}
        holders.append(below)
    if edit.value is not MISSING:
        holders[-1][str(edit.path[-1])] = copied(edit.value)
        return
    for depth, part in reversed(list(enumerate(edit.path))):
        holders[depth].pop(str(part), None)
        if holders[depth] or depth <= _TOP:
            return


class _Editing:
    """One pass over a file. `with_shared`: values that are those of an anchor change too."""

    def __init__(self, document: Document, *, with_shared: bool) -> None:
        self.document = document
        self.with_shared = with_shared
        self.text = document.text
        self.lines = document.lines
        self.starts = line_starts(document.text)
        self.ending = line_end(document.text.encode())
        self.lists = ListText(document.text, self.starts, self.ending)

    def splices(self, wanted: Mapping[str, Any], schema: Schema) -> Iterator[Splice]:
        """Yield what changes in the text. Raises ReconcilerError for another layout."""
        end = content_end(self.lines)
        block = block_of(self.document.node, self.lines, start=0, end=end)
        if block is None:
            raise unsafe(self.document.mark(()))
        yield from self._block(block, self.document.value, wanted, schema, ())

    def _block(
        self, block: Block, have: Any, want: Mapping[str, Any], schema: Schema, path: Path
    ) -> Iterator[Splice]:
        """Yield what changes in a mapping in block style."""
        own = {entry.name: entry for entry in block.entries if entry.key.tag != MERGE_TAG}
        for name, entry in own.items():
            before, after = have.get(name, MISSING), want.get(name, MISSING)
            if after is MISSING:
                yield Splice(self.starts[entry.line], self.starts[entry.end], "")
            elif not is_same(before, after):
                below = schema_below(self.document, schema, path, name)
                yield from self._entry(entry, before, after, below, (*path, name))
        for name, value in self._added(have, want, own):
            yield self._insertion(block, schema, name, value)

    def _entry(
        self, entry: Entry, have: JSON, want: JSON, schema: Schema, path: Path
    ) -> Iterator[Splice]:
        """Yield what changes in the value of a key in block style."""
        is_alias = alias_of(self.text, entry.key, entry.value) is not None
        if isinstance(have, dict) and isinstance(want, dict) and want and not is_alias:
            inner = block_of(entry.value, self.lines, start=entry.below, end=entry.end)
            if inner is not None:
                yield from self._block(inner, have, want, schema, path)
                return
        splices = self._value(entry.key, entry.value, have, want)
        yield from splices if splices is not None else [self._rewritten(entry, want)]

    def _value(
        self, key: Node, value: Node, have: JSON, want: JSON, *, in_flow: bool = False
    ) -> list[Splice] | None:
        """Return what changes in a value, None if its lines have to be written again."""
        alias = alias_of(self.text, key, value)
        are_mappings = isinstance(have, dict) and isinstance(want, dict)
        if alias is not None:
            merged = _over(self.text[slice(*alias)], have, want)
            return [Splice(*alias, merged)] if self.with_shared else []
        if isinstance(have, list) and isinstance(want, list):
            splices = self.lists.splices(value, have, want, self._inside)
            if splices is not None:
                return splices
        if isinstance(value, yaml.MappingNode) and value.flow_style and are_mappings and want:
            return self._flow(value, have, want)
        span = span_of(self.text, key, value)
        if in_flow and self._has_comments(value, span):
            return None
        is_flow = not isinstance(value, yaml.CollectionNode) or value.flow_style
        is_line = is_flow and "\n" not in self.text[slice(*span)]
        text = _inline(value, want, in_flow=in_flow) if is_line or in_flow else None
        if text is None:
            return None
        space = " " if span.start == span.end else ""
        return [Splice(*span, f"{space}{self._anchor(span.start)}{text}")]

    def _inside(self, node: Node, have: JSON, want: JSON) -> list[Splice] | None:
        """Return what changes inside an item of a list, None if it is written as a whole."""
        if isinstance(have, list) and isinstance(want, list):
            return self.lists.splices(node, have, want, self._inside)
        if not (isinstance(have, dict) and isinstance(want, dict) and want):
            return None
        if isinstance(node, yaml.CollectionNode) and node.flow_style:
            return self._flow(node, have, want)
        own = [key.value for key, _ in node.value if key.tag != MERGE_TAG]
        if len(own) < len(node.value) or set(own) != want.keys():
            return None
        changes: list[Splice] = []
        for key, value in node.value:
            before, after = have[key.value], want[key.value]
            if not is_same(before, after):
                changed = self._value(key, value, before, after)
                if changed is None:
                    return None
                changes += changed
        return changes

    def _flow(self, node: Node, have: Any, want: Mapping[str, Any]) -> list[Splice] | None:
        """Return what changes in a mapping in flow style, None if that would remove comments."""
        changes: list[Splice] = []
        pairs = [(key, value, span_of(self.text, key, value)) for key, value in node.value]
        own = {key.value: None for key, _, _ in pairs if key.tag != MERGE_TAG}
        kept = [span for key, _, span in pairs if key.tag == MERGE_TAG or key.value in want]
        if pairs and not kept:
            whole = Span(node.start_mark.index, node.end_mark.index)
            text = f"{self._anchor(whole.start)}{flow_text(dict(want))}"
            return None if self._has_comments(node, whole) else [Splice(*whole, text)]
        for position, (key, value, span) in enumerate(pairs):
            if key.value not in own:
                continue
            before, after = have.get(key.value, MISSING), want.get(key.value, MISSING)
            if after is MISSING:
                part = self._removed(pairs, position, want)
                # The comment beside a member is removed, too. Those above stay, as in block style.
                removed = self._own_lines(key, span) if self._has_comments(node, part) else part
                if removed is None:
                    return None
                changes.append(Splice(*removed, ""))
            elif not is_same(before, after):
                changed = self._value(key, value, before, after, in_flow=True)
                if changed is None:
                    return None
                changes += changed
        at = kept[-1].end if kept else node.end_mark.index - 1
        added = flow_text(dict(self._added(have, want, own)))[1:-1]
        if added:
            changes.append(Splice(at, at, f", {added}" if kept else added))
        return changes

    def _removed(
        self, pairs: Sequence[tuple[Node, Node, Span]], position: int, want: Mapping[str, Any]
    ) -> Span:
        """Return a member of a mapping in flow style, and the comma before or after it."""
        rest = [key for key, _, _ in pairs[position:]]
        if position and all(key.tag != MERGE_TAG and key.value not in want for key in rest):
            return Span(pairs[position - 1][2].end, pairs[position][2].end)
        return Span(pairs[position][0].start_mark.index, pairs[position + 1][0].start_mark.index)

    def _own_lines(self, key: Node, span: Span) -> Span | None:
        """Return the lines of a member in flow style, None if they contain something else."""
        start = self.starts[key.start_mark.line]
        rest = _REST_OF_LINE.match(self.text, span.end)
        is_alone = rest is not None and not self.text[start : key.start_mark.index].strip()
        return Span(start, rest.end()) if rest is not None and is_alone else None

    def _has_comments(self, node: Node, span: Span) -> bool:
        """Return whether a part of a node has comments."""
        scalars = [item for item in nodes_in(node) if isinstance(item, yaml.ScalarNode)]
        return bool(comments_in(self.text, span.start, span.end, scalars))

    def _rewritten(self, entry: Entry, want: JSON) -> Splice:
        """Return the lines of a key with another value, and with the comment beside it."""
        colon = self.text.index(":", entry.key.end_mark.index) + 1
        start = entry.value.start_mark
        has_items = isinstance(want, (dict, list)) and bool(want)
        comments = self._comments(entry, colon, has_items=has_items)
        first, *rest = _lines(want)
        # A comment below text in lines would be part of it.
        is_below = first.startswith("|") and entry.body_end < entry.end
        if len(comments) > 1 or is_below:
            at = entry.key.start_mark
            raise unsafe(Mark(self.document.file, at.line + 1, at.column + 1))
        anchor = self._anchor(start.index)
        head = f" {anchor}{first}".rstrip() + "".join(f"  {comment}" for comment in comments)
        indent = self._indent_of_text(entry) if first.startswith("|") else _indent(entry)
        margin = " " * indent
        lines = [head, *(f"{margin}{line[STEP:]}" if line.strip() else line for line in rest)]
        text = self.ending.join(lines)
        return Splice(colon, self.starts[entry.body_end], f"{text}{self.ending}")

    def _comments(self, entry: Entry, start: int, *, has_items: bool) -> list[str]:
        """Return the comments beside a key and inside of its value, but for items that go."""
        scalars = [node for node in nodes_in(entry.value) if isinstance(node, yaml.ScalarNode)]
        if is_block_text(entry.value):
            return comments_in(self.text, start, self.starts[entry.below], ())
        end = self.starts[entry.body_end]
        comments = comments_in(self.text, start, end, scalars)
        if has_items or not isinstance(entry.value, yaml.CollectionNode):
            return comments
        first = comments_in(self.text, start, self.starts[entry.below], scalars)
        closing = max(entry.value.end_mark.index, self.starts[entry.below])
        last = comments_in(self.text, closing, end, ()) if entry.value.flow_style else []
        return first + last

    def _indent_of_text(self, entry: Entry) -> int:
        """Return the indentation of a text below its key."""
        body = self.lines[entry.below : entry.body_end]
        indent = next((indent_of(line) for line in body if line.strip()), 0)
        is_text = is_block_text(entry.value) and indent > _column(entry)
        return indent if is_text else _indent(entry)

    def _added(
        self, have: Mapping[str, Any], want: Mapping[str, Any], own: Iterable[str]
    ) -> Iterator[tuple[str, JSON]]:
        """Yield the members to add: new ones, and those that differ from a merged mapping."""
        for name, value in want.items():
            is_new = name not in have
            if name not in own and (
                is_new or (self.with_shared and not is_same(have[name], value))
            ):
                yield name, value

    def _anchor(self, start: int) -> str:
        """Return the anchor at an index, "" for none."""
        match = _ANCHOR.match(self.text, start)
        return match[0] if match is not None else ""

    def _insertion(self, block: Block, schema: Schema, name: str, value: JSON) -> Splice:
        """Return a new key of a mapping, in the order of the schema."""
        order = {known: place for place, known in enumerate(schema.get("properties", {}))}
        last = len(order)
        place = order.get(name, last)
        above = [item for item in block.entries if order.get(item.name, last) <= place]
        is_first = not above and name in order
        line = block.entries[0].start if is_first else (above or block.entries)[-1].end
        margin = " " * block.column
        lines = yaml_text({name: value}).splitlines()
        text = "".join(f"{margin}{line}{self.ending}" if line else self.ending for line in lines)
        at = self.starts[line]
        is_open = at == len(self.text) and not self.text.endswith(("\n", "\r"))
        return Splice(at, at, f"{self.ending}{text}" if is_open else text)


def _over(alias: str, have: JSON, want: JSON) -> str:
    """Return a value in place of an alias: merged with it, if it has all of its keys."""
    if not (isinstance(have, dict) and isinstance(want, dict) and have.keys() <= want.keys()):
        return flow_text(want)
    changes = {name: value for name, value in want.items() if not is_same(have.get(name), value)}
    return f"{{<<: {alias}, {flow_text(changes)[1:]}"


def _lines(value: JSON) -> list[str]:
    """Return the text of a value after its key and below it, indented by one step."""
    lines = yaml_text({"k": value}).splitlines()
    return [lines[0].removeprefix("k:").strip(), *lines[1:]]


def _inline(node: Node, value: JSON, *, in_flow: bool) -> str | None:
    """Return a value in one line, with the quotes of the old one; None for several lines."""
    quote = node.style if isinstance(node, yaml.ScalarNode) else None
    if isinstance(value, str) and quote in ("'", '"') and _is_simple(value):
        single = "'" + value.replace("'", "''") + "'"
        return single if quote == "'" else orjson.dumps(value).decode()
    if in_flow:
        return flow_text(value)
    first, *rest = _lines(value)
    return None if rest else first


def _is_simple(text: str) -> bool:
    return text.isascii() and text.isprintable() and not COMMAND.search(text)


def _column(entry: Entry) -> int:
    """Return the column of a key."""
    return int(entry.key.start_mark.column)


def _indent(entry: Entry) -> int:
    """Return the column of what is below a key."""
    return _column(entry) + STEP


def copied(value: JSON) -> Any:
    """Return a copy in which aliases share nothing."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def check_text(document: Document, text: str, expected: JSON) -> None:
    """Raise ReconcilerError if a new text of a file has other values than expected."""
    problems = DiagnosticCollector()
    after = parse(text.encode(), document.file, problems)
    if not problems.failed and after.value == expected:
        return
    places = [diagnostic.at for diagnostic in problems.diagnostics]
    places += [
        after.mark(path)
        for path, value in walk(after.value)
        if not isinstance(value, (dict, list)) and value_at(expected, path) != value
    ]
    raise unsafe(next(filter(None, places), Mark(document.file)))


def unsafe(mark: Mark) -> ReconcilerError:
    """Return the error for a place that cannot be edited."""
    return ReconcilerError(
        f"{mark}: cannot edit this place safely; nothing was written",
        hint="write the key here without an anchor, a merge key or escapes, or edit it manually",
    )
