"""`reconciler fmt`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reconciler.cli.options import folder_option
from reconciler.cli.output import colour_wanted, tell_warnings
from reconciler.commands.formatting import FormatOptions, Formatted, format_workspace
from reconciler.errors import ExitCode
from reconciler.model.wording import several
from reconciler.render.difference import difference_as_text


@click.command("fmt")
@folder_option
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file is not in order.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
def command(folder: Path, files: tuple[Path, ...], *, check: bool, diff: bool) -> int:
    """Put the files in order: keys as the reference has them, indentation, blank lines.

    Values, quotes and comments stay as they are, and resources stand where they stood. Without
    FILES, every file of the workspace is looked at; a folder means all in it. The names of the
    files that were not in order are printed.
    """
    found = format_workspace(FormatOptions(folder, files, write=not (check or diff)))
    tell_warnings(found.diagnostics)
    for name, each in found.changed.items():
        if diff:
            shown = (each.before.shown, each.after.shown)
            colour = colour_wanted(sys.stdout)
            text = difference_as_text(
                name, each.before.lines, each.after.lines, shown=shown, colour=colour
            )
            click.echo(text, nl=False)
        else:
            click.echo(name)
    click.echo(_summary(found, written=not (check or diff)), err=True)
    return ExitCode.ERROR if check and found.changed else ExitCode.FINE


def _summary(found: Formatted, *, written: bool) -> str:
    count, left = len(found.changed), found.left_alone
    aside = f", {left} left as {'it is' if left == 1 else 'they are'}" if left else ""
    files = several(found.looked_at, "file")
    if not count:
        return f"{several(found.looked_at - left, 'file')} in order{aside}."
    if written:
        return f"Put {count} of {files} in order{aside}."
    verb = "is" if count == 1 else "are"
    return f"{count} of {files} {verb} not in order{aside}; `reconciler fmt` puts that right."
