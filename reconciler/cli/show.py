"""`reconciler show`."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli.output import PLAN_FORMATS, plan_text, read_file
from reconciler.planning.planfile import decode


@click.command("show")
@click.argument("plan_file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--format",
    "plan_format",
    type=click.Choice(PLAN_FORMATS),
    default="text",
    show_default=True,
    help="How to draw it.",
)
@click.option("--show-unmanaged", is_flag=True, help="List live objects that no resource claims.")
def command(plan_file: Path, plan_format: str, *, show_unmanaged: bool) -> None:
    """Draw a plan that was saved with `plan --out FILE`."""
    saved = decode(read_file(plan_file))
    click.echo(plan_text(saved, plan_format, show_unmanaged=show_unmanaged), nl=False)
