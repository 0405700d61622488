"""`reconciler drift`."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import click

from reconciler.cli import completing
from reconciler.cli.command import command, option
from reconciler.cli.options import (
    base_option,
    client_options,
    format_option,
    workspace_of,
    workspace_options,
)
from reconciler.cli.output import render_options
from reconciler.commands.plan_request import PlanRequest
from reconciler.errors import ExitCode


@command(
    "drift",
    examples=(
        ("drift", "Show what changed in live state, and who changed it"),
        ("drift 'orders-*' --no-attribute", "Look at some resources, without the activity log"),
        ("drift -e production --format markdown", "Show drift as a comment or an issue"),
    ),
    page="docs/operations.md",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources)
@workspace_options
@base_option
@option(
    "--attribute/--no-attribute",
    default=True,
    help="Read who changed it from the activity log, with a call for each drifted object.",
)
@format_option("drift")
@client_options
def drift_command(
    names: tuple[str, ...], *, output_format: str, attribute: bool, base: str | None, **options: Any
) -> ExitCode:
    """Show what changed in live state since the git base. Changes nothing.

    Shows all resources, or those that NAME selects: address, id, key, name or glob. What changed in
    the files is not drift. Exits with 2 if there is drift. Write it into the files with `pull`, or
    set it back with `apply`.
    """
    from reconciler.cli.running import show_report
    from reconciler.commands.drifting import DriftRequest, drift
    from reconciler.commands.files import path_in_repository

    workspace = workspace_of(options)
    request = DriftRequest(PlanRequest(workspace, base=base), names, attribute=attribute)
    how = render_options(root=path_in_repository(workspace.folder, os.environ))
    result = show_report("drift", output_format, partial(drift, request), how)
    return ExitCode.FINE if result.report.empty else ExitCode.CHANGES
