"""`reconciler apply`."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import click

from reconciler.commands.command import command, option
from reconciler.commands.options import (
    auto_approve_option,
    log_option,
    plan_options,
    plan_options_of,
    rate_option,
    summary_option,
    text_or_json_option,
    unmanaged_option,
    workspace_of,
    workspace_options,
)
from reconciler.commands.process import ByteOutput, is_interactive
from reconciler.commands.screen import Terminal, print_end, progress, render_options, run_shown
from reconciler.errors import BadUsage
from reconciler.model.text import quoted

EXAMPLES = (
    ("apply", "Show the plan, ask, and apply it"),
    ("apply plan.json", "Apply a saved plan, or nothing if the plan of now differs"),
    (
        "apply -e production --auto-approve --push --log-file audit.jsonl",
        "In a job after the merge",
    ),
)


def _checked_id(_: click.Context, __: click.Parameter, written: str | None) -> str | None:
    if written is not None and not re.fullmatch("[0-9a-f]{8,64}", written):
        raise BadUsage(
            f"invalid --plan-id {quoted(written)}",
            hint="write the first 8 to 64 hexadecimal digits of the id that the plan shows",
        )
    return written


@command("apply", examples=EXAMPLES, page="docs/planning.md")
@click.argument("plan_file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@workspace_options
@plan_options
@unmanaged_option
@summary_option
@auto_approve_option
@option(
    "--plan-id",
    callback=_checked_id,
    metavar="ID",
    help="Apply without asking if the plan has this id: 8 to 64 digits of it.",
)
@option("--push", is_flag=True, help="Push the inventory.")
@option("--rollback", is_flag=True, help="Apply a commit older than the applied one.")
@log_option("Append an audit log: JSON lines, one for each request and change.")
@text_or_json_option("json: only events on stdout, as in the audit log.")
@rate_option
def apply_command(
    *,
    log_file: Path | None,
    output_format: str,
    show_unmanaged: bool,
    summary: bool,
    **options: Any,
) -> int:
    """Print the plan, ask for approval, and apply it.

    With PLAN_FILE, plan again; if the new plan differs from the file, apply nothing and exit with
    4. An interrupted run can be repeated with the same file. Without a
    terminal, use --auto-approve, --plan-id or PLAN_FILE.
    """
    from reconciler.commands.apply.execution import Screen, apply
    from reconciler.commands.sending import Outputs

    is_json, workspace = output_format == "json", workspace_of(options)
    how = render_options(workspace.folder, show_unmanaged=show_unmanaged, summary=summary)
    terminal = Terminal(progress(), how, is_json=is_json)
    names = ("plan_file", "auto_approve", "plan_id", "push", "rollback")
    work = partial(
        apply,
        options=plan_options_of(options),
        approve=terminal.approve if is_interactive() and not is_json else None,
        outputs=Outputs(log_file, ByteOutput() if is_json else None),
        screen=Screen(terminal.show, terminal.report),
        **{name: options[name] for name in names},
    )
    applied = run_shown(work, workspace, terminal.progress)
    print_end(applied)
    return applied.ended.exit_code
