"""`reconciler validate` and `reconciler policy`: checks without the service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from reconciler.cli.command import command
from reconciler.cli.options import (
    file_option,
    files_options,
    folder_option,
    format_option,
    workspace_of,
    workspace_options,
)
from reconciler.cli.output import (
    exit_code_of_diagnostics,
    exit_code_of_policy,
    is_interactive,
    render_options,
)
from reconciler.cli.streams import write_note, write_result
from reconciler.errors import BadUsage
from reconciler.model.text import listed, several
from reconciler.render.formats import writer_of

_ACTIONS = ("test",)
_MOST_UNUSED = 10
_PASSED = "No plan breaks a rule"


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
    from reconciler.commands.files import path_in_repository
    from reconciler.commands.loading import validate

    workspace = workspace_of(options)
    diagnostics = validate(workspace, os.environ, interactive=is_interactive())
    root = path_in_repository(workspace.folder, os.environ)
    write = writer_of(output_format, "diagnostics")
    write_result(write(diagnostics, render_options(root=root)))
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
@click.argument("action", type=click.Choice(_ACTIONS), metavar="test")
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
    from reconciler.commands.files import path_in_repository
    from reconciler.commands.policy_testing import PolicyTestRequest, judge_plans

    del action
    if rules is not None and options["folder"] is not None:
        raise BadUsage("--rules and -C exclude each other")
    # A file of rules needs no workspace.
    folder = Path() if rules is not None else options["folder"]
    workspace = workspace_of({**options, "folder": folder})
    report = judge_plans(PolicyTestRequest(plans, workspace, rules), runtime())
    root = path_in_repository(workspace.folder, os.environ)
    write = writer_of(output_format, "diagnostics")
    rendered = replace(render_options(root=root), command="policy test", passed=_PASSED)
    write_result(write(report.diagnostics, rendered))
    unused = f"; not broken: {listed(report.unused, _MOST_UNUSED)}" if report.unused else ""
    write_note(f"{several(report.plans, 'plan')}, {several(report.rules, 'rule')}{unused}\n")
    return exit_code_of_policy(report)
