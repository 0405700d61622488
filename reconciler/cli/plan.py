"""`reconciler plan`."""

from __future__ import annotations

import os
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any

from reconciler.cli.command import command, option
from reconciler.cli.exit_codes import exit_code_of_plan
from reconciler.cli.options import (
    STDOUT,
    client_options,
    file_option,
    format_option,
    plan_options,
    plan_request,
    summary_option,
    unmanaged_option,
    workspace_options,
)
from reconciler.cli.output import cost_of, print_warnings, render_options, run_shown, runtime
from reconciler.cli.streams import ByteOutput, write_message, write_note, write_result
from reconciler.commands.files import path_in_repository, write_private
from reconciler.commands.planning import PlanResult, plan
from reconciler.commands.runtime import Runtime
from reconciler.commands.undoing import plan_undo
from reconciler.model.codec.plan import encode
from reconciler.model.wording import printable
from reconciler.render.formats import writer_of

EXAMPLES = (
    ("plan", "Show what would change"),
    (
        "plan --target web-lake --out plan.json",
        "Plan one resource, and save the plan for `apply plan.json`",
    ),
    ("plan -e production --format markdown", "Plan an environment as a comment for a pull request"),
)


@command("plan", examples=EXAMPLES, page="docs/planning.md")
@workspace_options
@plan_options
@unmanaged_option
@summary_option
@format_option("plan")
@file_option("--out", "Save the plan for `apply FILE`; - for stdout.")
@file_option("--undo", "Plan the reversal of a saved plan or an audit log.")
@client_options
@option("--detailed-exitcode", is_flag=True, help="Exit with 2 if there are changes.")
def execute(
    output_format: str,
    out: Path | None,
    *,
    undo: Path | None,
    detailed_exitcode: bool,
    **options: Any,
) -> int:
    """Show what would change to make live state match the configuration. Changes nothing.

    Exits with 5 if the policy refuses the plan.
    """
    request = plan_request(options)

    def planned(world: Runtime) -> Awaitable[PlanResult]:
        return plan(request, world) if undo is None else plan_undo(request, undo, world)

    result = run_shown(planned, runtime())
    print_warnings(result.diagnostics)
    how = render_options(
        show_unmanaged=options["show_unmanaged"],
        summary=options["summary"],
        root=path_in_repository(request.workspace.folder, os.environ),
    )
    shown = writer_of(output_format, "plan")(result.plan, replace(how, cost=cost_of(result)))
    if out == STDOUT:
        write_message(shown)
        ByteOutput().write(encode(result.plan))
    else:
        write_result(shown)
    if out is not None and out != STDOUT:
        write_private(out, encode(result.plan))
        file = printable(str(out))
        write_note(f"saved to {file}; apply it with: reconciler apply {file}\n")
    write_note(f"{result.calls} API calls\n")
    return exit_code_of_plan(result.plan, detailed=detailed_exitcode)
