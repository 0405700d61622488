"""`reconciler preflight`."""

from __future__ import annotations

import sys
from typing import Any

import click

from reconciler.cli import completing
from reconciler.cli.command import command, option
from reconciler.cli.options import client_options, format_option, workspace_of, workspace_options
from reconciler.cli.streams import write_message
from reconciler.errors import BadUsage, ExitCode
from reconciler.model.text import several

EXAMPLES = (
    ("preflight lake", "Test the destination of one export"),
    ("preflight --yes --format json", "Test all without asking, for programs"),
)
_YES = ("y", "yes")


@command("preflight", examples=EXAMPLES, page="docs/operations.md")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources)
@workspace_options
@option("--yes", is_flag=True, help="Do not ask before the service connects to destinations.")
@format_option("preflight")
@client_options
def preflight_command(
    names: tuple[str, ...], output_format: str, *, yes: bool, **options: Any
) -> ExitCode:
    """Let the service test destinations with the configured credentials. Saves nothing.

    The service really connects to each destination, and may create and drop a test table. NAME is
    an address, an id, a key, a name or a glob. Only servers of dialect 2026 offer this to API keys;
    for other exports the files, the policy and the secrets are checked. Exits with 1 if a test
    failed.
    """
    from reconciler.cli.running import progress, read_line, show_report
    from reconciler.operations.preflighting import PreflightRequest, preflight

    listener = progress()

    async def approve(count: int) -> bool:
        listener.clear()
        write_message(
            f"The service connects to {several(count, 'destination')} with the configured "
            "credentials, and may create and drop test tables. Nothing is saved.\n"
        )
        if yes:
            return True
        if not sys.stdin.isatty():
            raise BadUsage("no terminal to ask for approval", hint="use --yes to approve")
        write_message("Run these tests? [y/N]: ")
        return (await read_line(sys.stdin)).strip().lower() in _YES

    request = PreflightRequest(workspace_of(options), names)
    report = show_report(
        "preflight",
        output_format,
        lambda world: preflight(request, world, approve),
        listener=listener,
    )
    return ExitCode.ERROR if report.failed else ExitCode.FINE
