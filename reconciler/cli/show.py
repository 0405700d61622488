"""`reconciler show`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from reconciler.cli.options import format_option, unmanaged_option, workspace_of, workspace_options
from reconciler.cli.output import plan_text, read_file, runtime, tell_warnings
from reconciler.commands.resolving import resolved
from reconciler.errors import BadUsage
from reconciler.model.codec.plan import decode
from reconciler.model.resolved import ResolvedResource
from reconciler.render.resolved import resolved_as_json, resolved_as_text

_RESOLVED_FORMATS: Mapping[str, Callable[[ResolvedResource], str]] = {
    "text": resolved_as_text,
    "json": resolved_as_json,
}


@click.command("show")
@click.argument("plan_file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--resolved",
    "address",
    metavar="ADDRESS",
    help="Print a resource as an environment has it, with the origin of each field.",
)
@workspace_options
@format_option
@unmanaged_option
def command(plan_file: Path | None, address: str | None, **options: Any) -> None:
    """Draw a plan that was saved with `plan --out FILE`, or a resource with its origins.

    With --resolved ADDRESS, defaults, overrides and references are filled in for the environment,
    and each field says where it comes from. No network, secret or API key is needed.
    """
    if plan_file is not None and address is None:
        _check_plan_options(options)
        saved = decode(read_file(plan_file), name=str(plan_file))
        drawn = plan_text(saved, options["plan_format"], show_unmanaged=options["show_unmanaged"])
    elif address is not None and plan_file is None:
        draw = _resolved_format(options)
        found = resolved(address, workspace_of(options), runtime())
        tell_warnings(found.diagnostics)
        drawn = draw(found.resource)
    else:
        raise BadUsage(
            "show takes one of the two: the file of a saved plan, or --resolved ADDRESS",
            hint="make a file with `plan --out FILE`; an address is written kind.key",
        )
    click.echo(drawn, nl=False)


def _check_plan_options(options: dict[str, Any]) -> None:
    """A saved plan knows its environment: naming another one would be ignored without a word."""
    if options["environment"] is not None or options["folder"] != Path() or options["strict"]:
        raise BadUsage(
            "-C, -e and --strict go with --resolved", hint="a saved plan holds all that is drawn"
        )


def _resolved_format(options: dict[str, Any]) -> Callable[[ResolvedResource], str]:
    draw = _RESOLVED_FORMATS.get(options["plan_format"])
    if draw is None:
        raise BadUsage(f"--resolved has the formats {', '.join(_RESOLVED_FORMATS)}")
    if options["show_unmanaged"]:
        raise BadUsage("--show-unmanaged goes with a saved plan")
    return draw
