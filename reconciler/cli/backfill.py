"""`reconciler backfill`."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.options import client_options, workspace_of, workspace_options
from reconciler.cli.output import run_shown, runtime
from reconciler.cli.streams import write_result
from reconciler.commands.backfilling import backfill
from reconciler.model.wording import printable


@click.command("backfill")
@click.argument("address")
@workspace_options
@client_options
@click.option("--start", required=True, metavar="TIME", help="Start of the range, ISO 8601.")
@click.option("--end", required=True, metavar="TIME", help="End of the range, ISO 8601.")
def command(address: str, *, start: str, end: str, **options: Any) -> None:
    """Run an export again for a past range, such as one that it missed while paused.

    Times without an offset are UTC. The request is sent once: if the response is lost, check the
    runs of the export before you try again.
    """
    workspace = workspace_of(options)
    started = run_shown(lambda world: backfill(address, start, end, workspace, world), runtime())
    name = f" (backfill {started.backfill_id})" if started.backfill_id else ""
    text = f"Backfilling {address} from {started.start} to {started.end}{name}"
    write_result(f"{printable(text)}\n")
