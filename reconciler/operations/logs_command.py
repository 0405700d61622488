"""`reconciler logs`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from reconciler.cli import completing
from reconciler.cli.command import command, option
from reconciler.cli.options import (
    client_options,
    format_option,
    links_option,
    workspace_of,
    workspace_options,
)
from reconciler.cli.output import render_options
from reconciler.errors import BadUsage
from reconciler.model.run_report import LEVELS
from reconciler.operations.runs_command import check_follow, follow_shown, window_of

EXAMPLES = (
    ("logs lake", "The newest 100 entries of an export"),
    ("logs lake --level warning --since 7d", "Warnings and errors of a week"),
    ("logs lake --run 0192e6b2-45d1-0000-5f2b-7c1a2b3c4d5e", "The entries of one run"),
)


@command("logs", examples=EXAMPLES, page="docs/operations.md")
@click.argument("name", shell_complete=completing.resources)
@workspace_options
@option("--run", metavar="ID", help="Only entries of this run.")
@option(
    "--level",
    type=click.Choice(LEVELS, case_sensitive=False),
    help="Only entries of this level and more important ones.",
)
@option("--search", metavar="TEXT", help="Only entries with this text; % and _ are wildcards.")
@option("--since", metavar="TIME", help="Since a time, ISO 8601, or a duration ago: 6h, 7d.")
@option("--until", metavar="TIME", help="Until a time, or a duration ago.")
@option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Most entries.")
@option("--all", "everything", is_flag=True, help="All entries, page by page.")
@option("--follow", is_flag=True, help="Continue with new entries until it is interrupted.")
@format_option("logs")
@links_option
@client_options
def logs_command(
    name: str, output_format: str, *, follow: bool, links: bool, **options: Any
) -> None:
    """Show the log of an export, the newest entry last.

    NAME is an address, an id, a key, a name or a glob of one export. Times without an offset are
    UTC. Servers of 2025 and spring 2026 refuse logs to API keys. The service does not join logs to
    runs: with --run, entries are matched by the interval in their messages, or by time, and the
    output says which. With --follow, json prints a line for each entry.
    """
    from reconciler.cli.running import show_report
    from reconciler.model.run_report import levels_from
    from reconciler.operations.log_pages import LogFilter
    from reconciler.operations.log_reading import LogsRequest, follow_logs, logs
    from reconciler.render.runs import entry_as_text

    first, last = window_of(options)
    level, run = options["level"], options["run"]
    request = LogsRequest(
        workspace_of(options),
        name,
        run,
        LogFilter(levels=levels_from(level) if level is not None else (), search=options["search"]),
        None if options["everything"] else options["limit"],
        first,
        last,
    )
    if not follow:
        show_report("logs", output_format, partial(logs, request), render_options(links=links))
        return
    if run is not None:
        raise BadUsage("--follow and --run exclude each other")
    check_follow(output_format, last)
    follow_shown(partial(follow_logs, request), output_format, entry_as_text)
