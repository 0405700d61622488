"""`reconciler init`."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import click

from reconciler.cli.import_ import layout_option
from reconciler.cli.options import folder_option
from reconciler.cli.output import runtime
from reconciler.commands.importing import ImportOptions, import_live
from reconciler.commands.initialising import (
    InitOptions,
    check_reachable,
    initialise,
    refresh_schemas,
)
from reconciler.commands.placing import Layout
from reconciler.commands.runtime import WorkspaceOptions
from reconciler.errors import ExitCode
from reconciler.render.imports import imported_as_text, remarks_on_import


@click.command("init")
@folder_option
@click.option(
    "-e",
    "--environment",
    default="production",
    show_default=True,
    metavar="NAME",
    help="Its first environment.",
)
@click.option("--base-url", metavar="URL", help="Address of the service. [RECONCILER_BASE_URL]")
@click.option("--organization", metavar="ID", help="Organization. [RECONCILER_ORGANIZATION]")
@click.option(
    "--api-key-variable",
    "key_variable",
    default="RECONCILER_API_KEY",
    show_default=True,
    metavar="VARIABLE",
    help="Variable that holds the API key.",
)
@click.option("--import", "with_import", is_flag=True, help="Write what is live into files too.")
@layout_option
@click.option("--schemas", is_flag=True, help="Just write the schemas for editors anew.")
def command(**options: Any) -> int:
    """Make a new workspace, with comments that say what may stand in it.

    The schemas for editors go into .reconciler/, and files name them. Nothing that is there is
    written over.
    """
    if options["schemas"]:
        _tell(refresh_schemas(options["folder"]))
        return ExitCode.FINE
    importing = options["with_import"]
    asked = InitOptions(
        folder=options["folder"],
        environment=options["environment"],
        base_url=options["base_url"],
        organization=options["organization"],
        key_variable=options["key_variable"],
        examples=not importing,
    )
    if importing:
        check_reachable(asked, os.environ)
    _tell(initialise(asked, os.environ))
    if not importing:
        click.echo(
            "Next: declare resources, or import what is live; then: reconciler plan", err=True
        )
        return ExitCode.FINE
    request = ImportOptions(
        WorkspaceOptions(asked.folder, asked.environment), layout=Layout(options["layout"])
    )
    done = asyncio.run(import_live(request, runtime()))
    click.echo(imported_as_text(done), nl=False)
    click.echo(remarks_on_import(done), nl=False, err=True)
    return ExitCode.ERROR if done.refused else ExitCode.FINE


def _tell(files: tuple[str, ...]) -> None:
    click.echo("".join(f"+ {name}\n" for name in files), nl=False)
