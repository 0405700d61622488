"""`reconciler validate`."""

from __future__ import annotations

import os
from typing import Any

from reconciler.cli.command import command
from reconciler.cli.exit_codes import exit_code_of_diagnostics
from reconciler.cli.options import format_option, workspace_of, workspace_options
from reconciler.cli.output import is_interactive, render_options
from reconciler.cli.streams import write_result
from reconciler.render.formats import writer_of


@command(
    "validate",
    examples=(
        ("validate", "Check every environment"),
        ("validate -e production --strict", "Check one environment; warnings are errors"),
        ("validate --format github", "Annotate the lines of a pull request"),
    ),
    page="docs/configuration.md",
)
@workspace_options
@format_option("diagnostics")
def validate_command(output_format: str, **options: Any) -> int:
    """Check the files: structure, references, and all that needs no network.

    Without -e, every environment is checked. No secret and no API key is needed.
    """
    from reconciler.commands.files import path_in_repository
    from reconciler.commands.validating import validate

    workspace = workspace_of(options)
    diagnostics = validate(workspace, os.environ, interactive=is_interactive())
    root = path_in_repository(workspace.folder, os.environ)
    write = writer_of(output_format, "diagnostics")
    write_result(write(diagnostics, render_options(root=root)))
    return exit_code_of_diagnostics(diagnostics)
