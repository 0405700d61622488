"""The use case `mv`: rename the key of a resource in all files of a workspace."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from reconciler.authoring.renaming import Renamed, Renaming, renamed
from reconciler.authoring.writing import write_files
from reconciler.diagnostics import Diagnostic, DiagnosticCollector, InvalidConfiguration, Level
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.model.file_change import FileChange, Moved
from reconciler.model.kind import Kind
from reconciler.model.naming import Named, Names
from reconciler.model.text import quoted
from reconciler.workspace.declarations import Declaration, declarations, is_key
from reconciler.workspace.loading import load_all
from reconciler.workspace.redaction import side_of
from reconciler.workspace.resource_files import Recognition, ResourceFiles
from reconciler.workspace.sources import FolderSource
from reconciler.workspace.workspace_file import read_workspace
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.loader import parse


class MoveOptions(Struct, frozen=True):
    """What to rename: a resource, to another key, to another name, or both.

    `old` is anything that names a resource, `new` a key or an address. Without `write`, nothing is
    changed.
    """

    folder: Path
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
    _raise_errors(load_all(options.folder, kinds=all_kinds(), environ=environ))
    source = FolderSource(options.folder)
    files = _parsed(source)
    declared = declarations(files, all_kinds(), DiagnosticCollector())
    old = _resource(options.old, declared)
    new = _new_address(options, old, declared)
    renaming = _renaming(options, declared[old], new)
    results = {file.file: renamed(file, renaming, all_kinds()) for file in files}
    moved = {file: result for file, result in results.items() if result is not None}
    texts = {file: f"{_mark_of(source, file)}{result.text}" for file, result in moved.items()}
    _check(options.folder, old, texts, environ)
    if options.write:
        write_files(options.folder, texts)
    return Moved(
        old=old,
        new=new,
        texts=texts,
        changes=_changes(files, moved),
        places=sum(result.places for result in moved.values()),
        former_name=renaming.former_name,
        written=options.write,
    )


def _raise_errors(diagnostics: Sequence[Diagnostic]) -> None:
    errors = tuple(item for item in diagnostics if item.level is Level.ERROR)
    if errors:
        raise InvalidConfiguration(errors)


def _parsed(source: FolderSource) -> list[Document]:
    """Return all files of a valid workspace, `reconciler.yaml` first."""
    problems = DiagnosticCollector()
    workspace = read_workspace(source, problems)
    files = ResourceFiles(source, workspace, Recognition(all_kinds()), problems)
    return [workspace.document, *files.documents()]


def _mark_of(source: FolderSource, file: str) -> str:
    """Return the byte order mark of a file, which its document does not have."""
    return "\ufeff" if (source.read(file) or b"").startswith(BOM_UTF8) else ""


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
    if not dot or kind not in [known.name for known in all_kinds()]:
        return Address(old.kind, text.strip())
    if kind != old.kind:
        raise BadUsage(f"{old} cannot become a {kind}", hint=f"write a key, or {old.kind}.KEY")
    return Address(kind, key)


def _renaming(options: MoveOptions, declaration: Declaration, new: Address) -> Renaming:
    """Return what to edit. Raises ReconcilerError for a name that overrides set."""
    kind = _kind(new.kind)
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


def _kind(name: str) -> Kind:
    return next(kind for kind in all_kinds() if kind.name == name)


def _check(
    folder: Path, old: Address, texts: Mapping[str, str], environ: Mapping[str, str]
) -> None:
    """Raise ReconcilerError if the new texts have errors in any environment."""
    try:
        _raise_errors(load_all(folder, kinds=all_kinds(), environ=environ, drafts=texts))
    except InvalidConfiguration as invalid:
        first = invalid.diagnostics[0]
        hint = first.hint
        if first.code == "unknown-parent":
            hint = "write the key at this place instead of a reference, and run mv again"
        raise ReconcilerError(
            f"{old} cannot be renamed: {first.at}: {first.message}; nothing was written", hint=hint
        ) from None


def _changes(files: Sequence[Document], moved: Mapping[str, Renamed]) -> dict[str, FileChange]:
    before = {file.file: file for file in files}
    return {
        name: FileChange(
            side_of(before[name]), side_of(parse(result.text.encode(), name, DiagnosticCollector()))
        )
        for name, result in moved.items()
    }
