"""`reconciler import`."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from reconciler.cli.options import import_options, import_request, workspace_options
from reconciler.cli.output import runtime
from reconciler.commands.importing import import_live
from reconciler.errors import ExitCode
from reconciler.render.imports import import_as_diff, imported_as_text, remarks_on_import


@click.command("import")
@workspace_options
@import_options
def command(**options: Any) -> int:
    """Write live objects into files of the workspace. Changes nothing on the live side.

    Without options, everything that is not in the files yet is imported. The plan of what is
    written is empty: that is checked before a file is touched. Existing files are extended.
    """
    request = import_request(options)
    done = asyncio.run(import_live(request, runtime()))
    draw = import_as_diff if request.dry_run else imported_as_text
    click.echo(draw(done), nl=False)
    click.echo(remarks_on_import(done), nl=False, err=True)
    return ExitCode.ERROR if done.refused else ExitCode.FINE
