"""`reconciler validate` and `show`: what needs no service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from reconciler.commands import completing
from reconciler.commands.command import command, option
from reconciler.commands.options import (
    files_of,
    format_option,
    summary_option,
    unmanaged_option,
    workspace_of,
    workspace_options,
)
from reconciler.commands.output import (
    exit_code_of_diagnostics,
    exit_code_of_run,
    print_warnings,
    render_options,
)
from reconciler.commands.streams import is_interactive, write_result
from reconciler.errors import ExitCode
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
    from reconciler.commands.loading import validate

    files = files_of(options)
    diagnostics = validate(files, os.environ, interactive=is_interactive())
    write = writer_of(output_format, "diagnostics")
    write_result(write(diagnostics, render_options(files.folder)))
    return exit_code_of_diagnostics(diagnostics)


@command(
    "show",
    examples=(
        ("show plan.json --format markdown", "Print a saved plan as a comment"),
        ("show audit.jsonl", "Print what the last run of an audit log did"),
        ("show batch_export.lake -e production", "Print a resource with the origin of every field"),
    ),
    page="docs/output.md",
)
@click.argument("name", metavar="FILE|NAME", shell_complete=completing.resources)
@option("--run", metavar="ID", help="Of an audit log, the run whose id starts with ID.")
@workspace_options
@format_option("plan")
@unmanaged_option
@summary_option
def show_command(
    name: str,
    *,
    output_format: str,
    summary: bool,
    **options: Any,
) -> int:
    """Print a saved plan, an audit log, or a resource with its origins.

    FILE comes from `plan --out` or `apply --log-file`. Of an audit log, the
    last run is shown in full. The exit code is that of the run, 3 if it has none: it was killed,
    or is still running. Paths in plans are relative to -C, as with `plan -C`.

    NAME is the address, id, key or name of a resource. Defaults, overrides and references are
    filled in for the environment, and each field shows where it comes from. No network, secret or
    API key is needed.
    """
    from reconciler.commands.runner_files import write_runner_files
    from reconciler.commands.show import is_saved, show
    from reconciler.model.audit_log import Audit
    from reconciler.model.plan import Plan

    # A file needs no workspace, so none is searched.
    folder = options["folder"] or (Path() if is_saved(name) else None)
    workspace = workspace_of({**options, "folder": folder})
    unmanaged = options["show_unmanaged"]
    shown, warnings = show(workspace, name, run=options["run"], show_unmanaged=unmanaged)
    print_warnings(warnings)
    how = render_options(options["folder"] or Path(), show_unmanaged=unmanaged, summary=summary)
    form = {Plan: "plan", Audit: "audit"}.get(type(shown), "resolved")
    write_result(writer_of(output_format, form)(shown, how))
    if output_format == "github" and isinstance(shown, Plan):
        write_runner_files(shown, how, saved=Path(name))
    return exit_code_of_run(shown.shown) if isinstance(shown, Audit) else ExitCode.FINE
