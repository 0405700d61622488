"""`reconciler mv`: rename the key of a resource, and the references to it, in all files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path as FolderPath

import click
from msgspec import Struct

from reconciler.commands import completion
from reconciler.commands.command import command, option
from reconciler.commands.options import folder_of, folder_option
from reconciler.commands.process import write_note
from reconciler.commands.screen import write_differences
from reconciler.diagnostics import DiagnosticCollector, InvalidConfiguration, Mark
from reconciler.editing.editing import Edit, check_files, check_text, edited, with_mark
from reconciler.editing.writing import FileChange, changed_files
from reconciler.editing.yaml_text import yaml_item
from reconciler.errors import BadUsage
from reconciler.files.resource_files import ResourceFiles, declarations, is_key
from reconciler.files.sources import FolderSource
from reconciler.files.workspace_file import DEFAULTS, read_workspace
from reconciler.files.yaml_document import Document
from reconciler.files.yaml_loader import parse
from reconciler.kinds import all_kinds, kinds_by_name
from reconciler.model.text import quoted, several
from reconciler.model.values import JSON, Address, Path, leaves, mapping_of, value_at
from reconciler.planning.select import Named, Names


@command(
    "mv",
    examples=(
        ("mv web shop", "Rename the key of a resource in all files"),
        ("mv batch_export.orders orders-hourly --diff", "Show what would change"),
    ),
    page="docs/configuration.md",
)
@folder_option
@option("--diff", "--dry-run", "diff", is_flag=True, help="Write nothing; show what would change.")
@click.argument("old", shell_complete=completion.resources)
@click.argument("new")
def mv_command(folder: FolderPath | None, old: str, new: str, *, diff: bool) -> None:
    """Rename the key of a resource in all files that refer to it, without changing live state.

    OLD is the address, key or name of a resource, NEW a key. Changes the key, and references of
    other resources, defaults and overrides to it. Policies stay, and places that name the resource
    are printed. Prints a patch.
    """
    moved = move(folder_of(folder), old, new, os.environ, write=not diff)
    write_differences(moved.changes)
    write_note(move_summary(moved, "Would rename" if diff else "Renamed"))


class Moved(Struct, frozen=True):
    """A resource that was renamed in files, and places in policies that have its former name."""

    old: Address
    new: Address
    changes: Mapping[str, FileChange]
    policies: tuple[Mark, ...]


def move(
    folder: FolderPath, old_name: str, key: str, environ: Mapping[str, str], *, write: bool
) -> Moved:
    """Give a resource another key in all files that mention it: in all of them, or in none.

    Raises:
        InvalidConfiguration: the files have errors, or would have; nothing was written.
        BadUsage: the resource is unknown, or the new key is invalid or taken.
        ReconcilerError: a place cannot be edited safely.

    """
    source, problems = FolderSource(folder), DiagnosticCollector()
    workspace = read_workspace(source, problems)
    files = [workspace.document, *ResourceFiles(source, workspace, problems).documents()]
    if problems.failed:
        raise InvalidConfiguration(problems.in_order())
    declared = declarations(files, problems)
    bodies = {address: declaration.body for address, declaration in declared.items()}
    names = (Named(at, names=(str(body.get("name", "")).strip(),)) for at, body in bodies.items())
    old = Names(names).one(old_name).address
    new = Address(old.kind, key.strip().removeprefix(f"{old.kind}."))
    if not is_key(new.key):
        hint = "use letters, digits, _ - and . only"
        raise BadUsage(f"invalid key {quoted(new.key)}", hint=hint)
    if new in declared:
        raise BadUsage(f"{new} exists already, at {declared[new].mark}", hint="use another key")
    edits = {file.file: renamed(file, old, new) for file in files}
    texts = {name: with_mark(source, name, text) for name, text in edits.items() if text}
    check_files(folder, environ, texts)
    changes = changed_files(folder, texts, write=write)
    policies = tuple(dict.fromkeys(_in_policies(workspace.document, old)))
    return Moved(old, new, changes, policies)


def renamed(document: Document, old: Address, new: Address) -> str | None:
    """Return the text of a file with another key, None for one that does not have the old one."""
    paths = list(_references(document.value, old))
    text = edited(document, [Edit(path, new.key) for path in paths]) if paths else document.text
    collection = kinds_by_name()[old.kind].collection
    if old.key not in mapping_of(value_at(document.value, (collection,))):
        return text if paths else None
    moved = parse(text.encode(), document.file, DiagnosticCollector())
    mark, lines = moved.key_mark((collection, old.key)), text.splitlines(keepends=True)
    line, start = lines[mark.line - 1], mark.column - 1
    written, rest = line[start : start + mark.length], line[start + mark.length :]
    after = new.key if written.endswith(("'", '"')) else yaml_item(new.key)
    lines[mark.line - 1] = f"{line[:start]}{written.replace(old.key, after)}{rest}"
    value = mapping_of(moved.value)
    keys = {new.key if key == old.key else key: body for key, body in value[collection].items()}
    check_text(moved, "".join(lines), {**value, collection: keys})
    return "".join(lines)


def _references(value: JSON, old: Address) -> Iterator[Path]:
    """Yield the paths of references to a resource as the parent of others, in all layers."""
    for kind in (kind for kind in all_kinds() if kind.parent == old.kind):
        members = mapping_of(value_at(value, (kind.collection,)))
        for path in ((DEFAULTS, kind.name), *((kind.collection, key) for key in members)):
            overrides = mapping_of(value_at(value, (*path, "overrides")))
            for layer in (path, *((*path, "overrides", name) for name in overrides)):
                if value_at(value, (*layer, str(kind.parent_key))) == old.key:
                    yield (*layer, str(kind.parent_key))


def _in_policies(workspace: Document, old: Address) -> Iterator[Mark]:
    for path, leaf in leaves(workspace.value):
        if "policy" in path and {str(old), old.key} & {leaf, *path}:
            yield workspace.key_mark(path)


def move_summary(moved: Moved, verb: str) -> str:
    """Return `Renamed project.web to project.shop in 2 files`, and what stays."""
    notes = (f"note: check {mark}, which may mean {moved.old}\n" for mark in moved.policies)
    files = several(len(moved.changes), "file")
    return "".join([f"{verb} {moved.old} to {moved.new} in {files}\n", *notes])
