"""`reconciler promote`: edit the files so that an environment has the values of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
from msgspec import Struct

from reconciler.commands import completion
from reconciler.commands.command import command, option
from reconciler.commands.compare import Pair, compared, is_identity, open_pair, places_in
from reconciler.commands.options import files_options, folder_option, workspace_of
from reconciler.commands.process import write_note
from reconciler.commands.screen import write_differences
from reconciler.commands.workspace import Workspace
from reconciler.editing.editing import Edit, check_files, edited_texts
from reconciler.editing.writing import FileChange, changed_files
from reconciler.kinds import kinds_by_name
from reconciler.model.text import printable
from reconciler.model.values import JSON, Address, Path, leaves, value_at


@command(
    "promote",
    examples=(
        ("promote --from staging --to production", "Give production what staging has"),
        ("promote --from staging --to production lake --diff", "Show the edits for one resource"),
    ),
    page="docs/environments.md",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.resources)
@folder_option
@option(
    "--from",
    "first",
    metavar="A",
    required=True,
    shell_complete=completion.environments,
    help="Environment to take values from.",
)
@option(
    "--to",
    "second",
    metavar="B",
    required=True,
    shell_complete=completion.environments,
    help="Environment to change.",
)
@option("--diff", "--dry-run", "diff", is_flag=True, help="Write nothing; show what would change.")
@files_options
def promote_command(
    names: tuple[str, ...],
    *,
    first: str,
    second: str,
    diff: bool,
    **options: Any,
) -> None:
    """Edit the files so that environment B has the values of A. Then plan B.

    NAME is an address, an id, a key, a name or a glob of resources. Copies overrides that only A
    has, removes those that only B has, and adds B to `environments:` of resources that only A has.
    Intended differences stay: references, fields that both override, names, ids and secrets.
    Prints a patch.
    """
    workspace = workspace_of(options)
    pair = open_pair(workspace, (first, second))
    promoted = promote(workspace, pair, names, write=not diff)
    write_differences(promoted.changes)
    for address in promoted.paused:
        write_note(f"note: {address} gets `paused: true` in {printable(second)}, too\n")
    if not promoted.changes:
        write_note(f"Nothing to promote; see `compare {printable(f'{first} {second}')}`\n")


class Promoted(Struct, frozen=True):
    """The changes of files, and the resources that are paused in the second environment."""

    changes: Mapping[str, FileChange]
    paused: tuple[Address, ...]


def promote(
    workspace: Workspace,
    pair: Pair,
    names: Sequence[str] = (),
    *,
    write: bool = True,
) -> Promoted:
    """Edit overrides and lists of environments, in all files or in none.

    Only of the resources that names select, all without names. Without `write`, nothing is changed.

    Raises:
        InvalidConfiguration: the files have errors, or would have.
        BadUsage: an unknown environment or resource.
        ReconcilerError: a place cannot be edited safely.

    """
    comparison = compared(pair, names)
    edits: dict[Address, dict[Path, JSON]] = {}
    for item in comparison.unintended:
        edits.setdefault(item.address, {}).update(_overrides(pair, item.address, [item.path]))
    for only in comparison.only_first:
        given = pair[0].loaded.declared[only.address].body.get("environments")
        listed = given if isinstance(given, list) else pair[0].loaded.environments
        edits[only.address] = {
            ("environments",): [*listed, pair[1].name],
            **_overrides(pair, only.address),
        }
    declared = pair[0].loaded.declared
    pairs = [
        (declared[address].document, Edit((*declared[address].path, *path), value))
        for address, own in edits.items()
        for path, value in own.items()
    ]
    pairs.sort(key=lambda item: item[0].file)
    texts = edited_texts(workspace.folder, pairs)
    check_files(workspace.folder, pair[0].environ, texts)
    paused = tuple(
        address
        for address, own in edits.items()
        if own.get(("overrides", pair[1].name, "paused")) is True
    )
    return Promoted(changed_files(workspace.folder, texts, write=write), paused)


def _overrides(
    pair: Pair, address: Address, paths: Sequence[Path] | None = None
) -> dict[Path, JSON]:
    """Return the overrides to set, or `MISSING` to remove, in a resource, by path.

    They are those at `paths`, by default all that only one environment has.
    """
    first, second = (side.overrides(address) for side in pair)
    if paths is None:
        kind = kinds_by_name()[address.kind]
        written = [path for side in (first, second) for path, _ in leaves(side)]
        known = [(kind.field_named(str(path[0])), path) for path in written]
        named = [(item.name, *path[1:]) if item is not None else path for item, path in known]
        paths = [path for path in named if not is_identity(pair, address, path)]
    edits: dict[Path, JSON] = {}
    for path in paths:
        places = places_in(pair, address, path)
        if None in places:
            at = places[0] or places[1] or ()
            edits["overrides", pair[1].name, *at] = value_at(first, at)
    return edits
