"""`reconciler validate`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from reconciler.cli.options import workspace_of, workspace_options
from reconciler.cli.output import diagnostics_text, place_in_repository, runtime
from reconciler.commands.validating import validate
from reconciler.errors import Diagnostic, ExitCode, Severity
from reconciler.render.annotations import diagnostics_as_github
from reconciler.render.diagnostics import diagnostics_as_json
from reconciler.render.sarif import diagnostics_as_sarif

_FORMATS: Mapping[str, Callable[[Sequence[Diagnostic], Path], str]] = {
    "text": lambda found, _: diagnostics_text(found, sys.stdout) or "The files are valid.\n",
    "json": lambda found, _: diagnostics_as_json(found),
    "github": lambda found, folder: diagnostics_as_github(found, root=place_in_repository(folder)),
    "sarif": lambda found, folder: diagnostics_as_sarif(found, root=place_in_repository(folder)),
}


@click.command("validate")
@workspace_options
@click.option(
    "--format",
    "told_as",
    type=click.Choice(list(_FORMATS)),
    default="text",
    show_default=True,
    help="How to tell what was found.",
)
def command(told_as: str, **options: Any) -> int:
    """Check the files: structure, references, and what else can be told without a network.

    Without -e, every environment is checked. No secret and no API key is needed.
    """
    workspace = workspace_of(options)
    found = validate(workspace, runtime())
    click.echo(_FORMATS[told_as](found, workspace.folder), nl=False)
    failed = any(each.severity is Severity.ERROR for each in found)
    return ExitCode.ERROR if failed else ExitCode.FINE
