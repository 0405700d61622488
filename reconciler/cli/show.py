"""`reconciler show`."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli.options import format_option, unmanaged_option
from reconciler.cli.output import plan_text, read_file
from reconciler.planning.planfile import decode


@click.command("show")
@click.argument("plan_file", type=click.Path(dir_okay=False, path_type=Path))
@format_option
@unmanaged_option
def command(plan_file: Path, plan_format: str, *, show_unmanaged: bool) -> None:
    """Draw a plan that was saved with `plan --out FILE`."""
    saved = decode(read_file(plan_file))
    click.echo(plan_text(saved, plan_format, show_unmanaged=show_unmanaged), nl=False)
