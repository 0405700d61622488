"""`reconciler plan`, for one environment or for several in one run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec.structs import replace

from reconciler.commands.command import command, option
from reconciler.commands.options import (
    STDOUT,
    OutputPath,
    environments_option,
    files_options,
    folder_option,
    format_option,
    next_command,
    one_environment,
    plan_options,
    plan_options_of,
    rate_option,
    summary_option,
    unmanaged_option,
    workspace_of,
)
from reconciler.commands.process import (
    ByteOutput,
    write_message,
    write_note,
    write_private,
    write_result,
)
from reconciler.commands.screen import (
    cost_of,
    render_options,
    report_each,
    write_runner_files,
)
from reconciler.commands.workspace import Reported, Workspace
from reconciler.diagnostics import OfEnvironment
from reconciler.errors import BadUsage, system_error
from reconciler.exit_codes import ExitCode, code_of_plan
from reconciler.git.ci import is_job
from reconciler.model.settings import PlanOptions
from reconciler.model.text import printable
from reconciler.render import writer_of
from reconciler.render.options import RenderOptions

if TYPE_CHECKING:
    from reconciler.commands.session import PlanResult
    from reconciler.model.plan import Plan


EXAMPLES = (
    ("plan", "Show what would change"),
    (
        "plan --target web-lake --out plan.json",
        "Plan one resource, and save the plan for `apply plan.json`",
    ),
    ("plan -e '*' --format markdown", "Plan every environment as a comment for a pull request"),
)


@command("plan", examples=EXAMPLES, page="docs/planning.md")
@folder_option
@environments_option
@files_options
@plan_options
@unmanaged_option
@summary_option
@format_option("plan")
@option(
    "--out",
    type=OutputPath(path_type=Path),
    metavar="FILE",
    help="Save the plan for `apply FILE`; - for stdout. Of several environments: the folder for "
    "the file of each.",
)
@rate_option
@option("--detailed-exitcode", is_flag=True, help="Exit with 2 if there are changes.")
def plan_command(
    output_format: str,
    out: Path | None,
    *,
    detailed_exitcode: bool,
    **options: Any,
) -> int:
    """Show what would change to make live state match the configuration. Changes nothing.

    Exits with 5 if the policy refuses the plan. With several environments, one that fails does not
    stop the others, and the exit code is the worst.
    """
    environments = one_environment(options)
    if environments:
        if out == STDOUT:
            raise BadUsage("--out - takes one environment", hint="select one with -e")
    elif out is not None and out.is_dir():
        raise BadUsage(f"--out {printable(str(out))} is a folder", hint="name a file")
    workspace, wanted = workspace_of(options), plan_options_of(options)
    shown = {name: options[name] for name in ("show_unmanaged", "summary")}
    how = render_options(workspace.folder, **shown)

    async def work(world: Workspace) -> Reported[PlanResult]:
        if out is not None and environments:
            world = replace(world, outputs={"--out": _file_of(out, str(world.environment))})
        result = await plan(world, wanted)
        return Reported(result, result.diagnostics, result.calls)

    def code_of(result: PlanResult) -> ExitCode:
        return code_of_plan(
            refused=result.plan.is_refused, changes=detailed_exitcode and not result.plan.empty
        )

    def show(items: Sequence[OfEnvironment[PlanResult]]) -> None:
        if not environments and (one := items[0].result) is not None:
            _show(one.plan, output_format, replace(how, cost=cost_of(one)), out)
            return
        plans = [
            OfEnvironment(
                item.environment,
                item.result.plan if item.result is not None else None,
                item.error,
                item.exit_code,
                cost_of(item.result) if item.result is not None else "",
            )
            for item in items
        ]
        write_result(writer_of(output_format, "plans")(plans, how))
        if out is not None:
            _save_all(plans, out)

    return report_each(work, workspace, environments, code_of, show)


def _show(plan: Plan, output_format: str, how: RenderOptions, out: Path | None) -> None:
    """Print a plan, save it, and write the files of the CI job."""
    shown = writer_of(output_format, "plan")(plan, how)
    (write_message if out == STDOUT else write_result)(shown)
    if out is not None:
        _save(plan, out)
    if output_format == "github":
        write_runner_files(plan, how, saved=out if out != STDOUT else None)


def _save(plan: Plan, out: Path) -> None:
    """Save a plan for `apply FILE`."""
    from reconciler.model.plan import encode

    if out == STDOUT:
        ByteOutput().write(encode(plan))
        return
    write_private(out, encode(plan))
    write_note(f"saved to {printable(str(out))}{_usage(plan, 'it', str(out))}\n")


def _usage(plan: Plan, word: str, file: str, **options: str) -> str:
    """Return how to apply a saved plan, "" if that would do nothing or be refused."""
    if plan.empty or plan.refusals:
        return ""
    return f"; apply {word} with: {next_command('apply', file, **options)}"


def _file_of(out: Path, environment: str) -> Path:
    # The name of an environment may have a slash.
    return out / f"{quote(environment, safe='')}.json"


def _save_all(plans: Sequence[OfEnvironment[Plan]], out: Path) -> None:
    """Write the plan of each environment; remove an older file where planning failed."""
    from reconciler.model.plan import encode

    files = [(item, _file_of(out, item.environment)) for item in plans]
    try:
        out.mkdir(parents=True, exist_ok=True)
        for item, file in files:
            if item.result is None:
                file.unlink(missing_ok=True)
    except OSError as error:
        raise system_error(error) from None
    saved = [(item, file, item.result) for item, file in files if item.result is not None]
    for _, file, plan in saved:
        write_private(file, encode(plan))
    usages = [
        _usage(plan, "one", str(file), environment=item.environment) for item, file, plan in saved
    ]
    if saved:
        write_note(f"saved to {printable(str(out))}{next(filter(None, usages), '')}\n")


async def plan(workspace: Workspace, options: PlanOptions | None = None) -> PlanResult:
    """Read live state and return the plan of all resources, or what `options` say. Changes nothing.

    Raises InvalidConfiguration, GitUnavailable, BadUsage, ServiceError.
    """
    from reconciler.commands.session import (
        connected,
        inventory_of,
        open_session,
        planned,
        shown_plan,
    )
    from reconciler.model.plan import Note
    from reconciler.service.access import known_key

    session, options = open_session(workspace), options or PlanOptions()
    async with connected(session) as transport:
        made, _ = await planned(session, transport, options, inventory_of(session, options))
        key = await known_key(transport) if is_job(workspace.runtime.environ) else None
        if key is not None and key.may_write:
            note = Note(
                "key-may-write",
                "the API key of this job may write: plan pull requests with a key that only reads",
            )
            made = replace(made, notes=(*made.notes, note))
        return await shown_plan(session, transport, made)
