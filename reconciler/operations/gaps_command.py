"""`reconciler gaps`."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli import completing
from reconciler.cli.command import command, option
from reconciler.cli.exit_codes import worst_of
from reconciler.cli.options import (
    client_options,
    environments_options,
    format_option,
    one_environment,
    workspace_of,
)
from reconciler.cli.streams import write_note
from reconciler.errors import BadUsage, ExitCode
from reconciler.model.moments import duration_of, moment_of
from reconciler.model.text import printable

if TYPE_CHECKING:
    from reconciler.client.limits import Estimate
    from reconciler.commands.runtime import Reported, Runtime
    from reconciler.model.gaps import GapReport
    from reconciler.operations.gaps import GapRequest


EXAMPLES = (
    ("gaps", "Look for gaps of the last seven days in every export"),
    ("gaps lake 'orders-*' --since 30d", "Look at some exports, for a month"),
    ("gaps -e '*'", "Look in every environment"),
)


@command("gaps", examples=EXAMPLES, page="docs/operations.md")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources)
@environments_options
@option("--since", metavar="DURATION", help="How far back: 90m, 6h, 7d, 2w. Default: 7d.")
@option("--from", "first", metavar="TIME", help="Start of the window, ISO 8601.")
@option("--to", "last", metavar="TIME", help="End of the window, ISO 8601. Default: now.")
@format_option("gaps")
@client_options
def gaps_command(names: tuple[str, ...], output_format: str, **options: Any) -> ExitCode:
    """Show the intervals that should have been exported and were not. Changes nothing.

    NAME is an address, an id, a key, a name or a glob. Times without an offset are UTC. Exits with
    2 if there are gaps. What can't be known, for example because of an earlier pause, is `unknown`
    and no gap. Of several environments, one that fails does not hide the others, and the exit code
    is the worst.
    """
    from reconciler.cli.running import show_report
    from reconciler.cli.several import print_errors, report_each
    from reconciler.operations.gaps import GapRequest, gaps

    environments, window = one_environment(options), window_options(options)
    request = GapRequest(workspace_of(options), names, **window)
    if environments:

        async def read(request: GapRequest, world: Runtime) -> Reported[GapReport]:
            where = f"{request.workspace.environment}: "
            return await gaps(request, world, partial(announce, where=where))

        result = show_report(
            "all_gaps",
            output_format,
            lambda world: report_each(read, request, environments, world, _code_of),
        )
        print_errors(result.report)
        return worst_of(item.exit_code for item in result.report)
    work = partial(gaps, request, announce=announce)
    return _code_of(show_report("gaps", output_format, work).report)


def _code_of(report: GapReport) -> ExitCode:
    return ExitCode.CHANGES if report.gaps else ExitCode.FINE


def window_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the window that --since, --from and --to select. Raises BadUsage."""
    since, first, last = (options.pop(name) for name in ("since", "first", "last"))
    if since is not None and first is not None:
        raise BadUsage("--since and --from exclude each other")
    return {
        "length": timedelta(days=7) if since is None else duration_of(since, option="--since"),
        "first": None if first is None else moment_of(first, option="--from"),
        "last": None if last is None else moment_of(last, option="--to"),
    }


def announce(estimate: Estimate, where: str = "") -> None:
    """Print how many calls reading the runs takes, before they are made."""
    from reconciler.render.durations import estimate_as_text

    cost = estimate_as_text(
        estimate.calls,
        estimate.seconds,
        limit=estimate.limit,
        beyond_hour=estimate.beyond_hour,
    )
    write_note(f"{printable(where)}reading runs: at most {cost}\n")
