"""`reconciler backfill`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reconciler.commands.command import OUTPUT, command, option
from reconciler.commands.options import (
    auto_approve_option,
    exports_options,
    log_option,
    range_options,
    text_or_json_option,
    workspace_of,
)
from reconciler.commands.process import (
    is_interactive,
    stop_on_signals,
    write_calls,
    write_message,
    write_note,
    write_plan,
    write_report,
)
from reconciler.commands.screen import approved, confirmed, progress, render_options, run_shown
from reconciler.errors import BadUsage
from reconciler.exit_codes import ExitCode
from reconciler.model.public import as_json
from reconciler.model.text import several
from reconciler.model.times import duration_of
from reconciler.render import DEFAULT, writer_of

if TYPE_CHECKING:
    from reconciler.commands.backfill.planning import Wanted
    from reconciler.model.run import BackfillPlan

_WINDOW = "7d"
# Options that only starting has: `--cancel` would cancel everything in spite of them.
_OF_STARTS = (
    *("dry_run", "failed", "first", "gaps", "last"),
    *("log_file", "since", "since_pause", "wait"),
)


@command(
    "backfill",
    examples=(
        ("backfill '*' --gaps", "Close the gaps of every export, with one approval"),
        (
            "backfill lake --from 2026-03-01 --to 2026-03-08 --dry-run",
            "Show the backfills of a week",
        ),
        ("backfill lake --cancel", "Cancel the backfills that run"),
    ),
    page="docs/operations.md",
)
@exports_options
@range_options
@option("--gaps", is_flag=True, help="Backfill the gaps of the range or of the last seven days.")
@option("--failed", is_flag=True, help="Only gaps whose runs failed.")
@option("--since-pause", is_flag=True, help="Backfill the intervals that the last pause skipped.")
@option("--cancel", "cancelled", is_flag=True, help="Cancel running backfills instead.")
@option("--wait", is_flag=True, help="Wait for the backfills to end, and report their runs.")
@option("--dry-run", is_flag=True, help="Show the backfills; start none.")
@auto_approve_option
@log_option("Append an audit log: JSON lines, one for each request.")
@text_or_json_option(
    "json: the plan, and how it ended. Requires --auto-approve or --dry-run.", group=OUTPUT
)
def backfill_command(names: tuple[str, ...], **options: Any) -> ExitCode:
    """Export past intervals again: a range, or those that were not exported.

    NAME is an address, an id, a key, a name or a glob; '*' is every export. Ranges are aligned to
    whole intervals. Times without an offset are UTC; a date is a day in the time zone of the
    export. Each backfill is sent once. If the last run failed, one interval is tried first. Exits
    with 3 if a backfill was not started or did not complete.
    """
    if options["cancelled"]:
        return _cancelled(names, options)
    return _started(names, _wanted(options), options)


def _cancelled(names: tuple[str, ...], options: dict[str, Any]) -> ExitCode:
    """Show, approve and cancel the running backfills of one export; print their number."""
    from reconciler.commands.backfill.starting import cancel_backfills

    known = click.get_current_context().command.params
    given = [item.opts[-1] for item in known if item.name in _OF_STARTS and options[item.name]]
    given += ["--format json"] if options["output_format"] == "json" else []
    if given:
        raise BadUsage(f"--cancel excludes {given[0]}", hint="omit one of them")
    if len(names) != 1 or options["project"]:
        raise BadUsage("--cancel needs one NAME")
    listener, workspace = progress(), workspace_of(options)

    async def approve(text: str) -> bool:
        listener.clear()
        write_plan(text)
        if not (options["auto_approve"] or await confirmed("Cancel these backfills?")):
            return False
        # A signal may not hide what was cancelled before.
        stop_on_signals(workspace.runtime.stop)
        return True

    work = partial(cancel_backfills, name=names[0], approve=approve)
    ids = run_shown(work, workspace, listener)
    write_report(f"cancelled {several(len(ids), 'backfill')}\n" if ids else "no backfill runs\n")
    return ExitCode.FINE


def _wanted(options: Mapping[str, Any]) -> Wanted:
    """Return what to backfill. Raises BadUsage for options that exclude each other or lack one."""
    from reconciler.commands.backfill.planning import ClosedGaps, SincePause, Span

    first, last, since = options["first"], options["last"], options["since"]
    closes_gaps = options["gaps"] or options["failed"]
    if since is not None and (not closes_gaps or first is not None):
        raise BadUsage("--since needs --gaps, and excludes --from")
    has_range = not closes_gaps and not (first is None and last is None)
    if closes_gaps + options["since_pause"] + has_range != 1:
        raise BadUsage(
            "what to backfill is not clear",
            hint="pass --from and --to, --gaps, --failed or --since-pause",
        )
    if closes_gaps:
        length = duration_of(since or _WINDOW)
        return ClosedGaps(first, last, length, failed=options["failed"])
    if options["since_pause"]:
        return SincePause()
    if first is None or last is None:
        raise BadUsage("--from and --to are needed together")
    return Span(first, last)


def _started(names: tuple[str, ...], wanted: Wanted, options: dict[str, Any]) -> ExitCode:
    """Plan, show, approve and start backfills; print how they ended; return the exit code."""
    from reconciler.commands.backfill.planning import approval_of_backfills
    from reconciler.commands.backfill.starting import backfill
    from reconciler.commands.sending import Outputs
    from reconciler.render.runs import ends_as_text

    is_json = options["output_format"] == "json"
    listener, workspace = progress(), workspace_of(options)

    def show(plan: BackfillPlan) -> None:
        listener.clear()
        # With JSON, stdout is for the result only.
        write = write_note if is_json else write_plan
        write(writer_of(DEFAULT, "backfills")(plan, render_options()))

    async def approve(plan: BackfillPlan) -> bool:
        listener.clear()
        write_message("\n")
        return await approved(approval_of_backfills(plan))

    work = partial(
        backfill,
        names=names,
        wanted=wanted,
        projects=options["project"],
        approve=approve if is_interactive() and not is_json else None,
        outputs=Outputs(options["log_file"]),
        show=show,
        **{name: options[name] for name in ("wait", "dry_run", "auto_approve")},
    )
    result = run_shown(work, workspace, listener)
    if is_json:
        write_report(as_json(result.plan))
    else:
        environment = result.plan.source.environment
        write_report(ends_as_text(result.report.objects, render_options(), environment))
    write_calls(result.calls)
    for problem in result.problems:
        write_message(f"warning: {problem}\n")
    return result.report.exit_code
