"""`reconciler help`."""

from __future__ import annotations

import click

from reconciler.cli.command import command
from reconciler.cli.group import COMMANDS, command_of
from reconciler.cli.streams import write_result
from reconciler.errors import BadUsage
from reconciler.model.address import choice


def _names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in COMMANDS if name.startswith(incomplete)]


@command(
    "help",
    examples=(
        ("help", "List the commands"),
        ("help plan", "Show the options and examples of `plan`"),
    ),
    page="README.md",
)
@click.argument("name", required=False, metavar="[COMMAND]", shell_complete=_names)
@click.pass_context
def help_command(context: click.Context, name: str | None) -> None:
    """Show the help of a command, or of the program."""
    root = context.find_root()
    if name is None:
        write_result(f"{root.command.get_help(root)}\n")
        return
    if name not in COMMANDS:
        raise BadUsage(f"unknown command '{name}'", hint=choice(name, COMMANDS, "commands"))
    shown = command_of(name)
    write_result(f"{shown.get_help(shown.context_class(shown, info_name=name, parent=root))}\n")
