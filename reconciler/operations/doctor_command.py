"""`reconciler doctor`."""

from __future__ import annotations

from functools import partial
from typing import Any

from reconciler.cli.command import command
from reconciler.cli.options import client_options, format_option, workspace_of, workspace_options
from reconciler.errors import ExitCode

EXAMPLES = (
    ("doctor", "Check the workspace of the current folder and its service"),
    ("doctor -e prod --format json", "Check one environment, for programs"),
)


@command("doctor", examples=EXAMPLES, page="docs/operations.md")
@workspace_options
@format_option("health")
@client_options
def doctor_command(output_format: str, **options: Any) -> ExitCode:
    """Check the configuration, the way to the service, the API key, and git. Changes nothing.

    A line that failed has its fix. Without a workspace, the service is the one that the variables
    RECONCILER_BASE_URL, RECONCILER_ORGANIZATION and RECONCILER_API_KEY name. Exits with 1 if a
    check failed.
    """
    from reconciler.cli.running import show_report
    from reconciler.operations.diagnosing import diagnose

    report = show_report("health", output_format, partial(diagnose, workspace_of(options)))
    return ExitCode.ERROR if report.failed else ExitCode.FINE
