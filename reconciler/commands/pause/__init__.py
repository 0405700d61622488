"""`reconciler pause` and `unpause`: options, and how the plan is shown and applied."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from reconciler.commands.command import command, option
from reconciler.commands.options import (
    all_of,
    auto_approve_option,
    exports_options,
    log_option,
    next_command,
    text_or_json_option,
    workspace_of,
)
from reconciler.commands.process import ByteOutput, is_interactive, write_note, write_report
from reconciler.commands.screen import Terminal, print_end, progress, render_options, run_shown
from reconciler.errors import BadUsage
from reconciler.model.text import listed

if TYPE_CHECKING:
    from reconciler.commands.session import PlanResult
    from reconciler.model.event import Report
    from reconciler.model.kind import Action


_MOST_LISTED = 10


pausing_options = all_of(
    exports_options,
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
)
"""The names and the options that both commands have."""


def toggled(action: Action, names: tuple[str, ...], options: dict[str, Any]) -> int:
    """Pause or unpause objects, print how that ended, and return the exit code."""
    from reconciler.commands.apply.execution import Screen
    from reconciler.commands.pause.toggling import pause
    from reconciler.commands.sending import Outputs
    from reconciler.model.kind import Action

    is_json = options["output_format"] == "json"
    if not (names or options["project"] or options["destinations"]):
        raise BadUsage(
            "no export is named",
            hint="pass NAME, --project or --destination; '*' is every export",
        )
    if options["reason"] is not None and options["log_file"] is None and not is_json:
        raise BadUsage("--reason is for the audit log", hint="pass --log-file FILE, too")
    terminal = Terminal(progress(), render_options(), is_json=is_json)

    def show(result: PlanResult) -> None:
        plan = result.plan
        if not plan.empty or plan.refusals or is_json:
            terminal.show(result)
            return
        terminal.progress.clear()
        addresses = [change.address for change in plan.changes]
        write_report(f"already {action}d: {listed(addresses, _MOST_LISTED)}\n")
        for note in plan.notes:
            write_note(f"note: {note.about}: {note.message}\n")

    def report(report: Report) -> None:
        if report.done or report.failed or report.skipped:
            terminal.report(report)

    work = partial(
        pause,
        names=names,
        action=action,
        projects=options["project"],
        approve=terminal.approve if is_interactive() and not is_json else None,
        outputs=Outputs(options["log_file"], ByteOutput() if is_json else None, options["reason"]),
        screen=Screen(show, report),
        **{name: options[name] for name in ("destinations", "dry_run", "auto_approve")},
    )
    applied = run_shown(work, workspace_of(options), terminal.progress)
    print_end(applied)
    done = [str(end.change.address) for end in applied.ended.report.done]
    if done and action is Action.UNPAUSE:
        words = next_command("backfill", *done, "--since-pause")
        write_note(f"hint: export what the pause skipped:\n  {words}\n")
    return applied.ended.exit_code


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

    return toggled(Action.PAUSE, names, options)


@command(
    "unpause",
    examples=(
        ("unpause lake", "Unpause an export; its skipped runs are not made up for"),
        ("unpause --destination snowflake", "Unpause every export to Snowflake"),
    ),
    page="docs/operations.md",
)
@pausing_options
def unpause_command(names: tuple[str, ...], **options: Any) -> int:
    """Unpause exports, after showing the plan and what the next apply does.

    NAME is an address, an id, a key, a name or a glob; it may name exports that no resource
    claims. NAME, --project and --destination together select exports that all of them match. It
    prints the command that exports what the pause skipped: `backfill --since-pause`.
    """
    from reconciler.model.kind import Action

    return toggled(Action.UNPAUSE, names, options)
