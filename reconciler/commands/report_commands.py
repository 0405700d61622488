"""`reconciler status`, `runs`, `logs` and `gaps`: what runs and what is missing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from reconciler.commands import completing
from reconciler.commands.command import command, option
from reconciler.commands.options import (
    PARENTS,
    environments_options,
    file_option,
    format_option,
    links_option,
    one_environment,
    output_option,
    range_of,
    range_options,
    rate_option,
    workspace_of,
    workspace_options,
)
from reconciler.commands.output import print_warnings, render_options, worst_of
from reconciler.commands.streams import write_calls, write_result
from reconciler.errors import BadUsage, ExitCode
from reconciler.model.run import LEVELS, STATUSES
from reconciler.model.text import quoted
from reconciler.render.formats import writer_of

if TYPE_CHECKING:
    from reconciler.commands.gaps import GapReport
    from reconciler.commands.runtime import Reported
    from reconciler.commands.status.report import State, StatusReport


def _states(_: click.Context, param: click.Parameter, written: tuple[str, ...]) -> frozenset[State]:
    """Return the states that comma lists name. Raises BadUsage for an unknown one."""
    from reconciler.commands.status.report import State
    from reconciler.model.address import choice
    from reconciler.planning.names import parts

    words = [part for text in written for part in parts(text)]
    for word in words:
        if word not in list(State):
            raise BadUsage(
                f"unknown state {quoted(word)} ({param.opts[0]})",
                hint=choice(word, [str(state) for state in State], "states"),
            )
    return frozenset(map(State, words))


@command(
    "status",
    examples=(
        ("status", "Show every export that needs attention, the worst first"),
        (
            "status --fail-on failing,lagging",
            "Exit with 2 if an export fails or lags, for a monitor",
        ),
        ("status -e '*'", "Show every environment in one report"),
    ),
    page="docs/operations.md",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources)
@environments_options
@option("--project", **PARENTS, group="Selection", help="Only exports in these projects.")
@option(
    "--fail-on",
    multiple=True,
    callback=_states,
    metavar="STATES",
    help="Exit with 2 if an export has one of these states: failing,lagging,paused.",
)
@output_option("--all", "show_all", is_flag=True, help="Also list exports that are ok.")
@output_option("--links", is_flag=True, help="Show a link to each export's page.")
@file_option("--html", "Also write a page with filters and the latest runs to this file.")
@format_option("status")
@rate_option
def status_command(
    names: tuple[str, ...],
    *,
    fail_on: frozenset[State],
    output_format: str,
    **options: Any,
) -> int:
    """Show the state of exports: last run, failures, lag behind the schedule, rows, pauses.

    Shows all exports of the organization, or those that NAME selects: address, id, key, name or
    glob. Reads only the lists. Of several environments, one that fails does not hide the others,
    and the exit code is the worst.
    """
    from reconciler.commands.files import write_private
    from reconciler.commands.running import Reporting, run_shown
    from reconciler.commands.status.state import status

    environments = one_environment(options)
    name = "statuses" if environments else "status"
    work = partial(status, names=names, projects=options["project"])
    how = render_options(links=options["links"])
    how = replace(how, verbose=bool(how.verbose or options["show_all"] or names))

    def code_of(report: StatusReport) -> ExitCode:
        failed = any(export.is_any_of(fail_on) for export in report.exports)
        return ExitCode.CHANGES if failed else ExitCode.FINE

    reporting = Reporting(work, environments, code_of)
    result: Reported[Any] = run_shown(reporting.report, workspace_of(options))
    text = writer_of(output_format, name)(result.report, how)
    print_warnings(result.diagnostics)
    write_result(text)
    if options["html"] is not None:
        write_private(options["html"], writer_of("html", name)(result.report, how).encode())
    write_calls(result.calls)
    return reporting.exit_code(result.report)


@command(
    "runs",
    examples=(
        ("runs lake", "The newest 20 runs of an export"),
        ("runs lake --run 0192e6b2-45d1-0000-5f2b-7c1a2b3c4d5e", "Everything about one run"),
        ("runs --status Failed --since 7d --all", "What failed in a week in any export"),
    ),
    page="docs/operations.md",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources)
@workspace_options
@option("--project", **PARENTS, group="Selection", help="Only exports in these projects.")
@option("--run", metavar="ID", help="Everything about this run of NAME.")
@range_options
@option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(STATUSES, case_sensitive=False),
    metavar="STATUS",
    help=f"Only runs with these statuses: {', '.join(STATUSES)}.",
)
@option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Maximum count.")
@option("--all", "everything", is_flag=True, help="All runs, page by page.")
@format_option("runs")
@links_option
@rate_option
def runs_command(
    names: tuple[str, ...], output_format: str, *, links: bool, **options: Any
) -> ExitCode:
    """Show the runs of exports, the newest first, or everything about one run.

    Shows the runs of all exports of the organization, or of those that NAME selects: address, id,
    key, name or glob. An export whose runs cannot be read does not hide the others, and the exit
    code is that of its error. Times without an offset are UTC. To export the intervals of failed
    runs again, use `reconciler backfill NAME --failed`.
    """
    from reconciler.commands.running import show_report
    from reconciler.commands.runs import runs

    if options["run"] is not None and (len(names) != 1 or options["project"]):
        raise BadUsage("--run is of one export", hint="write: reconciler runs NAME --run ID")
    first, last = range_of(options)
    work = partial(
        runs,
        names=names,
        projects=options["project"],
        run=options["run"],
        first=first,
        last=last,
        statuses=options["statuses"],
        limit=None if options["everything"] else options["limit"],
    )
    how = render_options(links=links)
    report = show_report("runs", output_format, work, workspace_of(options), how).report
    return worst_of(item.exit_code for item in report.unread)


@command(
    "logs",
    examples=(
        ("logs lake", "The newest 100 entries of an export"),
        ("logs lake --level warning --since 7d", "Warnings and errors of a week"),
        ("logs lake --run 0192e6b2-45d1-0000-5f2b-7c1a2b3c4d5e", "The entries of one run"),
    ),
    page="docs/operations.md",
)
@click.argument("name", shell_complete=completing.resources)
@workspace_options
@option("--run", metavar="ID", help="Only entries of this run.")
@option(
    "--level",
    type=click.Choice(LEVELS, case_sensitive=False),
    help="Only entries of this level or above.",
)
@option("--search", metavar="TEXT", help="Only entries with this text; % and _ are wildcards.")
@range_options
@option(
    "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Maximum count."
)
@option("--all", "everything", is_flag=True, help="All entries, page by page.")
@format_option("logs")
@links_option
@rate_option
def logs_command(name: str, output_format: str, *, links: bool, **options: Any) -> None:
    """Show the log of an export, the newest entry last.

    NAME is an address, an id, a key, a name or a glob of one export. Times without an offset are
    UTC. Servers of 2025 and spring 2026 refuse logs to API keys. Newer servers do not join
    logs to runs: with --run, they are the entries that were logged while it ran, and some may be of
    other runs.
    """
    from reconciler.commands.logs import logs
    from reconciler.commands.running import show_report

    first, last = range_of(options)
    work = partial(
        logs,
        name=name,
        first=first,
        last=last,
        limit=None if options["everything"] else options["limit"],
        **{name: options[name] for name in ("run", "level", "search")},
    )
    how = render_options(links=links)
    show_report("logs", output_format, work, workspace_of(options), how)


@command(
    "gaps",
    examples=(
        ("gaps", "Look for gaps of the last seven days in every export"),
        ("gaps lake 'orders-*' --since 30d", "Look at some exports, for a month"),
        ("gaps -e '*'", "Look in every environment"),
    ),
    page="docs/operations.md",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources)
@environments_options
@range_options
@format_option("gaps")
@rate_option
def gaps_command(names: tuple[str, ...], output_format: str, **options: Any) -> ExitCode:
    """Show the intervals that should have been exported and were not. Changes nothing.

    NAME is an address, an id, a key, a name or a glob. Looks at the last seven days, or at a range.
    Times without an offset are UTC. Exits with 2 if there are gaps. What can't be known, for
    example because of an earlier pause, is `unknown` and no gap. Of several environments, one that
    fails does not hide the others, and the exit code is the worst.
    """
    from reconciler.commands.gaps import gaps
    from reconciler.commands.running import Reporting, show_report

    environments, (first, last) = one_environment(options), range_of(options)

    def code_of(report: GapReport) -> ExitCode:
        return ExitCode.CHANGES if report.gaps else ExitCode.FINE

    reporting = Reporting(partial(gaps, names=names, first=first, last=last), environments, code_of)
    name = "all_gaps" if environments else "gaps"
    result = show_report(name, output_format, reporting.report, workspace_of(options))
    return reporting.exit_code(result.report)
