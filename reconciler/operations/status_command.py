"""`reconciler status`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from reconciler.cli import completing
from reconciler.cli.command import command, option
from reconciler.cli.exit_codes import worst_of
from reconciler.cli.options import (
    PARENTS,
    client_options,
    environments_options,
    file_option,
    format_option,
    one_environment,
    output_option,
    workspace_of,
)
from reconciler.cli.output import print_warnings, render_options
from reconciler.cli.signals import run
from reconciler.cli.streams import (
    write_message,
    write_note,
    write_result,
    write_screen,
    write_update,
)
from reconciler.errors import BadUsage, ExitCode, ServiceError
from reconciler.model.text import quoted
from reconciler.render.formats import DEFAULT, writer_of

if TYPE_CHECKING:
    from reconciler.commands.runtime import Reported, Runtime
    from reconciler.model.status import State, StatusReport
    from reconciler.render.options import RenderOptions


_PAUSE = 60
"""Seconds between two reports of --watch."""
EXAMPLES = (
    ("status", "Show every export that needs attention, the worst first"),
    ("status --fail-on failing,lagging", "Exit with 2 if an export fails or lags, for a monitor"),
    ("status -e '*'", "Show every environment in one report"),
)


def _states(_: click.Context, param: click.Parameter, written: tuple[str, ...]) -> frozenset[State]:
    """Return the states that comma lists name. Raises BadUsage for an unknown one."""
    from reconciler.model.address import choice
    from reconciler.model.naming import parts
    from reconciler.model.status import State

    words = [part for text in written for part in parts(text)]
    for word in words:
        if word not in list(State):
            raise BadUsage(
                f"unknown state {quoted(word)} ({param.opts[0]})",
                hint=choice(word, [str(state) for state in State], "states"),
            )
    return frozenset(map(State, words))


@command("status", examples=EXAMPLES, page="docs/operations.md")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources)
@environments_options
@option("--project", **PARENTS, group="Selection", help="Only exports in these projects.")
@option(
    "--fail-on",
    multiple=True,
    callback=_states,
    metavar="STATES",
    help="Exit with 2 if an export is in one of these states, such as failing,lagging,paused.",
)
@option(
    "--watch",
    is_flag=False,
    flag_value=_PAUSE,
    type=click.IntRange(min=1),
    metavar="[SECONDS]",
    help=f"Show it again every {_PAUSE} seconds, or as often as given, until Ctrl-C.",
)
@output_option("--all", "show_all", is_flag=True, help="List also the exports that are ok.")
@output_option("--links", is_flag=True, help="Show the address of the page of each export.")
@file_option("--html", "Also write a page with charts and filters to this file.")
@format_option("status")
@client_options
def status_command(
    names: tuple[str, ...],
    *,
    fail_on: frozenset[State],
    watch: int | None,
    output_format: str,
    **options: Any,
) -> int:
    """Show the state of exports: last run, failures, lag behind the schedule, rows, pauses.

    Shows all exports of the organization, or those that NAME selects: address, id, key, name or
    glob. Reads only the lists. Ctrl-C ends --watch with the exit code of the last report. Of
    several environments, one that fails does not hide the others, and the exit code is the worst.
    """
    from reconciler.cli.running import run_shown, runtime
    from reconciler.cli.several import print_errors, report_each
    from reconciler.operations.status import StatusRequest, status

    environments = one_environment(options)
    name = "statuses" if environments else "status"
    request = StatusRequest(workspace_of(options), names, options["project"])
    how = render_options()
    listed = bool(how.verbose or options["show_all"] or names)
    how = replace(how, verbose=listed, links=options["links"])

    def code_of(report: StatusReport) -> ExitCode:
        failed = any(export.state in fail_on for export in report.exports)
        return ExitCode.CHANGES if failed else ExitCode.FINE

    async def read(world: Runtime) -> Reported[Any]:
        if environments:
            return await report_each(status, request, environments, world, code_of)
        return await status(request, world)

    def show() -> ExitCode:
        world = runtime()
        result: Reported[Any] = run_shown(read, world)
        masked = replace(how, mask=world.mask)
        text = writer_of(output_format, name)(result.report, masked)
        if output_format == DEFAULT:
            text = _encodable(text)
        if watch is not None and sys.stdout.isatty():
            write_screen(text)
            print_warnings(result.diagnostics)
        else:
            print_warnings(result.diagnostics)
            (write_result if watch is None else write_update)(text)
        if options["html"] is not None:
            _write_page(options["html"], name, result.report, masked)
        write_note(f"{result.calls} API calls\n")
        if not environments:
            return code_of(result.report)
        print_errors(result.report)
        return worst_of(item.exit_code for item in result.report)

    return show() if watch is None else _watched(show, watch)


def _watched(show: Callable[[], ExitCode], seconds: int) -> ExitCode:
    """Show a report again and again until a signal; return the exit code of the last one.

    Errors of the service are reported, except in the first report.
    """
    import asyncio

    from reconciler.render.progress import error_as_text
    from reconciler.render.style import PLAIN

    code = show()
    while True:
        try:
            sys.stdout.flush()
            run(asyncio.sleep(seconds))
            code = show()
        except KeyboardInterrupt:
            return code
        except ServiceError as error:
            write_message(error_as_text(error, PLAIN))


def _encodable(text: str) -> str:
    """Return text with signs of ASCII where the encoding of the output lacks the others."""
    from reconciler.render.status import as_ascii

    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return as_ascii(text)
    return text


def _write_page(file: Path, name: str, report: Any, how: RenderOptions) -> None:
    from reconciler.commands.files import write_private

    write_private(file, writer_of("html", name)(report, how).encode())
