"""`reconciler init`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from reconciler.commands.command import command, option
from reconciler.commands.init.recipes import RECIPES
from reconciler.commands.options import new_folder_option, next_command, runtime
from reconciler.commands.streams import write_note, write_result
from reconciler.errors import ExitCode
from reconciler.model.connection import ADDRESS
from reconciler.model.text import printable

if TYPE_CHECKING:
    from reconciler.commands.init.files import InitOptions


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
