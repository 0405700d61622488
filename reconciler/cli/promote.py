"""`reconciler promote`."""

from __future__ import annotations

import sys
from typing import Any

import click
from msgspec.structs import replace

from reconciler.cli import completing
from reconciler.cli.command import command, option
from reconciler.cli.exit_codes import exit_code_of_plan
from reconciler.cli.options import client_options, files_options, folder_option, workspace_of
from reconciler.cli.output import print_warnings, render_options, style_of
from reconciler.cli.streams import write_note, write_result
from reconciler.commands.plan_request import PlanRequest
from reconciler.errors import ExitCode


@command(
    "promote",
    examples=(
        ("promote --from staging --to production", "Give production what staging has"),
        ("promote --from staging --to production lake --diff", "Show the edits for one resource"),
    ),
    page="docs/operations.md",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completing.resources)
@folder_option
@option(
    "--from",
    "first",
    metavar="A",
    required=True,
    shell_complete=completing.environments,
    help="Environment that has the values.",
)
@option(
    "--to",
    "second",
    metavar="B",
    required=True,
    shell_complete=completing.environments,
    help="Environment that gets them.",
)
@option("--prune", is_flag=True, help="Take resources out of B that A does not have.")
@option("--diff", "--dry-run", "diff", is_flag=True, help="Write nothing; show what would change.")
@option("--no-plan", is_flag=True, help="Do not show the plan of B, which needs an API key.")
@files_options
@client_options
def promote_command(
    names: tuple[str, ...],
    *,
    first: str,
    second: str,
    prune: bool,
    diff: bool,
    no_plan: bool,
    **options: Any,
) -> ExitCode:
    """Edit the files so that environment B has the values of A, then show the plan of B.

    NAME is an address, an id, a key, a name or a glob of resources. Copies overrides that only A
    has, removes those that only B has, and adds B to `environments:` of resources that only A has.
    Intended differences stay: references, fields that both override, names, ids and secrets.
    """
    from reconciler.cli.running import cost_of, run_shown, runtime
    from reconciler.commands.planning import plan
    from reconciler.commands.promoting import PromoteRequest, promote
    from reconciler.render.difference import differences_as_text
    from reconciler.render.plan.text import plan_as_text
    from reconciler.render.promoted import promotion_summary

    workspace = workspace_of(options)
    world = runtime()
    promoted = promote(
        PromoteRequest(workspace, first, second, names, prune=prune, write=not diff), world
    )
    write_result(differences_as_text(promoted.changes, style_of(sys.stdout)))
    write_note(promotion_summary(promoted))
    if no_plan or not promoted.texts:
        return ExitCode.FINE
    request = PlanRequest(replace(workspace, environment=second))
    drafts = promoted.texts if diff else None
    result = run_shown(lambda world: plan(request, world, drafts=drafts), world)
    print_warnings(result.diagnostics)
    how = replace(render_options(), cost=cost_of(result))
    write_result(f"\n{plan_as_text(result.plan, how)}")
    return exit_code_of_plan(result.plan, detailed=False)
