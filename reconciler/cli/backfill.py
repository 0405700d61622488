"""`reconciler backfill`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import click

from reconciler.cli.options import workspace_of, workspace_options
from reconciler.cli.output import runtime
from reconciler.commands.backfilling import BackfillRequest, backfill
from reconciler.errors import BadUsage
from reconciler.model.wording import printable


def _moment(text: str, option: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadUsage(
            f"{option} '{text}' is not a moment", hint="write it like 2026-01-31T00:00:00Z"
        ) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


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
        workspace_of(options), address, _moment(start, "--start"), _moment(end, "--end")
    )
    done = asyncio.run(backfill(request, runtime()))
    named = f" (backfill {printable(done.identity)})" if done.identity else ""
    click.echo(f"Backfilling {done.address} from {done.start} to {done.end}{named}")
