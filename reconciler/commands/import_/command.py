"""`reconciler import`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from reconciler.commands import completing
from reconciler.commands.command import command, option
from reconciler.commands.options import (
    KINDS,
    PARENTS,
    format_option,
    rate_option,
    workspace_of,
    workspace_options,
)
from reconciler.commands.output import render_options
from reconciler.commands.streams import write_message, write_result
from reconciler.errors import ExitCode
from reconciler.kinds import kinds_by_name
from reconciler.render.formats import writer_of

_KINDS = ", ".join(kinds_by_name())


@command(
    "import",
    examples=(
        ("import", "Import everything that is not in the files"),
        ("import --project 'Web shop' --dry-run", "Show what would be written for one project"),
        (
            "import 0192a3c4-0000-0000-0000-5b6d7e8f9a0b --into exports/web.yaml",
            "Import one object into a file",
        ),
    ),
    page="docs/adopt.md",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources)
@workspace_options
@rate_option
@option("--project", **PARENTS, help="Only these projects and their contents.")
@option("--kind", **KINDS, help=f"Only objects of these kinds: {_KINDS}.")
@option("--into", default="", metavar="PATH", help="File or folder in the workspace to write to.")
@option(
    "--share-secrets",
    is_flag=True,
    help="Use one variable for exports with the same host, bucket, account or warehouse project.",
)
@option("--dry-run", is_flag=True, help="Write nothing; show a diff.")
@format_option("imported")
def import_command(names: tuple[str, ...], *, output_format: str, **options: Any) -> ExitCode:
    """Write live objects into files of the workspace. Does not change live state.

    Imports everything that is not in the files yet, or what NAME selects: name, id, key, address or
    glob. An id also selects what no list shows. A plan of the written files is empty: this is
    checked before any file changes. Existing files are extended.

    The API hides secrets: each becomes a reference to an environment variable, and these are
    listed. Exits with 1 if an object can't be imported; the others are.
    """
    from reconciler.commands.import_.choice import Choice
    from reconciler.commands.import_.run import import_live, remarks_on_import
    from reconciler.commands.running import run_shown

    choice = Choice(names, parents=options["project"], kinds=options["kind"])
    how = {name: options[name] for name in ("into", "dry_run", "share_secrets")}
    imported = run_shown(partial(import_live, choice=choice, **how), workspace_of(options))
    write_result(writer_of(output_format, "imported")(imported, render_options()))
    write_message(remarks_on_import(imported))
    return ExitCode.ERROR if imported.refused else ExitCode.FINE
