"""`reconciler pause` and `unpause`: options, and how the plan is shown and applied."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from reconciler.cli import completing
from reconciler.cli.apply import Terminal, finish, run_runtime
from reconciler.cli.command import command, option
from reconciler.cli.options import (
    all_of,
    log_option,
    rate_option,
    text_or_json_option,
    workspace_of,
    workspace_options,
)
from reconciler.cli.output import is_interactive, render_options, style_of
from reconciler.cli.signals import run
from reconciler.cli.streams import ByteOutput, write_message, write_note, write_report
from reconciler.errors import BadUsage, ExitCode, Interrupted, ReconcilerError
from reconciler.model.text import listed, printable
from reconciler.operations.backfill_command import say_not_started, started

if TYPE_CHECKING:
    from reconciler.commands.planning import PlanResult
    from reconciler.model.event import Report
    from reconciler.model.kind import Action
    from reconciler.model.plan import Change
    from reconciler.operations.pausing import Paused, PauseRequest


_MOST_LISTED = 10


pausing_options = all_of(
    click.argument(
        "names", nargs=-1, required=True, metavar="NAME...", shell_complete=completing.resources
    ),
    workspace_options,
    option("--reason", metavar="TEXT", help="Reason to record in the audit log."),
    option("--write", is_flag=True, help="Also set `paused` in the files."),
    option("--auto-approve", is_flag=True, help="Do not ask for approval."),
    log_option("Append an audit log: JSON lines, one for each request."),
    text_or_json_option("json: only events on stdout, as in the audit log."),
    rate_option,
)
"""The names and the options that both commands have."""


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
        can_ask=is_interactive() and not is_json,
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


@command(
    "pause",
    examples=(
        ("pause lake", "Pause an export"),
        ("pause 'shop-*' --write", "Pause several, and set `paused: true` in the files"),
        ("pause lake --reason 'new warehouse' --log-file audit.jsonl", "Record the reason"),
    ),
    page="docs/operations.md",
)
@pausing_options
def pause_command(names: tuple[str, ...], **options: Any) -> int:
    """Pause exports, after showing the plan and what the next apply does.

    NAME is an address, an id, a key, a name or a glob; it may name exports that no resource
    claims. Paused exports skip their runs. --write sets the field in the files for this
    environment, so that the next apply keeps it.
    """
    from reconciler.model.kind import Action

    _, _, code = toggled(Action.PAUSE, names, options)
    return code


@command(
    "unpause",
    examples=(
        ("unpause lake", "Unpause an export; its skipped runs are not made up for"),
        ("unpause lake --backfill", "Unpause it, then backfill what the pause left out"),
    ),
    page="docs/operations.md",
)
@pausing_options
@option("--backfill", is_flag=True, help="Then backfill the intervals that the pause skipped.")
def unpause_command(names: tuple[str, ...], *, backfill: bool, **options: Any) -> int:
    """Unpause exports, after showing the plan and what the next apply does.

    NAME is an address, an id, a key, a name or a glob; it may name exports that no resource
    claims. With --backfill, the whole intervals that the pause left out are backfilled afterwards:
    they are shown and approved like those of `backfill --since-pause`.
    """
    from reconciler.model.kind import Action

    if backfill and options["output_format"] == "json":
        raise BadUsage("--backfill does not support --format json")
    paused, request, code = toggled(Action.UNPAUSE, names, options)
    if not backfill:
        return code
    applied = paused.applied
    # Also those that are unpaused already: an earlier command may have ended before its backfill.
    left = [change for change in applied.plan.changes if change.action is Action.NO_OP]
    left += [end.change for end in applied.ended.report.done]
    if code == ExitCode.FINE and left:
        return _backfilled(left, request)
    for change in left:
        # The next unpause finds nothing to do, and so starts no backfill.
        say_not_started(change.address)
    return code


def _backfilled(changes: Sequence[Change], request: PauseRequest) -> int:
    """Backfill what the pauses of exports left out, and return the exit code."""
    from reconciler.operations.backfills import BackfillRequest
    from reconciler.render.progress import error_as_text

    try:
        return started(
            BackfillRequest(
                request.workspace,
                tuple(change.live_id or "" for change in changes),
                since_pause=True,
                auto_approve=request.auto_approve,
                can_ask=request.can_ask,
                outputs=request.outputs,
            )
        )
    except BadUsage as error:
        write_note(f"nothing to backfill: {error.message}\n")
        return ExitCode.FINE
    except ReconcilerError as error:
        write_message(error_as_text(error))
        for change in changes:
            say_not_started(change.address)
        is_stop = isinstance(error, Interrupted)
        return ExitCode.INTERRUPTED if is_stop else ExitCode.PARTLY_APPLIED
