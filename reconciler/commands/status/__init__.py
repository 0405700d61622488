"""`reconciler status`: the state of exports, the worst first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from reconciler.commands.command import OUTPUT, command, option
from reconciler.commands.options import (
    environments_options,
    file_option,
    format_option,
    links_option,
    one_environment,
    project_option,
    workspace_of,
)
from reconciler.commands.process import write_private, write_result
from reconciler.commands.screen import render_options, report_each
from reconciler.diagnostics import OfEnvironment
from reconciler.errors import BadUsage
from reconciler.exit_codes import ExitCode
from reconciler.model.text import choice, quoted
from reconciler.render import writer_of

if TYPE_CHECKING:
    from reconciler.commands.status.report import State, StatusReport


def _states(_: click.Context, param: click.Parameter, written: tuple[str, ...]) -> frozenset[State]:
    """Return the states that comma lists name. Raises BadUsage for an unknown one."""
    from reconciler.commands.status.report import State
    from reconciler.planning.select import parts

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
@environments_options
@project_option
@option(
    "--fail-on",
    multiple=True,
    callback=_states,
    metavar="STATES",
    help="Exit with 2 if an export has one of these states: failing,lagging,paused.",
)
@option("--all", "show_all", is_flag=True, group=OUTPUT, help="Also list exports that are ok.")
@links_option
@file_option("--html", "Also write a page with filters and the latest runs to this file.")
@format_option("status")
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
    from reconciler.commands.status.state import status

    environments = one_environment(options)
    name = "statuses" if environments else "status"
    work = partial(status, names=names, projects=options["project"])
    how = render_options(links=options["links"])
    how = replace(how, verbose=bool(how.verbose or options["show_all"] or names))

    def code_of(report: StatusReport) -> ExitCode:
        failed = any(export.is_any_of(fail_on) for export in report.exports)
        return ExitCode.CHANGES if failed else ExitCode.FINE

    def show(items: Sequence[OfEnvironment[StatusReport]]) -> None:
        shown = items if environments else items[0].result
        write_result(writer_of(output_format, name)(shown, how))
        if options["html"] is not None:
            write_private(options["html"], writer_of("html", name)(shown, how).encode())

    return report_each(work, workspace_of(options), environments, code_of, show)
