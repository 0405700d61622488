"""`reconciler rehearse`."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.command import command, option
from reconciler.cli.options import (
    client_options,
    format_option,
    plan_options,
    plan_request,
    workspace_options,
)
from reconciler.cli.output import print_warnings, render_options
from reconciler.cli.streams import write_note, write_result
from reconciler.commands.rehearsing import MOST_KILLS
from reconciler.errors import ExitCode
from reconciler.render.formats import writer_of

EXAMPLES = (
    ("rehearse", "Apply the plan to a copy of the service"),
    ("rehearse --kills 20", "Also kill runs after 20 different writes, and run again"),
    ("rehearse -e production --format json", "The result for programs"),
)


@command("rehearse", examples=EXAMPLES, page="docs/operations.md")
@workspace_options
@plan_options
@option(
    "--kills",
    type=click.IntRange(1, MOST_KILLS),
    metavar="N",
    help=f"Kill runs after N different writes, at most {MOST_KILLS}, and compare end states.",
)
@format_option("rehearsal")
@client_options
def execute(output_format: str, *, kills: int | None, **options: Any) -> ExitCode:
    """Apply the plan to a copy of the service on this machine. Changes nothing.

    The copy is the embedded service, started from live state, with placeholders for secrets. Shows
    what the service would refuse, the end state, the calls and their time. A key that only reads
    is enough. Exits with 3 if a change would not be made, and with 5 if the policy refuses the
    plan.
    """
    from reconciler.cli.running import run_shown, runtime
    from reconciler.commands.rehearsing import RehearseRequest, rehearse

    request = RehearseRequest(plan_request(options), kills or 0)
    result = run_shown(lambda world: rehearse(request, world), runtime())
    print_warnings(result.planned.diagnostics)
    write_result(writer_of(output_format, "rehearsal")(result.rehearsal, render_options()))
    write_note(f"{result.planned.calls} API calls, all of them reads\n")
    return result.rehearsal.exit_code
