"""`reconciler backfill`."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.command import command, option
from reconciler.cli.options import client_options, workspace_of, workspace_options
from reconciler.cli.output import run_shown, runtime
from reconciler.cli.streams import write_result
from reconciler.commands.backfilling import backfill
from reconciler.model.wording import printable

EXAMPLES = (
    ("backfill lake --start 2026-03-01 --end 2026-03-08", "Export a week again"),
    (
        "backfill batch_export.lake --start 2026-03-01T06:00Z --end 2026-03-01T09:00Z",
        "Export three hours again",
    ),
)


@command("backfill", examples=EXAMPLES, page="docs/planning.md")
@click.argument("address")
@workspace_options
@client_options
@option("--start", required=True, metavar="TIME", help="Start of the range, ISO 8601.")
@option("--end", required=True, metavar="TIME", help="End of the range, ISO 8601.")
def execute(address: str, *, start: str, end: str, **options: Any) -> None:
    """Run an export again for a past range, such as one that it missed while paused.

    ADDRESS may also be the id, the key, the name or a glob of one export. Times without an offset
    are UTC. The request is sent once: if the response is lost, check the runs of the export before
    you try again.
    """
    workspace = workspace_of(options)
    resource, started = run_shown(
        lambda world: backfill(address, start, end, workspace, world), runtime()
    )
    name = f" (backfill {started.backfill_id})" if started.backfill_id else ""
    text = f"Backfilling {resource} from {started.start} to {started.end}{name}"
    write_result(f"{printable(text)}\n")
