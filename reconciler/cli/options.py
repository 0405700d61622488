"""Options of several commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from reconciler.commands.runtime import PlanRequest, WorkspaceOptions
from reconciler.errors import BadUsage
from reconciler.model.plan import Selection
from reconciler.planning.planner import PlanOptions
from reconciler.render.formats import DEFAULT, Result, formats_of

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Decorator = Callable[[_Function], _Function]

GLOBS: dict[str, Any] = {"multiple": True, "metavar": "GLOB"}
"""How an option is declared that takes globs and may be repeated."""


def _all(*decorators: _Decorator[Any]) -> _Decorator[Any]:
    def decorate(function: _Function) -> _Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


folder_option = click.option(
    "-C",
    "--workspace",
    "folder",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="Folder of the workspace. Default: the current folder.",
)

workspace_options = _all(
    folder_option,
    click.option(
        "-e",
        "--environment",
        metavar="NAME",
        help="Environment. Default: the only one, or `default:` of the workspace.",
    ),
    click.option("--strict", is_flag=True, help="Treat warnings about the files as errors."),
)


plan_options = _all(
    click.option("--target", **GLOBS, help="Only these addresses, and what they depend on."),
    click.option("--exclude", **GLOBS, help="All except these addresses."),
    click.option("--kind", **GLOBS, help="Only resources of these kinds."),
    click.option("--project", **GLOBS, help="Only these projects and what is in them."),
    click.option(
        "--base",
        metavar="REF",
        help="Git reference to compare the files with. Default: that of the CI job.",
    ),
    click.option("--no-base", is_flag=True, help="Do not use git."),
    click.option(
        "--rotate-secrets",
        multiple=True,
        is_flag=False,
        flag_value="*",
        metavar="[GLOB]",
        help="Send secrets again: all, or those of these addresses.",
    ),
    click.option(
        "--allow-replace",
        is_flag=True,
        help="Allow changes that delete and create again.",
    ),
)


def format_option(result: Result) -> Callable[[_Function], _Function]:
    """Add --format of a result."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(formats_of(result)),
        default=DEFAULT,
        show_default=True,
        help="Output format.",
    )


def file_option(name: str, description: str) -> Callable[[_Function], _Function]:
    """Add an option that names a file."""
    path = click.Path(dir_okay=False, path_type=Path)
    return click.option(name, type=path, metavar="FILE", help=description)


unmanaged_option = click.option(
    "--show-unmanaged", is_flag=True, help="List live objects that no resource claims."
)


def workspace_of(options: dict[str, Any]) -> WorkspaceOptions:
    """Return the workspace that the options name."""
    return WorkspaceOptions(
        folder=options["folder"], environment=options["environment"], strict=options["strict"]
    )


def plan_request(options: dict[str, Any]) -> PlanRequest:
    """Return the request for a plan. Raises BadUsage for options that exclude each other."""
    if options["base"] is not None and options["no_base"]:
        raise BadUsage("--base and --no-base exclude each other")
    return PlanRequest(
        workspace=workspace_of(options),
        options=PlanOptions(
            rotate=options["rotate_secrets"],
            allow_replace=options["allow_replace"],
            selection=Selection(
                targets=options["target"],
                excludes=options["exclude"],
                kinds=options["kind"],
                parents=options["project"],
            ),
        ),
        base=options["base"],
        no_base=options["no_base"],
    )
