"""`reconciler import`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from reconciler.cli.options import import_options, import_request, workspace_options
from reconciler.cli.output import colour_wanted, runtime
from reconciler.commands.importing import import_live
from reconciler.errors import ExitCode
from reconciler.render.imports import (
    import_as_diff,
    import_as_json,
    imported_as_text,
    remarks_on_import,
)


@click.command("import")
@workspace_options
@import_options
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to tell what was imported.",
)
def command(*, output_format: str, **options: Any) -> int:
    """Write live objects into files of the workspace. Changes nothing on the live side.

    Without options, everything that is not in the files yet is imported. The plan of what is
    written is empty: that is checked before a file is touched. Existing files are extended.

    Secrets can't be read back: each becomes a reference to an environment variable, and those are
    listed. Exits with 1 if an object could not be imported; the others are.
    """
    request = import_request(options)
    done = asyncio.run(import_live(request, runtime()))
    if output_format == "json":
        click.echo(import_as_json(done), nl=False)
    elif request.dry_run:
        click.echo(import_as_diff(done, colour=colour_wanted(sys.stdout)), nl=False)
    else:
        click.echo(imported_as_text(done), nl=False)
    click.echo(remarks_on_import(done), nl=False, err=True)
    return ExitCode.ERROR if done.refused else ExitCode.FINE
