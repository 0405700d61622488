"""Rename the key of a resource in the text of files: only the places that mention it change.

An edit is used only if the new text has the expected values when it is read again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml
from msgspec import Struct
from yaml.nodes import Node

from reconciler.authoring.editing import check_text, copied, unsafe
from reconciler.authoring.formatting import STEP, Block, block_of, content_end, line_end
from reconciler.authoring.yaml_text import yaml_item
from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.schemas import common_properties
from reconciler.model.values import JSON, MISSING, Path, mapping_of, put_at, value_at
from reconciler.workspace.references import escaped
from reconciler.workspace.sources import WORKSPACE_FILE
from reconciler.workspace.yaml.document import Document, is_block_list
from reconciler.workspace.yaml.loader import parse

_SCALAR = re.compile(r"""(?P<anchor>(?:&\S+\s+)?)(?P<quote>['"]?)(?P<text>.*)(?P=quote)""")
_LIFECYCLE, _RENAMED_FROM = "lifecycle", "renamed_from"
_BELOW = frozenset(list(common_properties())[list(common_properties()).index(_LIFECYCLE) :])
"""The fields that the order of the reference places at or below `lifecycle`."""


class Renaming(Struct, frozen=True):
    """Another key for a resource, and another name, None for the same one.

    `former_name` is the name to add to `renamed_from`, None for no name.
    """

    kind: Kind
    old: str
    new: str
    name: str | None = None
    former_name: str | None = None

    @property
    def path(self) -> Path:
        """The path of the resource in its file, with its new key."""
        return self.kind.collection, self.new


class Mention(Struct, frozen=True):
    """A place of a file that changes: the key or the value at a path, before and after.

    `before` is None for a value that is replaced whatever it is.
    """

    path: Path
    is_key: bool
    before: str | None
    after: str


class Renamed(Struct, frozen=True):
    """A file with a resource renamed, and the number of places that changed."""

    text: str
    places: int


def renamed(document: Document, renaming: Renaming, kinds: Sequence[Kind]) -> Renamed | None:
    """Return a valid file with a resource renamed, None if it does not mention it.

    Raises ReconcilerError for a place that cannot be edited safely.
    """
    mentions = tuple(_mentions(document, renaming, kinds))
    if not mentions:
        return None
    edits = dict(_edit(document, mention) for mention in mentions)
    text = _spliced(document.text, edits)
    expected = _expected(document.value, mentions)
    if renaming.former_name is not None and _declares(document, renaming):
        text = with_former_name(text, renaming.path, renaming.former_name) or text
        path = (*renaming.path, _LIFECYCLE, _RENAMED_FROM)
        names = value_at(expected, path)
        others = names if isinstance(names, list) else []
        put_at(expected, path, [renaming.former_name, *others])
    check_text(document, text, expected)
    return Renamed(text, len(edits))


def _declares(document: Document, renaming: Renaming) -> bool:
    return value_at(document.value, (renaming.kind.collection, renaming.old)) is not MISSING


def _mentions(document: Document, renaming: Renaming, kinds: Sequence[Kind]) -> Iterator[Mention]:
    """Yield every place that mentions the resource."""
    value = document.value if isinstance(document.value, dict) else {}
    children = [kind for kind in kinds if kind.parent == renaming.kind.name]
    if document.file == WORKSPACE_FILE:
        yield from _in_policies(value, renaming)
        for kind in children:
            yield from _parents(value, ("defaults", kind.name), kind, renaming)
        return
    path = (renaming.kind.collection, renaming.old)
    if value_at(value, path) is not MISSING:
        if renaming.new != renaming.old:
            yield Mention(path, True, renaming.old, renaming.new)
        if renaming.name is not None:
            yield Mention((*path, "name"), False, None, str(escaped(renaming.name)))
    for kind in children:
        for key in mapping_of(value_at(value, (kind.collection,))):
            yield from _parents(value, (kind.collection, key), kind, renaming)


def _in_policies(value: JSON, renaming: Renaming) -> Iterator[Mention]:
    """Yield the scopes of `prune` that are the address of the resource."""
    before, after = (str(Address(renaming.kind.name, key)) for key in (renaming.old, renaming.new))
    environments = mapping_of(value_at(value, ("environments",)))
    for above in ((), *(("environments", name) for name in environments)):
        path = (*above, "policy", "prune", before)
        if value_at(value, path) is not MISSING and before != after:
            yield Mention(path, True, before, after)
        rules = (*above, "policy", "rules")
        for name in mapping_of(value_at(value, rules)) if before != after else ():
            yield from _in_match(value, (*rules, name, "match"), renaming)


def _in_match(value: JSON, path: Path, renaming: Renaming) -> Iterator[Mention]:
    """Yield the tests of a rule that name the resource in full. Globs stay."""
    kind = renaming.kind.name
    before, after = (str(Address(kind, key)) for key in (renaming.old, renaming.new))
    for name, item in mapping_of(value_at(value, path)).items():
        inside = (*path, name)
        if name == "not":
            yield from _in_match(value, inside, renaming)
        elif name in ("all", "any"):
            for position in range(len(item)):
                yield from _in_match(value, (*inside, position), renaming)
        elif name in ("address", kind):
            old, new = (before, after) if name == "address" else (renaming.old, renaming.new)
            places = (
                [(*inside, position) for position in range(len(item))]
                if isinstance(item, list)
                else [inside]
            )
            yield from (Mention(at, False, old, new) for at in places if value_at(value, at) == old)


def _parents(value: JSON, path: Path, kind: Kind, renaming: Renaming) -> Iterator[Mention]:
    """Yield the references to the resource as the parent of another one, in all its layers."""
    overrides = mapping_of(value_at(value, (*path, "overrides")))
    for layer in (path, *((*path, "overrides", name) for name in overrides)):
        at = (*layer, str(kind.parent_key))
        if value_at(value, at) == renaming.old != renaming.new:
            yield Mention(at, False, renaming.old, renaming.new)


def _edit(document: Document, mention: Mention) -> tuple[Mark, str]:
    """Return the place of a mention and its new text. Raises ReconcilerError."""
    mark = document.key_mark(mention.path) if mention.is_key else document.mark(mention.path)
    line = document.line(mark.line)
    match = _SCALAR.fullmatch(line[mark.column - 1 : mark.column - 1 + mark.length])
    if match is None or (mention.before is not None and match["text"] != mention.before):
        raise unsafe(mark)
    if mention.before is None:
        return mark, f"{match['anchor']}{yaml_item(mention.after)}"
    quote = match["quote"] or ("" if _is_plain(mention.after) else "'")
    return mark, f"{match['anchor']}{quote}{mention.after}{quote}"


def _is_plain(key: str) -> bool:
    """Return whether a key needs no quotes, as a key and as a value."""
    problems = DiagnosticCollector()
    read = parse(f"{key}: {key}\n".encode(), "", problems)
    return not problems.diagnostics and read.value == {key: key}


def _spliced(text: str, edits: Mapping[Mark, str]) -> str:
    lines = text.splitlines(keepends=True)
    for mark in sorted(edits, key=lambda mark: (mark.line, mark.column), reverse=True):
        line, start = lines[mark.line - 1], mark.column - 1
        lines[mark.line - 1] = line[:start] + edits[mark] + line[start + mark.length :]
    return "".join(lines)


def _expected(value: JSON, mentions: Iterable[Mention]) -> Any:
    """Return the value of the file after the edits."""
    after = copied(value)
    # The deepest first: the paths above are the old ones until then.
    for mention in sorted(mentions, key=lambda mention: -len(mention.path)):
        *above, last = mention.path
        holder: Any = value_at(after, tuple(above))
        if mention.is_key:
            holder[mention.after] = holder.pop(last)
        else:
            holder[last] = mention.after
    return after


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
