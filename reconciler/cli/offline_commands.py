"""`reconciler validate`, `policy`, `show` and `audit`: what needs no service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from reconciler.cli import completing
from reconciler.cli.command import command, option
from reconciler.cli.options import (
    file_option,
    files_options,
    folder_option,
    format_option,
    since_option,
    summary_option,
    unmanaged_option,
    workspace_of,
    workspace_options,
)
from reconciler.cli.output import (
    exit_code_of_audit,
    exit_code_of_diagnostics,
    is_interactive,
    print_warnings,
    render_options,
)
from reconciler.cli.streams import write_note, write_result
from reconciler.errors import BadUsage, ExitCode
from reconciler.model.text import listed, several
from reconciler.render.formats import writer_of

_MOST_UNUSED = 10


@command(
    "validate",
    examples=(
        ("validate", "Check every environment"),
        ("validate -e production --strict", "Check one environment; warnings are errors"),
        ("validate --format github", "Annotate the lines of a pull request"),
    ),
    page="docs/configuration.md",
)
@workspace_options
@format_option("diagnostics")
def validate_command(output_format: str, **options: Any) -> int:
    """Check the files: structure, references, and all that needs no network.

    Without -e, every environment is checked. No secret and no API key is needed.
    """
    from reconciler.commands.loading import validate

    workspace = workspace_of(options)
    diagnostics = validate(workspace, os.environ, interactive=is_interactive())
    write = writer_of(output_format, "diagnostics")
    write_result(write(diagnostics, render_options(workspace.folder)))
    return exit_code_of_diagnostics(diagnostics)


@command(
    "policy",
    examples=(
        ("policy test plan.json", "Test a saved plan with the rules of the workspace"),
        ("policy test plans/*.json --rules rules.yaml", "Test several with the rules of a file"),
        ("policy test plan.json --format sarif", "Write the findings for code scanning"),
    ),
    page="docs/policy.md",
)
@click.argument("action", type=click.Choice(("test",)), metavar="test")
@click.argument(
    "plans",
    nargs=-1,
    required=True,
    metavar="PLAN...",
    type=click.Path(dir_okay=False, path_type=Path),
)
@file_option("--rules", "File of rules. Default: `policy.rules` of the workspace.")
@folder_option
@files_options
@format_option("diagnostics")
def policy_command(
    action: str, plans: tuple[Path, ...], *, rules: Path | None, output_format: str, **options: Any
) -> int:
    """Test the rules of the policy on saved plans. No network, secret or API key is needed.

    PLAN is a file of `plan --out FILE`. The rules of its environment apply to it. Exits with 5 if
    a plan breaks a rule that denies changes, or differs from what `expect:` of the file of rules
    says.
    """
    from reconciler.cli.running import runtime
    from reconciler.commands.policy_testing import PolicyTestRequest, judge_plans

    del action
    if rules is not None and options["folder"] is not None:
        raise BadUsage("--rules and -C exclude each other")
    # A file of rules needs no workspace.
    folder = Path() if rules is not None else options["folder"]
    workspace = workspace_of({**options, "folder": folder})
    report = judge_plans(PolicyTestRequest(plans, workspace, rules), runtime())
    write = writer_of(output_format, "diagnostics")
    how = render_options(workspace.folder, passed="No plan breaks a rule")
    write_result(write(report.diagnostics, how))
    unused = f"; not broken: {listed(report.unused, _MOST_UNUSED)}" if report.unused else ""
    write_note(f"{several(report.plans, 'plan')}, {several(report.rules, 'rule')}{unused}\n")
    return exit_code_of_diagnostics(report.diagnostics, ExitCode.REFUSED)


@command(
    "show",
    examples=(
        ("show plan.json", "Print a saved plan"),
        ("show plan.json --format markdown", "Print it as a comment for a pull request"),
        (
            "show --resolved batch_export.lake -e production",
            "Print a resource with the origin of every field",
        ),
    ),
    page="docs/output.md",
)
@click.argument("plan_file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@option(
    "--resolved",
    "address",
    metavar="ADDRESS",
    shell_complete=completing.resources,
    help="Print a resource as an environment has it, with the origin of each field. Also takes its "
    "id, key, name or a glob.",
)
@workspace_options
@format_option("plan")
@unmanaged_option
@summary_option
@since_option
def show_command(
    plan_file: Path | None,
    address: str | None,
    *,
    output_format: str,
    show_unmanaged: bool,
    summary: bool,
    since: Path | None,
    **options: Any,
) -> None:
    """Print a plan that was saved with `--out FILE`, or a resource with its origins.

    PLAN_FILE comes from `plan --out FILE` or `backfill --out FILE`.

    With --resolved ADDRESS, defaults, overrides and references are filled in for the environment,
    and each field shows where it comes from. No network, secret or API key is needed. With a plan,
    paths in the output are relative to -C, as with `plan -C`.
    """
    from reconciler.cli.runner_files import result_name, write_runner_files
    from reconciler.cli.running import runtime
    from reconciler.commands.showing import show
    from reconciler.model.resolved import PublicResource

    if address is not None:
        # An unsupported format is an error before those of the files.
        writer_of(output_format, "resolved")
    # A plan file needs no workspace, so none is searched.
    folder = options["folder"] or (Path() if address is None else None)
    workspace = workspace_of({**options, "folder": folder})
    world = runtime()
    result, diagnostics = show(plan_file, address, workspace, world, show_unmanaged=show_unmanaged)
    print_warnings(diagnostics)
    name = "resolved" if isinstance(result, PublicResource) else result_name(result)
    write = writer_of(output_format, name)
    how = render_options(
        options["folder"] or Path(),
        show_unmanaged=show_unmanaged,
        summary=summary,
        since=since,
    )
    write_result(write(result, replace(how, mask=world.mask if world.masks else None)))
    if output_format == "github" and not isinstance(result, PublicResource):
        write_runner_files(result, how, saved=plan_file)


@command(
    "audit",
    examples=(
        ("audit audit.jsonl", "Show the last run"),
        (
            "audit audit.jsonl --run 3f9a --format json",
            "Show the run whose id begins with 3f9a, for programs",
        ),
    ),
    page="docs/reliability.md",
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@option("--run", metavar="ID", help="Only the run whose id starts with ID. Default: the last.")
@format_option("audit")
def audit_command(file: Path, *, run: str | None, output_format: str) -> int:
    """Show who applied what, from the log of `apply --log-file FILE`.

    Shows how each change of a run ended, what is unknown, and requests without an answer.
    Exits with 3 if the run that is shown has unknown outcomes or twins.
    """
    from reconciler.commands.showing import audit

    result = audit(file, run)
    write_result(writer_of(output_format, "audit")(result, render_options()))
    return exit_code_of_audit(result)
