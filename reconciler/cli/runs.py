"""`reconciler runs`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

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
from reconciler.cli.output import render_options, style_of
from reconciler.cli.streams import write_update
from reconciler.errors import BadUsage
from reconciler.model.moments import Moment, moment_or_ago
from reconciler.model.run_report import STATUSES, RunOrder
from reconciler.render.style import Style

if TYPE_CHECKING:
    from reconciler.commands.runtime import Runtime

EXAMPLES = (
    ("runs lake", "The newest 20 runs of an export"),
    ("runs lake --status Failed --since 30d --all", "All runs of a month that failed"),
    ("runs lake 0192e6b2-45d1-0000-5f2b-7c1a2b3c4d5e", "Everything about one run"),
)


@command("runs", examples=EXAMPLES, page="docs/operations.md")
@click.argument("name", shell_complete=completing.resources)
@click.argument("run", required=False)
@workspace_options
@option("--since", metavar="TIME", help="Since a time, ISO 8601, or a duration ago: 6h, 7d.")
@option("--until", metavar="TIME", help="Until a time, or a duration ago.")
@option(
    "--order",
    type=click.Choice([order.value for order in RunOrder]),
    default=RunOrder.CREATED.value,
    show_default=True,
    help="By when runs began, or by their intervals.",
)
@option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(STATUSES, case_sensitive=False),
    metavar="STATUS",
    help=f"Only runs in these statuses: {', '.join(STATUSES)}.",
)
@option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Most runs.")
@option("--all", "everything", is_flag=True, help="All runs, page by page.")
@option("--follow", is_flag=True, help="Continue with new runs and changes of status.")
@format_option("runs")
@links_option
@client_options
def runs_command(
    name: str, run: str | None, output_format: str, *, follow: bool, links: bool, **options: Any
) -> None:
    """Show the runs of an export, the newest first, or everything about one RUN.

    NAME is an address, an id, a key, a name or a glob of one export. Times without an offset are
    UTC. With --follow and a RUN it ends when the run has ended; json then prints a line for each
    change.
    """
    from reconciler.cli.running import show_report
    from reconciler.commands.running import RunsRequest, follow_runs, runs
    from reconciler.render.runs import change_as_text

    request = RunsRequest(
        workspace_of(options),
        name,
        run,
        *window_of(options),
        order=RunOrder(options["order"]),
        statuses=options["statuses"],
        limit=None if options["everything"] else options["limit"],
    )
    if not follow:
        show_report("runs", output_format, partial(runs, request), render_options(links=links))
        return
    check_follow(output_format, request.last)
    follow_shown(partial(follow_runs, request), output_format, change_as_text)


def window_of(options: dict[str, Any]) -> tuple[Moment | None, Moment | None]:
    """Return the times of --since and --until. Raises BadUsage."""
    first, last = (
        None if text is None else moment_or_ago(text, option=f"--{name}")
        for name, text in (("since", options.pop("since")), ("until", options.pop("until")))
    )
    return first, last


def follow_shown(
    work: Callable[[Runtime, Callable[[Any], None]], Awaitable[None]],
    output_format: str,
    as_text: Callable[[Any, Style], str],
) -> None:
    """Run a use case that reports values one by one, and print a line for each."""
    from reconciler.cli.running import run_shown, runtime
    from reconciler.model.public import as_json
    from reconciler.model.redaction import masked_in

    world, style = runtime(), style_of(sys.stdout)

    def listen(value: Any) -> None:
        shown = masked_in(value, world.mask)
        is_json = output_format == "json"
        write_update(as_json(shown, indent=False) if is_json else as_text(shown, style))

    run_shown(lambda world: work(world, listen), world)


def check_follow(output_format: str, last: Moment | None) -> None:
    """Raise BadUsage for options that exclude --follow."""
    if last is not None:
        raise BadUsage("--follow and --until exclude each other")
    if output_format not in ("text", "json"):
        raise BadUsage(f"--follow does not support --format {output_format}")
