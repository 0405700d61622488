"""`reconciler fmt`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reconciler.cli.command import command, option
from reconciler.cli.exit_codes import exit_code_of_format
from reconciler.cli.options import folder_of, folder_option
from reconciler.cli.output import print_warnings, style_of
from reconciler.cli.streams import write_content, write_note, write_result
from reconciler.errors import BadUsage

STDIN = Path("-")


@command(
    "fmt",
    examples=(
        ("fmt", "Format every file of the workspace"),
        ("fmt --check --diff", "Show what would change, and exit with 1 if anything would"),
        ("fmt - < exports/web.yaml", "Format a text, as editors do"),
    ),
    page="docs/configuration.md",
)
@folder_option
@option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change.")
@option("--diff", is_flag=True, help="Write nothing; show what would change.")
@option(
    "--stdin-filename",
    "name",
    metavar="PATH",
    help="Name of the file on stdin, for messages and to recognize reconciler.yaml.",
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
def fmt_command(
    folder: Path | None, files: tuple[Path, ...], *, name: str | None, check: bool, diff: bool
) -> int:
    """Format the files: keys in the order of the reference, indentation, blank lines.

    Values, quotes, comments and the order of resources stay as they are. Without FILES, formats
    every file of the workspace; a folder means all files in it. Prints the names of the files that
    change. With - as the only file, formats stdin to stdout and needs no workspace.
    """
    from reconciler.commands.formatting import format_text, format_workspace
    from reconciler.render.difference import format_summary, formatted_as_text
    from reconciler.workspace.sources import MAX_FILE_BYTES

    write = not (check or diff)
    if STDIN in files:
        if len(files) > 1:
            raise BadUsage("- cannot be combined with other files")
        raw = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        text, formatted = format_text(raw, _name_of(name), diff=diff)
    elif name is not None:
        raise BadUsage("--stdin-filename requires - as the only file")
    else:
        text, formatted = "", format_workspace(folder_of(folder), files, write=write, diff=diff)
    print_warnings(formatted.diagnostics)
    if STDIN in files and write:
        write_content(text)
        return exit_code_of_format(formatted, check=check)
    write_result(formatted_as_text(formatted, diff=diff, style=style_of(sys.stdout)))
    write_note(f"{format_summary(formatted, written=write)}\n")
    return exit_code_of_format(formatted, check=check)


def _name_of(given: str | None) -> str:
    return "<stdin>" if given is None else Path(given).as_posix()
