"""`reconciler drift`."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import click

from reconciler.commands import completing
from reconciler.commands.command import command, option
from reconciler.commands.options import (
    format_option,
    rate_option,
    workspace_of,
    workspace_options,
)
from reconciler.commands.output import print_warnings, render_options, style_of
from reconciler.commands.streams import write_calls, write_note, write_result
from reconciler.errors import BadUsage, ExitCode
from reconciler.render.formats import writer_of


@command(
    "drift",
    examples=(
        ("drift", "Show what changed in live state, and who changed it"),
        ("drift 'orders-*' --no-attribute", "Look at some resources, without the activity log"),
        ("drift orders --write", "Keep the live values of one resource in the files"),
    ),
    page="docs/operations.md",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources)
@workspace_options
@option(
    "--attribute/--no-attribute",
    default=True,
    help="Say who changed each object; one call to the activity log for each.",
)
@option("--write", is_flag=True, help="Write the live values into the files. Comments stay.")
@option("--diff", "--dry-run", "diff", is_flag=True, help="With --write: print a patch instead.")
@format_option("drift")
@rate_option
def drift_command(
    names: tuple[str, ...],
    *,
    output_format: str,
    attribute: bool,
    write: bool,
    diff: bool,
    **options: Any,
) -> ExitCode:
    """Show what changed in live state since it was applied. Changes nothing in the service.

    Shows all resources, or those that NAME selects: address, id, key, name or glob. What changed in
    the files is not drift. Exits with 2 if there is drift; `apply` sets it back.

    With --write, a value goes into the layer that defines it if no other resource or environment
    has it from there, else into the resource or into the overrides of the environment. Exits with
    0 if nothing differs, 2 if all was written, 3 if a value could not be. Secrets cannot be read,
    so they are never written. Without an inventory, it needs a NAME.
    """
    from reconciler.commands.drift.run import drift
    from reconciler.commands.drift.write import pull, pull_summary
    from reconciler.commands.edits import differences_as_text
    from reconciler.commands.running import run_shown, show_report

    if diff and not write:
        raise BadUsage("--diff requires --write")
    workspace = workspace_of(options)
    how, writer = render_options(workspace.folder), writer_of(output_format, "drift")
    if not write:
        work = partial(drift, names=names, attribute=attribute)
        report = show_report("drift", output_format, work, workspace, how).report
        return ExitCode.FINE if report.empty else ExitCode.CHANGES
    result = run_shown(partial(pull, names=names, write=not diff), workspace)
    pulled = result.report
    print_warnings(result.diagnostics)
    patch = differences_as_text(pulled.changes, style_of(sys.stdout))
    write_result(patch if diff else writer(pulled.drift, how))
    write_note(pull_summary(pulled, "Would write" if diff else "Wrote"))
    write_calls(result.calls)
    if pulled.left_out:
        return ExitCode.PARTLY_APPLIED
    return ExitCode.CHANGES if pulled.placed else ExitCode.FINE
