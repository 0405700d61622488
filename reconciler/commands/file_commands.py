"""`reconciler import`, `init` and `mv`: commands that write the files of a workspace."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.commands import completing
from reconciler.commands.command import command, option
from reconciler.commands.init.recipes import RECIPES
from reconciler.commands.options import (
    KINDS,
    NAMES,
    PARENTS,
    folder_of,
    folder_option,
    format_option,
    new_folder_option,
    next_command,
    rate_option,
    runtime,
    workspace_of,
    workspace_options,
)
from reconciler.commands.output import render_options, style_of
from reconciler.commands.streams import write_message, write_note, write_result
from reconciler.errors import ExitCode
from reconciler.kinds import kinds_by_name
from reconciler.model.connection import ADDRESS
from reconciler.model.text import printable
from reconciler.render.formats import writer_of

if TYPE_CHECKING:
    from reconciler.commands.init.files import InitOptions


_KINDS = ", ".join(kinds_by_name())


@command(
    "import",
    examples=(
        ("import", "Import everything that is not in the files"),
        ("import --project 'Web shop' --dry-run", "Show what would be written for one project"),
        (
            "import --id 0192a3c4-0000-0000-0000-5b6d7e8f9a0b --into exports/web.yaml",
            "Import one object into a file",
        ),
    ),
    page="docs/adopt.md",
)
@workspace_options
@rate_option
@option("--project", **PARENTS, help="Only these projects and their contents.")
@option("--name", **NAMES, help="Only these objects: name, id, key, address or glob.")
@option("--kind", **KINDS, help=f"Only objects of these kinds: {_KINDS}.")
@option(
    "--id",
    "ids",
    multiple=True,
    metavar="ID",
    help="Only the object with this id, even if no list shows it.",
)
@option("--into", default="", metavar="PATH", help="File or folder in the workspace to write to.")
@option(
    "--share-secrets",
    is_flag=True,
    help="Use one variable for exports with the same host, bucket, account or warehouse project.",
)
@option("--dry-run", is_flag=True, help="Write nothing; show a diff.")
@format_option("imported")
def import_command(*, output_format: str, **options: Any) -> int:
    """Write live objects into files of the workspace. Does not change live state.

    Without options, imports everything that is not in the files yet. A plan of the written files
    is empty: this is checked before any file changes. Existing files are extended.

    The API hides secrets: each becomes a reference to an environment variable, and these are
    listed. Exits with 1 if an object can't be imported; the others are.
    """
    from reconciler.commands.import_.choice import Choice
    from reconciler.commands.import_.run import import_live, remarks_on_import
    from reconciler.commands.running import run_shown

    choice = Choice(
        names=options["name"],
        ids=options["ids"],
        parents=options["project"],
        kinds=options["kind"],
    )
    how = {name: options[name] for name in ("into", "dry_run", "share_secrets")}
    imported = run_shown(partial(import_live, choice=choice, **how), workspace_of(options))
    write_result(writer_of(output_format, "imported")(imported, render_options()))
    write_message(remarks_on_import(imported))
    return ExitCode.ERROR if imported.refused else ExitCode.FINE


@command(
    "init",
    examples=(
        (
            "init --base-url https://eu.posthog.com --organization 0188461e-…",
            "Create a workspace in the current folder",
        ),
        ("init --ci github -C pipelines", "Add workflows for a workspace to its repository"),
    ),
    page="docs/adopt.md",
)
@new_folder_option
@option(
    "-e",
    "--environment",
    default="production",
    show_default=True,
    metavar="NAME",
    help="Name of the first environment.",
)
@option(
    "--base-url",
    envvar=ADDRESS["base_url"],
    metavar="URL",
    help=f"Address of the service. [{ADDRESS['base_url']}]",
)
@option(
    "--organization",
    envvar=ADDRESS["organization"],
    metavar="ID",
    help=f"Id of the organization. [{ADDRESS['organization']}]",
)
@option(
    "--ci",
    "host",
    type=click.Choice(tuple(RECIPES)),
    help="Also write a CI pipeline. In an existing workspace, write only that.",
)
@option(
    "--schemas",
    is_flag=True,
    help="Only write JSON Schemas to .reconciler/: of files, plans, events.",
)
def init_command(*, schemas: bool, host: str | None, **options: Any) -> int:
    """Create a workspace, with comments that explain its files.

    The schemas for editors go into .reconciler/, and the files refer to them. Existing files are
    not overwritten.
    """
    from reconciler.commands.init.files import (
        InitOptions,
        has_workspace,
        initialise,
        refresh_schemas,
    )

    workspace = InitOptions(**options)
    if schemas:
        _print_files(refresh_schemas(workspace.folder))
        return ExitCode.FINE
    if host is not None and has_workspace(workspace.folder):
        _print_recipe(host, workspace)
        return ExitCode.FINE
    _print_files(initialise(workspace, runtime()))
    if host is not None:
        _print_recipe(host, workspace)
    importing, planning = next_command("import"), next_command("plan")
    write_note(f"next: add resources or run `{importing}`, then `{planning}`\n")
    return ExitCode.FINE


def _print_recipe(host: str, workspace: InitOptions) -> None:
    from reconciler.commands.init.recipes import write_recipe

    recipe = write_recipe(host, workspace)
    _print_files(recipe.written)
    for name in recipe.kept:
        write_note(f"kept {printable(name)}, which exists\n")
    write_note(recipe.next_steps)


def _print_files(files: tuple[str, ...]) -> None:
    write_result("".join(f"+ {printable(name)}\n" for name in files))


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
@click.argument("old", shell_complete=completing.resources)
@click.argument("new")
def mv_command(folder: Path | None, old: str, new: str, *, diff: bool) -> None:
    """Rename the key of a resource in all files that refer to it, without changing live state.

    OLD is the address, key or name of a resource, NEW a key. Changes the key, and references of
    other resources, defaults and overrides to it. Policies stay, and places that name the resource
    are printed. Prints a patch.
    """
    from reconciler.commands.edits import differences_as_text
    from reconciler.commands.mv import move, move_summary

    moved = move(folder_of(folder), old, new, os.environ, write=not diff)
    write_result(differences_as_text(moved.changes, style_of(sys.stdout)))
    write_note(move_summary(moved, "Would rename" if diff else "Renamed"))
