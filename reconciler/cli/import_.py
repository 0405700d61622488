"""`reconciler import`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import click

from reconciler.cli.options import workspace_of, workspace_options
from reconciler.cli.output import colour_wanted, runtime
from reconciler.commands.importing import ImportOptions, import_live
from reconciler.commands.placing import Layout
from reconciler.errors import BadUsage, ExitCode
from reconciler.kinds import all_kinds
from reconciler.planning.choosing import Choice
from reconciler.render.imports import (
    import_as_diff,
    import_as_json,
    imported_as_text,
    remarks_on_import,
)

_GLOBS: dict[str, Any] = {"multiple": True, "metavar": "GLOB"}


def layout_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """--layout of what is imported."""
    return click.option(
        "--layout",
        type=click.Choice([each.value for each in Layout]),
        default=Layout.BY_PARENT.value,
        show_default=True,
        help="How imported resources are spread over files.",
    )(function)


@click.command("import")
@workspace_options
@click.option(
    "--project", **_GLOBS, help="Only these projects and what is in them: name, id or key."
)
@click.option("--name", **_GLOBS, help="Only objects with these names.")
@click.option("--kind", multiple=True, metavar="KIND", help="Only objects of these kinds.")
@click.option(
    "--id", "ids", multiple=True, metavar="ID", help="Only these, also if no list has them."
)
@layout_option
@click.option("--into", default="", metavar="DIR", help="Folder below the workspace.")
@click.option(
    "--force",
    is_flag=True,
    help="Write files that are there anew, as is live; what they lose is told.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be written, as a diff.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to tell what was imported.",
)
def command(*, output_format: str, **options: Any) -> int:
    """Write live objects into files of the workspace. Changes nothing on the live side.

    Without options, everything that is not in the files yet is imported. The plan of what is
    written is empty: that is checked before a file is touched. Existing files are extended.

    Secrets can't be read back: each becomes a reference to an environment variable, and those are
    listed. Exits with 1 if an object could not be imported; the others are.
    """
    request = _request(options)
    done = asyncio.run(import_live(request, runtime()))
    if output_format == "json":
        click.echo(import_as_json(done), nl=False)
    elif request.dry_run:
        click.echo(import_as_diff(done, colour=colour_wanted(sys.stdout)), nl=False)
    else:
        click.echo(imported_as_text(done), nl=False)
    click.echo(remarks_on_import(done), nl=False, err=True)
    return ExitCode.ERROR if done.refused else ExitCode.FINE


def _request(options: dict[str, Any]) -> ImportOptions:
    """The import that the options ask for. Raises BadUsage for a kind that there is not."""
    known = [kind.name for kind in all_kinds()]
    for each in options["kind"]:
        if each not in known:
            raise BadUsage(f"there is no kind '{each}'", hint=f"there are: {', '.join(known)}")
    return ImportOptions(
        workspace=workspace_of(options),
        choice=Choice(
            names=options["name"],
            ids=options["ids"],
            parents=options["project"],
            kinds=options["kind"],
        ),
        layout=Layout(options["layout"]),
        into=options["into"],
        force=options["force"],
        dry_run=options["dry_run"],
    )
