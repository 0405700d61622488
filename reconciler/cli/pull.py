"""`reconciler pull`."""

from __future__ import annotations

import sys
from typing import Any

import click
from msgspec.structs import replace

from reconciler.cli import completing
from reconciler.cli.command import command, option
from reconciler.cli.options import base_option, client_options, workspace_of, workspace_options
from reconciler.cli.output import print_warnings, style_of
from reconciler.cli.signals import run
from reconciler.cli.streams import write_message, write_note, write_result
from reconciler.commands.plan_request import PlanRequest
from reconciler.errors import ExitCode
from reconciler.model.public import as_json
from reconciler.model.text import printable


@command(
    "pull",
    examples=(
        ("pull --diff", "Show what would change in the files"),
        ("pull orders", "Keep the live values of one resource"),
        ("pull -e production", "Write all drift of an environment into the files"),
    ),
    page="docs/operations.md",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources)
@workspace_options
@base_option
@option("--diff", "--dry-run", "diff", is_flag=True, help="Write nothing; print a patch.")
@option(
    "--format",
    "output_format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="Output format.",
)
@client_options
def pull_command(
    names: tuple[str, ...],
    *,
    output_format: str,
    diff: bool,
    base: str | None,
    **options: Any,
) -> ExitCode:
    """Write what changed in live state since the git base into the files. Comments stay.

    NAME is an address, an id, a key, a name or a glob. A value goes into the layer that defines it
    if no other resource or environment has it from there, else into the resource or into the
    overrides of the environment. For a value that comes from a reference, a terminal is asked.
    Exits with 3 if something is left out. Secrets cannot be read, so they are never written.
    """
    from reconciler.cli.running import progress, read_line, runtime, shown
    from reconciler.commands.pulling import PullRequest, pull
    from reconciler.model.redaction import masked_in
    from reconciler.render.drift import pull_summary, pulled_as_text

    world = runtime()
    listener = progress()

    async def ask(question: str) -> bool:
        listener.clear()
        write_message(f"{printable(question)} [y/N] ")
        return (await read_line(sys.stdin)).strip().lower() in ("y", "yes")

    request = PullRequest(
        PlanRequest(workspace_of(options), base=base),
        names,
        write=not diff,
        ask=ask if world.interactive else None,
    )
    result = run(shown(pull(request, replace(world, listen=listener)), listener))
    print_warnings(result.diagnostics)
    pulled = masked_in(result.report, world.mask)
    is_json = output_format == "json"
    text = pulled_as_text(pulled, style_of(sys.stdout), diff=diff)
    write_result(as_json(pulled) if is_json else text)
    write_note(pull_summary(pulled))
    write_note(f"{result.calls} API calls\n")
    complete = not (pulled.left_out or pulled.drift.deleted or pulled.drift.renamed)
    return ExitCode.FINE if complete else ExitCode.PARTLY_APPLIED
