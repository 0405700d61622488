"""What `pause` and `unpause` share: options, and how the plan is shown and applied."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from reconciler.cli import completing
from reconciler.cli.apply import Terminal, finish, run_runtime
from reconciler.cli.command import option
from reconciler.cli.options import client_options, log_option, workspace_of, workspace_options
from reconciler.cli.output import render_options, style_of
from reconciler.cli.signals import run
from reconciler.cli.streams import ByteOutput, write_note, write_report
from reconciler.errors import BadUsage
from reconciler.model.text import listed, printable

if TYPE_CHECKING:
    from reconciler.commands.planning import PlanResult
    from reconciler.model.action import Action
    from reconciler.model.event import Report
    from reconciler.operations.pausing import Paused, PauseRequest


_Function = TypeVar("_Function", bound=Callable[..., Any])
_MOST_LISTED = 10


def pausing_options(function: _Function) -> _Function:
    """Add the names and the options that both commands have."""
    decorators = (
        click.argument(
            "names", nargs=-1, required=True, metavar="NAME...", shell_complete=completing.resources
        ),
        workspace_options,
        option("--reason", metavar="TEXT", help="Why, for the audit log."),
        option("--write", is_flag=True, help="Also set `paused` in the files."),
        option("--auto-approve", is_flag=True, help="Do not ask for approval."),
        log_option("--log-file", "Append an audit log: JSON lines, one for each request."),
        option(
            "--format",
            "output_format",
            type=click.Choice(("text", "json")),
            default="text",
            show_default=True,
            help="json: only events on stdout, as in the audit log.",
        ),
        client_options,
    )
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def toggled(
    action: Action, names: tuple[str, ...], options: dict[str, Any]
) -> tuple[Paused, PauseRequest, int]:
    """Pause or unpause objects; return how that ended, the request, and the exit code."""
    from reconciler.authoring.difference import differences_as_text
    from reconciler.cli.running import progress, shown
    from reconciler.commands.applying import Screen
    from reconciler.commands.recording import Outputs
    from reconciler.operations.pausing import PauseRequest, pause

    is_json = options["output_format"] == "json"
    log_file: Path | None = options["log_file"]
    if options["reason"] is not None and log_file is None and not is_json:
        raise BadUsage("--reason is for the audit log", hint="pass --log-file FILE, too")
    request = PauseRequest(
        workspace_of(options),
        names,
        action,
        write=options["write"],
        auto_approve=options["auto_approve"],
        can_ask=sys.stdin.isatty() and not is_json,
        outputs=Outputs(
            log_file, stream=ByteOutput() if is_json else None, reason=options["reason"]
        ),
    )
    listener = progress()
    terminal = _Terminal(Terminal(listener, render_options(), is_json=is_json), action)
    screen = Screen(terminal.show, terminal.inner.approve, terminal.report)
    paused = run(shown(pause(request, run_runtime(listener), screen), listener))
    if paused.files and not is_json:
        write_report(differences_as_text(paused.files, style_of(sys.stdout)))
        write_note(f"written: {printable(listed(sorted(paused.files), _MOST_LISTED))}\n")
    return paused, request, finish(paused.applied)


class _Terminal(Struct, frozen=True):
    """Shows the plan, unless there is nothing to do: then it says so, and what an apply does."""

    inner: Terminal
    action: Action

    def show(self, result: PlanResult) -> None:
        """Show a plan."""
        plan = result.plan
        if not plan.empty or plan.refusals or self.inner.is_json:
            self.inner.show(result)
            return
        self.inner.progress.clear()
        addresses = [change.address for change in plan.changes]
        write_report(f"already {self.action}d: {listed(addresses, _MOST_LISTED)}\n")
        for note in plan.notes:
            write_note(f"note: {note.about}: {note.message}\n")

    def report(self, report: Report) -> None:
        """Show how a plan ended that was not empty."""
        if report.done or report.failed or report.skipped:
            self.inner.report(report)
