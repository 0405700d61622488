"""`reconciler pause` and `unpause`: options, and how the plan is shown and applied."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from reconciler.commands import completing
from reconciler.commands.apply.command import Terminal, finish, run_stoppable
from reconciler.commands.command import command, option
from reconciler.commands.options import (
    PARENTS,
    all_of,
    auto_approve_option,
    log_option,
    rate_option,
    text_or_json_option,
    workspace_of,
    workspace_options,
)
from reconciler.commands.output import render_options
from reconciler.commands.streams import (
    ByteOutput,
    is_interactive,
    write_calls,
    write_note,
    write_report,
)
from reconciler.errors import BadUsage, ExitCode
from reconciler.model.text import listed

if TYPE_CHECKING:
    from reconciler.commands.apply.run import Applied
    from reconciler.commands.plan.work import PlanResult
    from reconciler.model.event import Report
    from reconciler.model.kind import Action


_MOST_LISTED = 10


pausing_options = all_of(
    click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources),
    workspace_options,
    option("--project", **PARENTS, group="Selection", help="Only exports in these projects."),
    option(
        "--destination",
        "destinations",
        multiple=True,
        metavar="GLOB",
        group="Selection",
        help="Only exports to these destinations: a type, or where it sends, such as snowflake, "
        "'s3://acme-*' or '*.acme.example*'.",
    ),
    option("--reason", metavar="TEXT", help="Reason to record in the audit log."),
    option("--dry-run", is_flag=True, help="Show the plan; change nothing."),
    auto_approve_option,
    log_option("Append an audit log: JSON lines, one for each request."),
    text_or_json_option("json: only events on stdout, as in the audit log."),
    rate_option,
)
"""The names and the options that both commands have."""


def toggled(action: Action, names: tuple[str, ...], options: dict[str, Any]) -> Applied | None:
    """Pause or unpause objects; return how that ended, None for a dry run."""
    from reconciler.commands.apply.run import Screen, check_policy
    from reconciler.commands.pause.run import pause, plan_pause
    from reconciler.commands.recording import Outputs
    from reconciler.commands.running import progress, run_shown

    is_json = options["output_format"] == "json"
    log_file: Path | None = options["log_file"]
    if not (names or options["project"] or options["destinations"]):
        raise BadUsage(
            "no export is named",
            hint="pass NAME, --project or --destination; '*' is every export",
        )
    if options["reason"] is not None and log_file is None and not is_json:
        raise BadUsage("--reason is for the audit log", hint="pass --log-file FILE, too")
    listener, stream = progress(), ByteOutput() if is_json else None
    terminal = _Terminal(Terminal(listener, render_options(), is_json=is_json), action)
    chosen = {"projects": options["project"], "destinations": options["destinations"]}
    chosen |= {"names": names, "action": action}
    if options["dry_run"]:
        result = run_shown(partial(plan_pause, **chosen), workspace_of(options), listener)
        terminal.show(result)
        write_calls(result.calls)
        check_policy(result.plan)
        return None
    work = partial(
        pause,
        **chosen,
        approve=terminal.inner.approve if is_interactive() and not is_json else None,
        auto_approve=options["auto_approve"],
        outputs=Outputs(log_file, stream, options["reason"]),
        screen=Screen(terminal.show, terminal.report),
    )
    return run_stoppable(work, workspace_of(options), listener)


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
        ("pause --destination snowflake --dry-run", "Show what would pause if Snowflake is down"),
        ("pause 'shop-*' --reason 'new warehouse' --log-file audit.jsonl", "Record the reason"),
    ),
    page="docs/operations.md",
)
@pausing_options
def pause_command(names: tuple[str, ...], **options: Any) -> int:
    """Pause exports, after showing the plan and what the next apply does.

    NAME is an address, an id, a key, a name or a glob; it may name exports that no resource
    claims. NAME, --project and --destination together select exports that all of them match.
    Paused exports skip their runs. Set `paused: true` in the files, too, so that the next apply
    keeps it.
    """
    from reconciler.model.kind import Action

    applied = toggled(Action.PAUSE, names, options)
    return ExitCode.FINE if applied is None else finish(applied)
