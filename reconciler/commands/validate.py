"""`reconciler validate`: check the files without a network."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from reconciler.commands.command import command
from reconciler.commands.options import files_of, format_option, workspace_options
from reconciler.commands.process import is_interactive, write_result
from reconciler.commands.screen import render_options
from reconciler.commands.workspace import WorkspaceFiles, deciding_tip, load_workspace
from reconciler.diagnostics import Diagnostic, InvalidConfiguration, Level
from reconciler.exit_codes import ExitCode
from reconciler.render import writer_of


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
    files = files_of(options)
    diagnostics = validate(files, os.environ, interactive=is_interactive())
    write = writer_of(output_format, "diagnostics")
    write_result(write(diagnostics, render_options(files.folder)))
    is_failed = any(diagnostic.level is Level.ERROR for diagnostic in diagnostics)
    return ExitCode.ERROR if is_failed else ExitCode.FINE


def validate(
    options: WorkspaceFiles, environ: Mapping[str, str], *, interactive: bool = False
) -> tuple[Diagnostic, ...]:
    """Return all diagnostics of one environment, or of every environment if none is named.

    `interactive`: a person runs the command.
    """
    from reconciler.files.loading import load_all

    if options.environment is None:
        return load_all(
            options.folder,
            environ=environ,
            strict=options.strict,
            find_tip=lambda: deciding_tip(options, environ, interactive=interactive),
        )
    options = replace(options, lenient=frozenset())
    try:
        loaded, *_ = load_workspace(options, environ, interactive=interactive)
    except InvalidConfiguration as invalid:
        return invalid.diagnostics
    return loaded.diagnostics
