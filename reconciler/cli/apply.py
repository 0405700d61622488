"""`reconciler apply`."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from reconciler.cli.options import (
    plan_options,
    plan_request,
    unmanaged_option,
    workspace_options,
)
from reconciler.cli.output import print_warnings, progress, render_options, runtime
from reconciler.commands.applying import Applied, ApplyRequest, SavedPlan, apply
from reconciler.commands.files import read_file
from reconciler.commands.runtime import Runtime
from reconciler.errors import BadUsage, ExitCode
from reconciler.model.plan import Plan
from reconciler.planning.masking import masked
from reconciler.render.plan.text import plan_as_text
from reconciler.render.plan.words import summary
from reconciler.render.progress import report_as_text


@click.command("apply")
@click.argument(
    "plan_file",
    required=False,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="[PLAN_FILE]",
)
@workspace_options
@plan_options
@unmanaged_option
@click.option("--auto-approve", is_flag=True, help="Do not ask for approval.")
@click.option("--verify/--no-verify", default=True, help="Plan again afterwards.")
@click.option(
    "--log-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Append an audit log: JSON lines, one for each request and change.",
)
def command(
    plan_file: Path | None,
    *,
    auto_approve: bool,
    verify: bool,
    log_file: Path | None,
    **options: Any,
) -> int:
    """Print the plan, ask for approval, and apply it.

    With PLAN_FILE exactly that plan is applied, or nothing if it is stale (exit code 4).
    Without a terminal, --auto-approve or a plan file is needed.
    """
    request = plan_request(options)
    if plan_file is not None and request.steered:
        raise BadUsage("a saved plan is applied as it is: it takes no options that steer planning")
    if plan_file is None and not auto_approve and not sys.stdin.isatty():
        raise BadUsage(
            "no terminal to ask for approval; nothing was sent",
            hint="pass --auto-approve, or a plan that was saved with `plan --out FILE`",
        )
    saved = SavedPlan(str(plan_file), read_file(plan_file)) if plan_file is not None else None
    asked = ApplyRequest(request, saved=saved, verify=verify, log_file=log_file)

    def show(plan: Plan, mask: Callable[[str], str]) -> None:
        how = render_options(show_unmanaged=options["show_unmanaged"])
        click.echo(plan_as_text(masked(plan, mask), how), nl=False)

    def approve(plan: Plan) -> bool:
        if auto_approve or plan_file is not None:
            return True
        return click.confirm(f"\n{summary(plan)}. Apply this?", default=False, err=True)

    world = runtime(progress())
    result = asyncio.run(_interruptibly(asked, world, show, approve))
    return _ended(result)


async def _interruptibly(
    request: ApplyRequest,
    world: Runtime,
    show: Callable[[Plan, Callable[[str], str]], None],
    approve: Callable[[Plan], bool],
) -> Applied:
    """Apply; after approval, SIGINT and SIGTERM request a stop."""
    loop = asyncio.get_running_loop()

    def ask_first(plan: Plan) -> bool:
        approved = approve(plan)
        if approved:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, world.stop.ask)
        return approved

    return await apply(request, world, show=show, approve=ask_first)


def _ended(result: Applied) -> int:
    print_warnings(result.diagnostics)
    if not result.approved:
        click.echo("Nothing was applied.", err=True)
        return ExitCode.ERROR
    if result.report is None:
        return ExitCode.FINE
    click.echo(f"\n{report_as_text(result.report)}", nl=False)
    click.echo(f"{result.calls} calls in total", err=True)
    if result.report.interrupted and (result.report.skipped or result.report.failed):
        return ExitCode.INTERRUPTED
    if result.report.failed or result.report.skipped:
        return ExitCode.PARTLY_APPLIED
    if result.left is not None and not result.left.empty:
        click.echo(
            "error: a second plan after apply is not empty:\n"
            + plan_as_text(masked(result.left, result.mask), render_options()),
            nl=False,
            err=True,
        )
        return ExitCode.ERROR
    return ExitCode.FINE
