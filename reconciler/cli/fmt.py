"""`reconciler fmt`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reconciler.cli.options import folder_option
from reconciler.cli.output import print_warnings, style_of
from reconciler.commands.formatting import FormatOptions, Formatted, format_workspace
from reconciler.errors import ExitCode
from reconciler.model.wording import several
from reconciler.render.difference import difference_as_text


@click.command("fmt")
@folder_option
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
def command(folder: Path, files: tuple[Path, ...], *, check: bool, diff: bool) -> int:
    """Format the files: keys in the order of the reference, indentation, blank lines.

    Values, quotes, comments and the order of resources stay as they are. Without FILES, every file
    of the workspace is formatted; a folder stands for all files in it. The names of the files that
    change are printed.
    """
    formatted = format_workspace(FormatOptions(folder, files, write=not (check or diff)))
    print_warnings(formatted.diagnostics)
    for name, file in formatted.changed.items():
        if diff:
            shown = (file.before.shown, file.after.shown)
            text = difference_as_text(
                name, file.before.lines, file.after.lines, shown=shown, style=style_of(sys.stdout)
            )
            click.echo(text, nl=False)
        else:
            click.echo(name)
    click.echo(_summary(formatted, written=not (check or diff)), err=True)
    return ExitCode.ERROR if check and formatted.changed else ExitCode.FINE


def _summary(formatted: Formatted, *, written: bool) -> str:
    count, left = len(formatted.changed), formatted.left_alone
    aside = f", {left} left as {'it is' if left == 1 else 'they are'}" if left else ""
    files = several(formatted.looked_at, "file")
    if not count:
        return f"{several(formatted.looked_at - left, 'file')} in order{aside}."
    if written:
        return f"Put {count} of {files} in order{aside}."
    verb = "is" if count == 1 else "are"
    return f"{count} of {files} {verb} not in order{aside}; `reconciler fmt` puts that right."
