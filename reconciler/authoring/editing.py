"""Edit values in the text of a YAML file: everything else stays byte for byte, comments too.

The edits of one pass are what differs between the values of the file and those that are wanted.
What an edit changes elsewhere, through an anchor, is set back by the next pass. Items of lists
that stay keep their lines.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import orjson
import yaml
from msgspec import Struct
from yaml.nodes import Node

from reconciler.authoring.blocks import (
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
from reconciler.authoring.yaml_text import flow_text, yaml_text
from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.errors import ReconcilerError
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
_ALIAS = re.compile(r"\s*:\s*(\*[\w-]+)")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)
_OPTIONS = orjson.OPT_SORT_KEYS
_Added: TypeAlias = tuple[JSON, int | None]
"""A value to add, and the position of the item that moves there, None for a new one."""
_Change: TypeAlias = tuple[list[tuple[int, JSON]], int, int, Sequence[_Added]]


class Edit(Struct, frozen=True):
    """A value to set at a path of a file, `MISSING` to remove it.

    The path has names only. The value is as the file writes it, with references; see `escaped`.
    Mappings that a removal leaves empty are removed too.
    """

    path: Path
    value: JSON


def edited(document: Document, edits: Iterable[Edit]) -> str:
    """Return the text of a file with values set and removed.

    Of lists and mappings only the items and keys that differ change. Raises ReconcilerError for a
    place that cannot be edited safely.
    """
    wanted = copied(document.value if document.value is not None else {})
    for edit in edits:
        _put(wanted, edit)
    file = document
    schema = file_schema(document.file)
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
            splices = self._list(value, have, want)
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
            return self._list(node, have, want)
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

    def _list(self, node: Node, have: Sequence[JSON], want: Sequence[JSON]) -> list[Splice] | None:
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
                changed = self._changed(items[position], have[position], value)
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

    def _changed(self, item: Node, have: JSON, want: JSON) -> list[Splice] | None:
        """Return what changes in an item, None if it cannot change in place."""
        if isinstance(item, yaml.CollectionNode):
            return self._inside(item, have, want)
        if item.start_mark.line != item.end_mark.line:
            return None
        return [Splice(item.start_mark.index, item.end_mark.index, flow_text(want))]

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
                yield Splice(items[item - 1].end_mark.index, items[item].end_mark.index, "")
            else:
                yield Splice(items[item].start_mark.index, items[item + 1].start_mark.index, "")
        texts = [flow_text(value) for value in added]
        if texts and low:
            at = items[low - 1].end_mark.index
            yield Splice(at, at, "".join(f", {text}" for text in texts))
        elif texts:
            at = items[0].start_mark.index
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
