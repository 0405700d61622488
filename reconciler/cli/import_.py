"""`reconciler import`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.command import command, option
from reconciler.cli.exit_codes import exit_code_of_import
from reconciler.cli.options import (
    KINDS,
    NAMES,
    PARENTS,
    client_options,
    format_option,
    workspace_of,
    workspace_options,
)
from reconciler.cli.output import render_options
from reconciler.cli.streams import write_message, write_result
from reconciler.importing.texts import Layout
from reconciler.kinds import all_kinds
from reconciler.render.formats import DEFAULT, writer_of

if TYPE_CHECKING:
    from reconciler.commands.importing import ImportOptions

layout_option = option(
    "--layout",
    type=click.Choice([layout.value for layout in Layout]),
    callback=lambda _, __, layout: Layout(layout) if layout is not None else None,
    help="How to distribute resources over files. Default: to the file with the other exports of "
    "the project, otherwise by-project.",
)


_KINDS = ", ".join(kind.name for kind in all_kinds())


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
    page="docs/importing.md",
)
@workspace_options
@client_options
@option("--project", **PARENTS, help="Only these projects and what is in them.")
@option("--name", **NAMES, help="Only these objects: name, id, key, address or glob.")
@option("--kind", **KINDS, help=f"Only objects of these kinds: {_KINDS}.")
@option("--id", "ids", multiple=True, metavar="ID", help="Only these, even if no list shows them.")
@layout_option
@option("--into", default="", metavar="PATH", help="File or folder below the workspace.")
@option(
    "--force",
    is_flag=True,
    help="Overwrite existing files with live state; report anything lost.",
)
@option("--dry-run", is_flag=True, help="Show what would be written, as a diff.")
@format_option("imported")
def import_command(*, output_format: str, **options: Any) -> int:
    """Write live objects into files of the workspace. Does not change live state.

    Without options, imports everything that is not in the files yet. A plan of the written files
    is empty: this is checked before any file changes. Existing files are extended.

    The API hides secrets: each becomes a reference to an environment variable, and these are
    listed. Exits with 1 if an object can't be imported; the others are.
    """
    from reconciler.commands.importing import ImportOptions
    from reconciler.importing.choosing import Choice

    request = ImportOptions(
        workspace=workspace_of(options),
        choice=Choice(
            names=options["name"],
            ids=options["ids"],
            parents=options["project"],
            kinds=options["kind"],
        ),
        layout=options["layout"],
        into=options["into"],
        force=options["force"],
        dry_run=options["dry_run"],
    )
    return import_and_print(request, output_format)


def import_and_print(request: ImportOptions, output_format: str = DEFAULT) -> int:
    """Import, print what was done and what was not, and return the exit code."""
    from reconciler.cli.running import run_shown, runtime
    from reconciler.commands.importing import import_live
    from reconciler.model.redaction import masked_in
    from reconciler.render.imports import remarks_on_import

    world = runtime()
    imported = masked_in(run_shown(partial(import_live, request), world), world.mask)
    write_result(writer_of(output_format, "imported")(imported, render_options()))
    write_message(remarks_on_import(imported))
    return exit_code_of_import(imported)
