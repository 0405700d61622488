"""The use case `mv`: rename the key of a resource in all files of a workspace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FolderPath
from typing import Any

from msgspec import Struct

from reconciler.authoring.difference import EditedFiles, file_changes
from reconciler.authoring.editing import Edit, check_text, copied, edited, unsafe
from reconciler.authoring.placing import check_files, with_mark
from reconciler.authoring.yaml_text import yaml_item
from reconciler.diagnostics import DiagnosticCollector, InvalidConfiguration, Mark
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.kinds import all_kinds, kinds_by_name
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.naming import Named, Names
from reconciler.model.text import quoted, several
from reconciler.model.values import JSON, MISSING, Path, mapping_of, value_at
from reconciler.workspace.references import escaped
from reconciler.workspace.resource_files import (
    Declaration,
    ResourceFiles,
    declarations,
    is_key,
)
from reconciler.workspace.sources import WORKSPACE_FILE, FolderSource
from reconciler.workspace.workspace_file import DEFAULTS, read_workspace
from reconciler.workspace.writing import write_files
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.loader import parse

_SCALAR = re.compile(r"""(?P<anchor>(?:&\S+\s+)?)(?P<quote>['"]?)(?P<text>.*)(?P=quote)""")


class Moved(EditedFiles, frozen=True, kw_only=True):
    """A resource that was renamed in files: `mv --format json`."""

    version = 1
    schema = "mv"

    old: Address
    """The former address."""
    new: Address
    """The address."""
    former_name: str | None = None
    """The name that was added to `renamed_from`."""
    places: int
    """The number of changed places."""


class MoveOptions(Struct, frozen=True):
    """What to rename: a resource, to another key, to another name, or both.

    `old` is anything that names a resource, `new` a key or an address. Without `write`, nothing is
    changed.
    """

    folder: FolderPath
    old: str
    new: str | None = None
    name: str | None = None
    write: bool = True


def move(options: MoveOptions, environ: Mapping[str, str]) -> Moved:
    """Rename a resource in all files that mention it: in all of them, or in none.

    Raises:
        InvalidConfiguration: the files have errors.
        BadUsage: the resource is unknown, or the new key is invalid or taken.
        ReconcilerError: a place cannot be edited safely.

    """
    check_files(options.folder, environ)
    source = FolderSource(options.folder)
    files = _parsed(source)
    declared = declarations(files, DiagnosticCollector())
    old = _resource(options.old, declared)
    new = _new_address(options, old, declared)
    renaming = _renaming(options, declared[old], new)
    results = {file.file: renamed(file, renaming) for file in files}
    moved = {file: result for file, result in results.items() if result is not None}
    texts = {file: with_mark(source, file, result.text) for file, result in moved.items()}
    _check(options.folder, old, texts, environ)
    if options.write:
        write_files(options.folder, texts)
    return Moved(
        old=old,
        new=new,
        texts=texts,
        changes=file_changes(files, texts),
        places=sum(result.places for result in moved.values()),
        former_name=renaming.former_name,
        written=options.write,
    )


def move_summary(moved: Moved) -> str:
    """Return `Renamed project.web to project.shop: 3 places in 2 files`, and what was added."""
    verb = "Renamed" if moved.written else "Would rename"
    where = f"{several(moved.places, 'place')} in {several(len(moved.texts), 'file')}"
    target = f" to {moved.new}" if moved.new != moved.old else ""
    lines = [f"{verb} {moved.old}{target}: {where}"]
    if moved.former_name is not None:
        lines.append(f"Added {quoted(moved.former_name)} to `renamed_from`")
    return "".join(f"{line}\n" for line in lines)


def _parsed(source: FolderSource) -> list[Document]:
    """Return all files of a valid workspace, `reconciler.yaml` first."""
    problems = DiagnosticCollector()
    workspace = read_workspace(source, problems)
    files = ResourceFiles(source, workspace, problems)
    return [workspace.document, *files.documents()]


def _resource(text: str, declared: Mapping[Address, Declaration]) -> Address:
    """Return the only resource that a text names, in any environment. Raises BadUsage."""
    return (
        Names(
            Named(address, names=(str(declaration.body.get("name", "")).strip(),))
            for address, declaration in declared.items()
        )
        .one(text)
        .address
    )


def _new_address(
    options: MoveOptions, old: Address, declared: Mapping[Address, Declaration]
) -> Address:
    """Return the new address. Raises BadUsage for a key that cannot be used."""
    if options.new is None and options.name is None:
        raise BadUsage("NEW is missing", hint="give a new key, --name, or both")
    if options.name is not None and not (options.name.strip() and options.name.isprintable()):
        raise BadUsage(f"invalid --name {quoted(options.name)}", hint="use one line of text")
    new = _address(options.new, old)
    if new == old and options.name is None:
        raise BadUsage(f"{old} has this key already")
    if not is_key(new.key):
        raise BadUsage(
            f"invalid key {quoted(new.key)}",
            hint="use letters, digits, _ - and . only; --name may be any text",
        )
    if new != old and new in declared:
        raise BadUsage(f"{new} exists already, at {declared[new].mark}", hint="use another key")
    return new


def _address(text: str | None, old: Address) -> Address:
    """Return the address of a key or an address of the same kind. Raises BadUsage."""
    if text is None:
        return old
    kind, dot, key = text.strip().partition(".")
    if not dot or kind not in kinds_by_name():
        return Address(old.kind, text.strip())
    if kind != old.kind:
        raise BadUsage(f"{old} cannot become a {kind}", hint=f"write a key, or {old.kind}.KEY")
    return Address(kind, key)


def _renaming(options: MoveOptions, declaration: Declaration, new: Address) -> Renaming:
    """Return what to edit. Raises ReconcilerError for a name that overrides set."""
    kind = kinds_by_name()[new.kind]
    old, name = declaration.address, declaration.body.get("name")
    if options.name is None or options.name == name:
        return Renaming(kind, old.key, new.key)
    for environment, layer in (declaration.body.get("overrides") or {}).items():
        if "name" in layer:
            path = (*declaration.path, "overrides", environment, "name")
            raise ReconcilerError(
                f"{declaration.document.mark(path)}: the overrides of {environment} set `name`",
                hint="change the names manually, and add the old ones to `renamed_from`",
            )
    # The base of a later plan may be this change itself, which does not have the old name.
    is_pinned = declaration.body.get("id") is not None
    former = None if is_pinned else str(name)
    return Renaming(kind, old.key, new.key, options.name, former)


def _check(
    folder: FolderPath, old: Address, texts: Mapping[str, str], environ: Mapping[str, str]
) -> None:
    """Raise ReconcilerError if the new texts have errors in any environment."""
    try:
        check_files(folder, environ, texts)
    except InvalidConfiguration as invalid:
        first = invalid.diagnostics[0]
        hint = first.hint
        if first.code == "unknown-parent":
            hint = "write the key at this place instead of a reference, and run mv again"
        raise ReconcilerError(
            f"{old} cannot be renamed: {first.at}: {first.message}; nothing was written", hint=hint
        ) from None


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


def renamed(document: Document, renaming: Renaming) -> Renamed | None:
    """Return a valid file with a resource renamed, None if it does not mention it.

    Raises ReconcilerError for a place that cannot be edited safely.
    """
    mentions = tuple(_mentions(document, renaming))
    if not mentions:
        return None
    edits = dict(_edit(document, mention) for mention in mentions)
    text = _spliced(document.text, edits)
    check_text(document, text, _expected(document.value, mentions))
    declared = value_at(document.value, (renaming.kind.collection, renaming.old))
    if renaming.former_name is not None and declared is not MISSING:
        moved = parse(text.encode(), document.file, DiagnosticCollector(), keep_nodes=True)
        path = (*renaming.path, "lifecycle", "renamed_from")
        names = value_at(moved.value, path)
        others = names if isinstance(names, list) else []
        text = edited(moved, [Edit(path, [renaming.former_name, *others])])
    return Renamed(text, len(edits))


def _mentions(document: Document, renaming: Renaming) -> Iterator[Mention]:
    """Yield every place that mentions the resource."""
    value = document.value if isinstance(document.value, dict) else {}
    children = [kind for kind in all_kinds() if kind.parent == renaming.kind.name]
    for kind in children:
        yield from _parents(value, (DEFAULTS, kind.name), kind, renaming)
    if document.file == WORKSPACE_FILE:
        yield from _in_policies(value, renaming)
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
