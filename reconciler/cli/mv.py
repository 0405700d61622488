"""`reconciler mv`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from reconciler.cli import completing
from reconciler.cli.command import command, option
from reconciler.cli.options import folder_of, folder_option
from reconciler.cli.output import style_of
from reconciler.cli.streams import write_note, write_result


@command(
    "mv",
    examples=(
        ("mv web shop", "Rename the key of a resource in all files"),
        ("mv batch_export.orders orders-hourly --diff", "Show what would change"),
        (
            "mv orders --name 'Hourly orders'",
            "Change the name in the service, keep the live object",
        ),
    ),
    page="docs/configuration.md",
)
@folder_option
@option("--name", metavar="NAME", help="Also change `name:`, so that the plan is an update.")
@option("--diff", "--dry-run", "diff", is_flag=True, help="Write nothing; show what would change.")
@click.argument("old", shell_complete=completing.resources)
@click.argument("new", required=False)
def mv_command(
    folder: Path | None, old: str, new: str | None, *, name: str | None, diff: bool
) -> None:
    """Rename the key of a resource in all files that mention it, without changing live state.

    OLD is the address, key or name of a resource, NEW a key or an address of the same kind.
    Changes the key, references of other resources, defaults and overrides to it, and in policies
    scopes of `prune` and rules that name it in full. Everything else in the files stays as it is,
    comments too. With a new name, the old one is added to `lifecycle.renamed_from`, unless `id:`
    pins the object.
    """
    from reconciler.commands.moving import MoveOptions, move
    from reconciler.render.difference import move_summary, moved_as_text

    moved = move(MoveOptions(folder_of(folder), old, new, name, write=not diff), os.environ)
    write_result(moved_as_text(moved, diff=diff, style=style_of(sys.stdout)))
    write_note(move_summary(moved))
