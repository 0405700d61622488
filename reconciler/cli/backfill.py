"""`reconciler backfill`."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from reconciler.cli.options import workspace_of, workspace_options
from reconciler.cli.output import runtime
from reconciler.commands.backfilling import BackfillRequest, backfill, parse_instant
from reconciler.model.wording import printable


@click.command("backfill")
@click.argument("address")
@workspace_options
@click.option("--start", required=True, metavar="TIME", help="Where the range begins, ISO 8601.")
@click.option("--end", required=True, metavar="TIME", help="Where it ends.")
def command(address: str, *, start: str, end: str, **options: Any) -> None:
    """Export a past range again, such as the one that a pause left out.

    Times without an offset are UTC. It is sent once: if the answer is lost, look at the runs of the
    export before you try again.
    """
    request = BackfillRequest(
        workspace_of(options),
        address,
        parse_instant(start, option="--start"),
        parse_instant(end, option="--end"),
    )
    started = asyncio.run(backfill(request, runtime()))
    name = f" (backfill {printable(started.identity)})" if started.identity else ""
    click.echo(f"Backfilling {started.address} from {started.start} to {started.end}{name}")
