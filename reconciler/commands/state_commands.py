"""`reconciler drift`, `compare` and `promote`: what differs, and edits that settle it."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reconciler.commands import completing
from reconciler.commands.command import command, option
from reconciler.commands.options import (
    files_options,
    folder_option,
    format_option,
    rate_option,
    workspace_of,
    workspace_options,
)
from reconciler.commands.output import print_warnings, render_options, style_of
from reconciler.commands.streams import write_calls, write_note, write_result
from reconciler.errors import BadUsage, ExitCode
from reconciler.model.text import printable
from reconciler.render.formats import writer_of

if TYPE_CHECKING:
    from reconciler.commands.runtime import Workspace
    from reconciler.render.formats import Writer


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
    from reconciler.commands.drift import drift
    from reconciler.commands.running import show_report

    if diff and not write:
        raise BadUsage("--diff requires --write")
    workspace = workspace_of(options)
    if write:
        return _write_drift(workspace, names, writer_of(output_format, "drift"), diff=diff)
    work = partial(drift, names=names, attribute=attribute)
    result = show_report("drift", output_format, work, workspace, render_options(workspace.folder))
    return ExitCode.FINE if result.report.empty else ExitCode.CHANGES


def _write_drift(
    workspace: Workspace, names: tuple[str, ...], writer: Writer, *, diff: bool
) -> ExitCode:
    """Write live values into the files, and show the drift of before."""
    from reconciler.commands.drift import pull, pull_summary
    from reconciler.commands.edits import differences_as_text
    from reconciler.commands.running import run_shown

    result = run_shown(partial(pull, names=names, write=not diff), workspace)
    print_warnings(result.diagnostics)
    pulled = result.report
    if diff:
        write_result(differences_as_text(pulled.changes, style_of(sys.stdout)))
    else:
        write_result(writer(pulled.drift, render_options(workspace.folder)))
    write_note(pull_summary(pulled, "Would write" if diff else "Wrote"))
    write_calls(result.calls)
    if pulled.left_out:
        return ExitCode.PARTLY_APPLIED
    return ExitCode.CHANGES if pulled.placed else ExitCode.FINE


@command(
    "compare",
    examples=(
        ("compare staging production", "Show what differs in the files, without a network"),
        ("compare staging production lake 'orders-*' --verbose", "Compare some resources"),
    ),
    page="docs/environments.md",
)
@click.argument("first", metavar="A", shell_complete=completing.environments)
@click.argument("second", metavar="B", shell_complete=completing.environments)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources)
@folder_option
@files_options
@format_option("compared")
def compare_command(
    first: str, second: str, names: tuple[str, ...], *, output_format: str, **options: Any
) -> ExitCode:
    """Show how environment B differs from A in the files. Changes nothing.

    NAME is an address, an id, a key, a name or a glob of resources. A difference is intended if it
    comes from a reference such as ${var:bucket}, if both environments override the field, or if it
    is a name, an id or a secret. Exits with 2 if there are other differences.
    """
    from reconciler.commands.compare import compare

    result = compare(workspace_of(options), first, second, names)
    print_warnings(result.diagnostics)
    write_result(writer_of(output_format, "compared")(result.report, render_options()))
    return ExitCode.FINE if result.report.is_equal else ExitCode.CHANGES


@command(
    "promote",
    examples=(
        ("promote --from staging --to production", "Give production what staging has"),
        ("promote --from staging --to production lake --diff", "Show the edits for one resource"),
    ),
    page="docs/environments.md",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources)
@folder_option
@option(
    "--from",
    "first",
    metavar="A",
    required=True,
    shell_complete=completing.environments,
    help="Environment to take values from.",
)
@option(
    "--to",
    "second",
    metavar="B",
    required=True,
    shell_complete=completing.environments,
    help="Environment to change.",
)
@option("--diff", "--dry-run", "diff", is_flag=True, help="Write nothing; show what would change.")
@files_options
def promote_command(
    names: tuple[str, ...],
    *,
    first: str,
    second: str,
    diff: bool,
    **options: Any,
) -> None:
    """Edit the files so that environment B has the values of A. Then plan B.

    NAME is an address, an id, a key, a name or a glob of resources. Copies overrides that only A
    has, removes those that only B has, and adds B to `environments:` of resources that only A has.
    Intended differences stay: references, fields that both override, names, ids and secrets.
    Prints a patch.
    """
    from reconciler.commands.compare import open_pair, promote
    from reconciler.commands.edits import differences_as_text

    workspace = workspace_of(options)
    pair = open_pair(workspace, (first, second))
    promoted = promote(workspace, pair, names, write=not diff)
    write_result(differences_as_text(promoted.changes, style_of(sys.stdout)))
    for address in promoted.paused:
        write_note(f"note: {address} gets `paused: true` in {printable(second)}, too\n")
    if not promoted.changes:
        write_note(f"Nothing to promote; see `compare {printable(f'{first} {second}')}`\n")
