"""`reconciler fmt`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reconciler.cli.exit_codes import exit_code_of_format
from reconciler.cli.options import folder_option
from reconciler.cli.output import print_warnings, style_of
from reconciler.cli.streams import write_message, write_result
from reconciler.commands.formatting import format_workspace
from reconciler.render.difference import format_summary, formatted_as_text


@click.command("fmt")
@folder_option
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
def command(folder: Path, files: tuple[Path, ...], *, check: bool, diff: bool) -> int:
    """Format the files: keys in the order of the reference, indentation, blank lines.

    Values, quotes, comments and the order of resources stay as they are. Without FILES, formats
    every file of the workspace; a folder means all files in it. Prints the names of the files that
    change.
    """
    write = not (check or diff)
    formatted = format_workspace(folder, files, write=write)
    print_warnings(formatted.diagnostics)
    text = formatted_as_text(formatted, diff=diff, style=style_of(sys.stdout))
    write_result(text)
    write_message(f"{format_summary(formatted, written=write)}\n")
    return exit_code_of_format(formatted, check=check)
