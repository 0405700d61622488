"""`reconciler plan`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from reconciler.cli.options import (
    format_option,
    plan_options,
    plan_request,
    unmanaged_option,
    workspace_options,
)
from reconciler.cli.output import print_warnings, render_options, runtime
from reconciler.commands.files import read_file, write_private
from reconciler.commands.planning import plan
from reconciler.commands.undoing import plan_undo
from reconciler.errors import BadUsage, ExitCode
from reconciler.model.codec.plan import encode
from reconciler.planning.masking import masked
from reconciler.render.formats import writer_of


@click.command("plan")
@workspace_options
@plan_options
@unmanaged_option
@format_option("plan")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Save the plan for `apply FILE`.",
)
@click.option(
    "--undo",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Plan the reversal of a saved plan or an audit log.",
)
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 2 if there are changes.")
def command(
    output_format: str,
    out: Path | None,
    *,
    undo: Path | None,
    detailed_exitcode: bool,
    **options: Any,
) -> int:
    """Show what would change to make live state match the configuration. Changes nothing.

    Exits with 5 if the policy refuses the plan.
    """
    request = plan_request(options)
    if undo is not None:
        if request.steered:
            raise BadUsage("--undo reverses a whole plan: it takes no options that steer planning")
        made = asyncio.run(plan_undo(request, read_file(undo), runtime(), name=str(undo)))
    else:
        made = asyncio.run(plan(request, runtime()))
    print_warnings(made.loaded.diagnostics)
    shown = masked(made.plan, made.mask)
    how = render_options(show_unmanaged=options["show_unmanaged"])
    click.echo(writer_of(output_format, "plan")(shown, how), nl=False)
    if out is not None:
        write_private(out, encode(shown))
        click.echo(f"saved to {out}; apply it with: reconciler apply {out}", err=True)
    click.echo(f"{made.calls} calls to read", err=True)
    if made.plan.refusals:
        return ExitCode.REFUSED
    if detailed_exitcode and not made.plan.empty:
        return ExitCode.CHANGES
    return ExitCode.FINE
