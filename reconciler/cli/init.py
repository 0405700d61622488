"""`reconciler init`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.command import command, option
from reconciler.cli.import_ import import_and_print, layout_option
from reconciler.cli.options import new_folder_option
from reconciler.cli.streams import write_note, write_result
from reconciler.commands.options import WorkspaceOptions
from reconciler.commands.pipelines import RECIPES
from reconciler.errors import ExitCode
from reconciler.model.text import printable

if TYPE_CHECKING:
    from reconciler.commands.initialising import InitOptions
    from reconciler.importing.texts import Layout


@command(
    "init",
    examples=(
        (
            "init --base-url https://eu.posthog.com --organization 0188461e-…",
            "Create a workspace in the current folder",
        ),
        ("init -C pipelines --import", "Create one in a folder, from live state"),
        ("init --ci github -C pipelines", "Add workflows for a workspace to its repository"),
    ),
    page="docs/importing.md",
)
@new_folder_option
@option(
    "-e",
    "--environment",
    default="production",
    show_default=True,
    metavar="NAME",
    help="The first environment.",
)
@option("--base-url", metavar="URL", help="Address of the service. [RECONCILER_BASE_URL]")
@option("--organization", metavar="ID", help="Organization. [RECONCILER_ORGANIZATION]")
@option(
    "--api-key-variable",
    "key_variable",
    default="RECONCILER_API_KEY",
    show_default=True,
    metavar="VARIABLE",
    help="Variable that holds the API key.",
)
@option("--import", "with_import", is_flag=True, help="Import live state too.")
@layout_option
@option(
    "--ci",
    "host",
    type=click.Choice(tuple(RECIPES)),
    help="Also write a pipeline into the repository; of an existing workspace, only this.",
)
@option("--schemas", is_flag=True, help="Only overwrite the schemas for editors.")
def init_command(*, schemas: bool, layout: Layout | None, host: str | None, **options: Any) -> int:
    """Create a workspace, with comments that explain its files.

    The schemas for editors go into .reconciler/, and the files refer to them. Existing files are
    not overwritten.
    """
    from reconciler.cli.running import runtime
    from reconciler.commands.importing import ImportOptions
    from reconciler.commands.initialising import (
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
    if not workspace.with_import:
        write_note("next: add resources or run `reconciler import`, then `reconciler plan`\n")
        return ExitCode.FINE
    # Its reconciler.yaml contains only what the options say.
    created = WorkspaceOptions(workspace.folder, workspace.environment, trust_workspace=True)
    return import_and_print(ImportOptions(created, layout=layout))


def _print_recipe(host: str, workspace: InitOptions) -> None:
    from reconciler.commands.pipelines import write_recipe

    recipe = write_recipe(host, workspace.folder, workspace.environment)
    _print_files(recipe.written)
    for name in recipe.kept:
        write_note(f"kept {printable(name)}, which exists\n")


def _print_files(files: tuple[str, ...]) -> None:
    write_result("".join(f"+ {printable(name)}\n" for name in files))
