"""`reconciler compare`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from reconciler.cli import completing
from reconciler.cli.command import command, option
from reconciler.cli.options import (
    client_options,
    files_options,
    folder_option,
    format_option,
    workspace_of,
)
from reconciler.errors import ExitCode


@command(
    "compare",
    examples=(
        ("compare staging production", "Show what differs in the files, without a network"),
        ("compare staging production --live", "Compare what is live in both environments"),
        ("compare staging production lake 'orders-*' --verbose", "Compare some resources"),
    ),
    page="docs/operations.md",
)
@click.argument("first", metavar="A", shell_complete=completing.environments)
@click.argument("second", metavar="B", shell_complete=completing.environments)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources)
@folder_option
@files_options
@option("--live", is_flag=True, help="Compare live states, with the connection of each.")
@format_option("compared")
@client_options
def compare_command(
    first: str,
    second: str,
    names: tuple[str, ...],
    *,
    live: bool,
    output_format: str,
    **options: Any,
) -> ExitCode:
    """Show how environment B differs from A. Changes nothing.

    NAME is an address, an id, a key, a name or a glob of resources. A difference is intended if it
    comes from a reference such as ${var:bucket}, if both environments override the field, or if it
    is a name, an id or a secret. Exits with 2 if there are other differences.
    """
    from reconciler.cli.running import show_report
    from reconciler.commands.comparing import CompareRequest, compare

    request = CompareRequest(workspace_of(options), first, second, live, names)
    result = show_report("compared", output_format, partial(compare, request))
    return ExitCode.FINE if result.report.is_equal else ExitCode.CHANGES
