"""`reconciler apply`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

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
from reconciler.commands.process import (
    ByteOutput,
    is_interactive,
    run,
    stop_on_signals,
    write_calls,
    write_message,
    write_note,
    write_plan,
    write_report,
)
from reconciler.commands.screen import exit_code_of_apply, print_warnings, render_options
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.model.text import quoted
from reconciler.render.options import RenderOptions

if TYPE_CHECKING:
    from reconciler.commands.apply.changes import Applied
    from reconciler.commands.plan import PlanResult
    from reconciler.commands.workspace import Workspace
    from reconciler.model.event import Event, Report
    from reconciler.model.plan import Plan
    from reconciler.render.progress import Progress

_T = TypeVar("_T")
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
    from reconciler.commands.apply.changes import Screen, apply
    from reconciler.commands.screen import progress
    from reconciler.commands.sending import Outputs

    names = ("plan_file", "auto_approve", "plan_id", "push", "rollback")
    is_json = output_format == "json"
    workspace, listener = workspace_of(options), progress()
    how = render_options(workspace.folder, show_unmanaged=show_unmanaged, summary=summary)
    terminal = Terminal(listener, how, is_json=is_json)

    def work(workspace: Workspace) -> Awaitable[Applied]:
        return apply(
            workspace,
            plan_options_of(options),
            approve=terminal.approve if is_interactive() and not is_json else None,
            outputs=Outputs(log_file, ByteOutput() if is_json else None),
            screen=Screen(terminal.show, terminal.report),
            **{name: options[name] for name in names},
        )

    return finish(run_stoppable(work, workspace, listener))


class Terminal(Struct, frozen=True):
    """Shows the plan and the report, and asks. With `is_json`, stdout has only events."""

    progress: Progress
    how: RenderOptions
    is_json: bool = False

    def show(self, result: PlanResult) -> None:
        """Show a plan, and what applying it takes."""
        from reconciler.commands.screen import cost_of
        from reconciler.render.plan_text import plan_as_text

        self.progress.clear()
        print_warnings(result.diagnostics)
        cost = cost_of(result)
        if not self.is_json:
            write_plan(plan_as_text(result.plan, replace(self.how, cost=cost)))
        elif cost:
            write_note(f"{cost}\n")

    async def approve(self, plan: Plan) -> bool:
        """Ask for approval."""
        from reconciler.commands.screen import approved
        from reconciler.planning.approval import approval_of

        self.progress.clear()
        write_message("\n")
        return await approved(approval_of(plan))

    def report(self, report: Report) -> None:
        """Show how the changes ended."""
        from reconciler.render.progress import report_as_text

        self.progress.clear()
        if not self.is_json:
            write_report(report_as_text(report))


def run_stoppable(
    work: Callable[[Workspace], Awaitable[_T]], workspace: Workspace, listener: Progress
) -> _T:
    """Run a use case and show its progress. When a run starts, signals begin to request a stop."""
    from reconciler.commands.screen import shown
    from reconciler.model.event import BackfillsPlanned, Planned

    def listen(event: Event) -> None:
        if isinstance(event, Planned | BackfillsPlanned):
            stop_on_signals(workspace.runtime.stop)
        listener(event)

    runtime = replace(workspace.runtime, listen=listen)
    return run(shown(work(replace(workspace, runtime=runtime)), listener))


def finish(applied: Applied) -> int:
    """Print what remains after the report, and return the exit code."""
    from reconciler.render.plan_text import unverified_as_text

    verification = applied.verification
    if verification.is_empty:
        write_note("Verified: the plan is empty.\n")
    write_calls(applied.calls)
    write_message(unverified_as_text(verification.left, passed=verification.passed is True))
    if verification.error is not None:
        error = verification.error
        _print_error(f"applied, but not verified: {error.message}", error)
    if applied.record_problem is not None:
        _print_error(applied.record_problem.message, applied.record_problem)
    for problem in applied.problems:
        write_message(f"warning: {problem}\n")
    return exit_code_of_apply(applied)


def _print_error(message: str, error: ReconcilerError) -> None:
    from reconciler.render.progress import error_as_text

    write_message(error_as_text(ReconcilerError(message, hint=error.hint)))
