"""`reconciler audit`."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli.command import command, option
from reconciler.cli.exit_codes import exit_code_of_audit
from reconciler.cli.options import format_option
from reconciler.cli.output import render_options
from reconciler.cli.streams import write_result
from reconciler.render.formats import writer_of


@command(
    "audit",
    examples=(
        ("audit audit.jsonl", "Show the last run"),
        (
            "audit audit.jsonl --run 3f9a --format json",
            "Show the run whose id begins with 3f9a, for programs",
        ),
    ),
    page="docs/reliability.md",
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@option("--run", metavar="ID", help="Only the run whose id begins so. Default: the last.")
@format_option("audit")
def audit_command(file: Path, *, run: str | None, output_format: str) -> int:
    """Show who applied what, from the log of `apply --log-file FILE`.

    Shows how each change of a run ended, what is unknown, and requests without an answer.
    Exits with 3 if the run that is shown has unknown outcomes or twins.
    """
    from reconciler.commands.auditing import audit

    result = audit(file, run)
    write_result(writer_of(output_format, "audit")(result, render_options()))
    return exit_code_of_audit(result)
