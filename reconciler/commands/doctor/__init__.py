"""`reconciler doctor`: whether the set-up works."""

from __future__ import annotations

from functools import partial
from typing import Any

from reconciler.commands.command import command
from reconciler.commands.options import (
    auto_approve_option,
    format_option,
    names_argument,
    service_options,
    workspace_of,
)
from reconciler.commands.process import write_message
from reconciler.errors import BadUsage
from reconciler.exit_codes import ExitCode
from reconciler.model.text import several


@command(
    "doctor",
    examples=(
        ("doctor", "Check the workspace of the current folder and its service"),
        ("doctor -e prod --format json", "Check one environment, for programs"),
        ("doctor lake", "Let the service test the destination of one export, too"),
    ),
    page="docs/operations.md",
)
@names_argument
@service_options
@auto_approve_option
@format_option("health")
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
    from reconciler.commands.doctor.checks import diagnose
    from reconciler.commands.screen import confirmed, progress, show_report

    if auto_approve and not names:
        raise BadUsage("--auto-approve requires NAME", hint="name the exports to test")
    listener = progress()

    async def approve(count: int) -> bool:
        listener.clear()
        write_message(
            f"The service connects to {several(count, 'destination')} with the configured "
            "credentials, and may create and drop test tables. Nothing is saved.\n"
        )
        return auto_approve or await confirmed("Run these tests?")

    workspace = workspace_of(options)
    work = partial(diagnose, names=names, approve=approve)
    report = show_report("health", output_format, work, workspace, listener=listener)
    return ExitCode.ERROR if report.failed else ExitCode.FINE
