"""`reconciler init`."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import click

from reconciler.cli.exit_codes import exit_code_of_import
from reconciler.cli.import_ import layout_option
from reconciler.cli.options import folder_option
from reconciler.cli.output import runtime
from reconciler.commands.importing import ImportOptions, import_live
from reconciler.commands.initialising import InitOptions, initialise, refresh_schemas
from reconciler.commands.runtime import WorkspaceOptions
from reconciler.errors import ExitCode
from reconciler.importing.placing import Layout
from reconciler.render.imports import imported_as_text, remarks_on_import


@click.command("init")
@folder_option
@click.option(
    "-e",
    "--environment",
    default="production",
    show_default=True,
    metavar="NAME",
    help="The first environment.",
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
@click.option("--import", "with_import", is_flag=True, help="Import live state too.")
@layout_option
@click.option("--schemas", is_flag=True, help="Only overwrite the schemas for editors.")
def command(**options: Any) -> int:
    """Create a workspace, with comments that explain its files.

    The schemas for editors go into .reconciler/, and the files refer to them. Existing files are
    not overwritten.
    """
    if options["schemas"]:
        _print_files(refresh_schemas(options["folder"]))
        return ExitCode.FINE
    folder, environment = options["folder"], options["environment"]
    workspace = InitOptions(
        folder=folder,
        environment=environment,
        base_url=options["base_url"],
        organization=options["organization"],
        key_variable=options["key_variable"],
        with_import=options["with_import"],
    )
    _print_files(initialise(workspace, os.environ))
    if not options["with_import"]:
        click.echo(
            "next: add resources or run `reconciler import`, then `reconciler plan`", err=True
        )
        return ExitCode.FINE
    request = ImportOptions(WorkspaceOptions(folder, environment), layout=Layout(options["layout"]))
    imported = asyncio.run(import_live(request, runtime()))
    click.echo(imported_as_text(imported), nl=False)
    click.echo(remarks_on_import(imported), nl=False, err=True)
    return exit_code_of_import(imported)


def _print_files(files: tuple[str, ...]) -> None:
    click.echo("".join(f"+ {name}\n" for name in files), nl=False)
