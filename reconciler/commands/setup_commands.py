"""`reconciler doctor` and `projects`: whether the set-up works, and its projects."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reconciler.commands import completing
from reconciler.commands.command import command, option
from reconciler.commands.options import (
    auto_approve_option,
    format_option,
    next_command,
    rate_option,
    workspace_of,
    workspace_options,
)
from reconciler.commands.output import render_options
from reconciler.commands.signals import stop_on_signals
from reconciler.commands.streams import is_interactive, write_message, write_report
from reconciler.errors import BadUsage, ExitCode
from reconciler.model.text import printable, quoted, several
from reconciler.render.formats import writer_of

if TYPE_CHECKING:
    from reconciler.commands.projects import ProjectDetails
    from reconciler.commands.runtime import Workspace

_ANSWERS = ("activity", "demo-data")
_ACTIONS = ("list", "show", *_ANSWERS, "reset-token")
_BROKEN = """\
A new token replaces that of {address} {name} (id {id}).
Clients that send events with the old token stop working until they use the new one.
This can't be undone.
"""


@command(
    "doctor",
    examples=(
        ("doctor", "Check the workspace of the current folder and its service"),
        ("doctor -e prod --format json", "Check one environment, for programs"),
        ("doctor lake", "Let the service test the destination of one export, too"),
    ),
    page="docs/operations.md",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources)
@workspace_options
@auto_approve_option
@format_option("health")
@rate_option
def doctor_command(
    names: tuple[str, ...], output_format: str, *, auto_approve: bool, **options: Any
) -> ExitCode:
    """Check the configuration, the API key, and git.

    Failed checks say how to fix them. Without a workspace, the service is the one that the
    variables RECONCILER_BASE_URL, RECONCILER_ORGANIZATION and RECONCILER_API_KEY name. Exits with 1
    if a check failed. Changes nothing.

    With NAME (an address, id, key, name or glob), the service also connects to the destinations of
    these exports with the configured credentials, and may create and drop test tables. Only servers
    of dialect 2026 offer this to API keys; for other exports the files, the policy and the secrets
    are checked.
    """
    from reconciler.commands.doctor.health import diagnose
    from reconciler.commands.running import approved, progress, show_report
    from reconciler.planning.approval import confirmed

    if auto_approve and not names:
        raise BadUsage("--auto-approve requires NAME", hint="name the exports to test")
    listener = progress()

    async def approve(count: int) -> bool:
        listener.clear()
        write_message(
            f"The service connects to {several(count, 'destination')} with the configured "
            "credentials, and may create and drop test tables. Nothing is saved.\n"
        )
        if auto_approve:
            return True
        if not is_interactive():
            raise BadUsage(
                "no terminal to ask for approval; nothing was tested", hint="pass --auto-approve"
            )
        return await approved(confirmed("Run these tests?"))

    workspace = workspace_of(options)
    work = partial(diagnose, names=names, approve=approve)
    report = show_report("health", output_format, work, workspace, listener=listener)
    return ExitCode.ERROR if report.failed else ExitCode.FINE


@command(
    "projects",
    examples=(
        ("projects list -e production", "List the projects, with the number of their exports"),
        ("projects show shop --format json", "Show the settings of one project, for programs"),
        ("projects reset-token shop --reveal", "Replace its token, and print the new one"),
    ),
    page="docs/operations.md",
)
@click.argument("action", type=click.Choice(_ACTIONS), metavar="ACTION")
@click.argument("name", required=False, metavar="[NAME]", shell_complete=completing.parents)
@workspace_options
@option("--reveal", is_flag=True, help="Print the API token (show, reset-token).")
@auto_approve_option
@format_option("project_details")
@rate_option
def projects_command(action: str, name: str | None, output_format: str, **options: Any) -> None:
    """List projects, show one, or reset its API token.

    ACTION is one of: list; show, the settings; activity; demo-data, whether demo data is being
    generated; reset-token. NAME is an address, an id, a key, a name or a glob of one project; list
    shows all without it. Servers since 2025 refuse the last three to API keys.

    reset-token asks for the name of the project. The request is sent once. If its answer is lost,
    the project is read to see whether the token changed.
    """
    from reconciler.commands.projects import projects, show_project
    from reconciler.commands.running import show_report

    _check_options(action, name, options)
    workspace = workspace_of(options)
    if action == "list":
        listed = partial(projects, names=(name,) if name else ())
        show_report("projects", output_format, listed, workspace)
        return
    if action == "reset-token":
        details = _reset(workspace, name or "", options)
        write_report(writer_of(output_format, "project_details")(details, render_options()))
        return
    operation = action.replace("-", "_") if action in _ANSWERS else None
    work = partial(show_project, name=name or "", operation=operation, reveal=options["reveal"])
    show_report("project_details", output_format, work, workspace)


def _reset(workspace: Workspace, name: str, options: Mapping[str, Any]) -> ProjectDetails:
    from reconciler.commands.projects import reset_token
    from reconciler.commands.running import approved, run_shown
    from reconciler.planning.approval import typed

    asks = not options["auto_approve"]
    if asks and not workspace.runtime.interactive:
        raise BadUsage(
            "no terminal to ask for the name; nothing was sent", hint="pass --auto-approve"
        )

    async def approve(details: ProjectDetails) -> bool:
        address, name = printable(str(details.address)), quoted(details.name)
        write_message(_BROKEN.format(address=address, name=name, id=details.id))
        question = "\nType the name of the project to reset its token: "
        if asks and not await approved(typed(question, details.name)):
            return False
        # A signal may not hide whether the request took effect.
        stop_on_signals(workspace.runtime.stop)
        return True

    work = partial(reset_token, name=name, approve=approve, reveal=options["reveal"])
    return run_shown(work, workspace)


def _check_options(action: str, name: str | None, options: Mapping[str, Any]) -> None:
    """Raise BadUsage for a missing name, and for options of other actions."""
    if name is None and action != "list":
        raise BadUsage(
            f"projects {action} requires NAME",
            hint=f"list them: {next_command('projects', 'list')}",
        )
    allowed = {"reveal": ("show", "reset-token"), "auto_approve": ("reset-token",)}
    for option_name, actions in allowed.items():
        if options[option_name] and action not in actions:
            shown = option_name.replace("_", "-")
            raise BadUsage(f"--{shown} is not an option of projects {action}")
