"""`reconciler apply`."""

from __future__ import annotations

import asyncio
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from reconciler.cli.exit_codes import exit_code_of_apply
from reconciler.cli.options import (
    file_option,
    plan_options,
    plan_request,
    unmanaged_option,
    workspace_options,
)
from reconciler.cli.output import print_warnings, progress, render_options, runtime
from reconciler.commands.applying import ApplyRequest, apply
from reconciler.commands.planning import PlanResult
from reconciler.commands.runtime import Runtime
from reconciler.model.event import Event, Planned
from reconciler.model.plan import Plan
from reconciler.render.plan.text import plan_as_text, unverified_as_text
from reconciler.render.plan.words import summary
from reconciler.render.progress import report_as_text


@click.command("apply")
@click.argument("plan_file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@workspace_options
@plan_options
@unmanaged_option
@click.option("--auto-approve", is_flag=True, help="Do not ask for approval.")
@click.option("--verify/--no-verify", default=True, help="Plan again afterwards.")
@file_option("--log-file", "Append an audit log: JSON lines, one for each request and change.")
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
    request = ApplyRequest(
        plan_request(options),
        plan_file=plan_file,
        auto_approve=auto_approve,
        can_ask=sys.stdin.isatty(),
        verify=verify,
        log_file=log_file,
    )
    how = render_options(show_unmanaged=options["show_unmanaged"])

    def show(result: PlanResult) -> None:
        print_warnings(result.diagnostics)
        click.echo(plan_as_text(result.plan, how), nl=False)

    applied = asyncio.run(apply(request, _runtime(), show=show, approve=_approve))
    click.echo(report_as_text(applied.report), nl=False)
    click.echo(f"{applied.calls} API calls", err=True)
    click.echo(unverified_as_text(applied.left), nl=False, err=True)
    return exit_code_of_apply(applied)


def _runtime() -> Runtime:
    """Return a runtime that prints progress. When a run starts, signals begin to request a stop."""
    plain = runtime()
    print_progress = progress()

    def listen(event: Event) -> None:
        if isinstance(event, Planned):
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGINT, plain.stop.set)
            loop.add_signal_handler(signal.SIGTERM, plain.stop.set)
        print_progress(event)

    return replace(plain, listen=listen)


def _approve(plan: Plan) -> bool:
    return click.confirm(f"\n{summary(plan)} Apply this plan?", default=False, err=True)
