"""Options of several commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from reconciler.commands.runtime import PlanRequest, WorkspaceOptions
from reconciler.errors import BadUsage
from reconciler.model.client_options import ClientOptions, duration, how_to_write, rate
from reconciler.model.plan import Selection
from reconciler.planning.planner import PlanOptions
from reconciler.render.formats import DEFAULT, Result, formats_of

_Value = TypeVar("_Value")
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Decorator = Callable[[_Function], _Function]

STDOUT = Path("-")
"""The file that stands for the standard output."""
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
    click.option(
        "--trust-workspace",
        is_flag=True,
        help="Let the files decide where the API key is sent and what is allowed. Default: on a "
        "terminal, and not in a CI job.",
    ),
)


plan_options = _all(
    click.option("--target", **GLOBS, help="Only these addresses, and what they depend on."),
    click.option("--exclude", **GLOBS, help="All except these addresses."),
    click.option("--kind", **GLOBS, help="Only resources of these kinds."),
    click.option("--project", **GLOBS, help="Only these projects and what is in them."),
    click.option(
        "--base",
        metavar="REF",
        help="Git reference to compare with. Default: the applied commit, that of the CI job, or "
        "the upstream branch.",
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


def _duration(_: click.Context, param: click.Parameter, written: str | None) -> float | None:
    return _converted(param, written, partial(duration, param.name or ""))


def _rate(_: click.Context, param: click.Parameter, written: str | None) -> Any:
    return _converted(param, written, rate)


def _converted(
    param: click.Parameter, written: str | None, convert: Callable[[str], _Value | None]
) -> _Value | None:
    value = None if written is None else convert(written)
    if written is not None and value is None:
        name = param.name or ""
        off = ", or off for no limit" if name == "rate" else ""
        hint = how_to_write(name) + off
        raise BadUsage(f"invalid {param.opts[0]} '{written}'", hint=hint)
    return value


client_options = _all(
    click.option(
        "--parallelism",
        type=click.IntRange(min=1, max=64),
        metavar="N",
        help="Requests at once. Default: 8.",
    ),
    click.option(
        "--rate",
        callback=_rate,
        metavar="CALLS/SECONDS",
        help="Most calls in a time, or off. Default: a little below the service's limits.",
    ),
    click.option(
        "--timeout", callback=_duration, metavar="S", help="Time for one request. Default: 30s."
    ),
    click.option(
        "--max-wait",
        callback=_duration,
        metavar="S",
        help="Longest wait that the service may ask for. Default: 15m.",
    ),
    click.option(
        "--retry-for",
        callback=_duration,
        metavar="S",
        help="How long a failed request is repeated. Default: 5m.",
    ),
    click.option(
        "--insecure-http",
        is_flag=True,
        help="Send the API key unencrypted to an http:// address that is not on this machine.",
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


def file_option(name: str, description: str, **attributes: Any) -> Callable[[_Function], _Function]:
    """Add an option that names a file."""
    path = click.Path(dir_okay=False, path_type=Path)
    return click.option(name, type=path, metavar="FILE", help=description, **attributes)


def log_option(name: str, description: str) -> Callable[[_Function], _Function]:
    """Add an option that names a file which is appended to, and cannot be stdout."""
    return file_option(name, description, callback=_not_stdout)


def _not_stdout(_: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    if path == STDOUT:
        raise BadUsage(
            f"{param.opts[0]} - is not supported", hint="use --format json for events on stdout"
        )
    return path


unmanaged_option = click.option(
    "--show-unmanaged", is_flag=True, help="List live objects that no resource claims."
)


verbose_option = click.option(
    "-v", "--verbose", is_flag=True, help="List every request on stderr, with its duration."
)


def workspace_of(options: dict[str, Any]) -> WorkspaceOptions:
    """Return the workspace that the options name."""
    given = {key.name: options.get(key.name) for key in fields(ClientOptions)}
    return WorkspaceOptions(
        folder=options["folder"],
        environment=options["environment"],
        strict=options["strict"],
        client=ClientOptions(**given),
        insecure_http=options.get("insecure_http", False),
        trust_workspace=options["trust_workspace"],
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
