"""`reconciler validate`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from reconciler.cli.options import workspace_of, workspace_options
from reconciler.cli.output import colour_wanted, runtime
from reconciler.commands.validating import validate
from reconciler.errors import Diagnostic, ExitCode, Severity
from reconciler.render.diagnostics import (
    diagnostics_as_github,
    diagnostics_as_json,
    diagnostics_as_sarif,
    diagnostics_as_text,
)

_FORMATS: Mapping[str, Callable[[Sequence[Diagnostic]], str]] = {
    "text": lambda found: (
        diagnostics_as_text(found, colour=colour_wanted(sys.stdout)) or "The files are valid.\n"
    ),
    "json": diagnostics_as_json,
    "github": diagnostics_as_github,
    "sarif": diagnostics_as_sarif,
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
    found = validate(workspace_of(options), runtime())
    click.echo(_FORMATS[told_as](found), nl=False)
    failed = any(each.severity is Severity.ERROR for each in found)
    return ExitCode.ERROR if failed else ExitCode.FINE
