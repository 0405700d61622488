"""`reconciler show`: saved plans, resources with their origins, audit logs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.commands import completion
from reconciler.commands.command import command, option
from reconciler.commands.options import (
    format_option,
    summary_option,
    unmanaged_option,
    workspace_of,
    workspace_options,
)
from reconciler.commands.process import read_file, write_result
from reconciler.commands.screen import (
    print_warnings,
    render_options,
    write_runner_files,
)
from reconciler.commands.workspace import Workspace
from reconciler.diagnostics import Diagnostic
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.exit_codes import ExitCode
from reconciler.model.text import listed
from reconciler.model.values import Address
from reconciler.render import writer_of

if TYPE_CHECKING:
    from reconciler.files.loading import Loaded
    from reconciler.files.resource_files import Declaration
    from reconciler.model.decoding import Audit, LoggedRun
    from reconciler.model.kind import Kind
    from reconciler.model.plan import Plan
    from reconciler.model.resource import PublicParent, PublicResource, Resource

_LISTED = 10
_SUFFIXES = (".json", ".jsonl")


@command(
    "show",
    examples=(
        ("show plan.json --format markdown", "Print a saved plan as a comment"),
        ("show audit.jsonl", "Print what the last run of an audit log did"),
        ("show batch_export.lake -e production", "Print a resource with the origin of every field"),
    ),
    page="docs/output.md",
)
@click.argument("name", metavar="FILE|NAME", shell_complete=completion.resources)
@option("--run", metavar="ID", help="Of an audit log, the run whose id starts with ID.")
@workspace_options
@format_option("plan")
@unmanaged_option
@summary_option
def show_command(
    name: str,
    *,
    output_format: str,
    summary: bool,
    **options: Any,
) -> int:
    """Print a saved plan, an audit log, or a resource with its origins.

    FILE comes from `plan --out` or `apply --log-file`. Of an audit log, the
    last run is shown in full. The exit code is that of the run, 3 if it has none: it was killed,
    or is still running. Paths in plans are relative to -C, as with `plan -C`.

    NAME is the address, id, key or name of a resource. Defaults, overrides and references are
    filled in for the environment, and each field shows where it comes from. No network, secret or
    API key is needed.
    """
    from reconciler.model.decoding import Audit
    from reconciler.model.plan import Plan

    # A file needs no workspace, so none is searched.
    folder = options["folder"] or (Path() if is_saved(name) else None)
    workspace = workspace_of({**options, "folder": folder})
    unmanaged = options["show_unmanaged"]
    shown, warnings = show(workspace, name, run=options["run"], show_unmanaged=unmanaged)
    print_warnings(warnings)
    how = render_options(options["folder"] or Path(), show_unmanaged=unmanaged, summary=summary)
    form = {Plan: "plan", Audit: "audit"}.get(type(shown), "resolved")
    write_result(writer_of(output_format, form)(shown, how))
    if output_format == "github" and isinstance(shown, Plan):
        write_runner_files(shown, how, saved=Path(name))
    return shown.shown.code if isinstance(shown, Audit) else ExitCode.FINE


def is_saved(name: str) -> bool:
    """Return whether a text names a file, which may be a pipe, and not a resource."""
    # Path.exists() raises an error for a name that is too long for a file.
    is_file = os.path.exists(name) and not os.path.isdir(name)  # noqa: PTH110, PTH112
    return is_file or name.endswith(_SUFFIXES)


def show(
    workspace: Workspace, name: str, *, run: str | None = None, show_unmanaged: bool = False
) -> tuple[Plan | Audit | PublicResource, tuple[Diagnostic, ...]]:
    """Return a saved plan, an audit log or a resolved resource, and warnings about the files.

    `name` is a file or a resource, `run` the beginning of the id of a run.

    Raises BadUsage for options that what is shown does not take, and what reading raises.
    """
    from reconciler.model.decoding import decode, read_log

    if not is_saved(name):
        if show_unmanaged or run is not None:
            option = "--show-unmanaged" if show_unmanaged else "--run"
            raise BadUsage(f"{option} requires a file, and '{name}' does not exist")
        return resolved(workspace, name)
    if workspace != Workspace(workspace.folder, runtime=workspace.runtime):
        raise BadUsage(
            f"-e and --strict require a resource, and '{name}' is a file",
            hint="a saved plan contains everything that is shown",
        )
    data = read_file(Path(name))
    runs = read_log(data, name=name)
    if runs:
        return audit_of(runs, run), ()
    if run is not None:
        raise ReconcilerError(
            f"{name} is not an audit log", hint="it is written by `reconciler apply --log-file`"
        )
    return decode(data, name=name), ()


def resolved(workspace: Workspace, name: str) -> tuple[PublicResource, tuple[Diagnostic, ...]]:
    """Return the only resource that a text names, and warnings.

    Raises:
        InvalidConfiguration: with every diagnostic of the files.
        BadUsage: the files have no such resource or environment.
        ReconcilerError: the resource is not in this environment.

    """
    from reconciler.commands.session import open_session
    from reconciler.files.layers import OriginContext, fields_with_origin
    from reconciler.kinds import kinds_by_name
    from reconciler.model.resource import PublicResource
    from reconciler.planning.select import Named, Names

    loaded = open_session(workspace).loaded
    resources = loaded.desired.resources
    names = Names(
        Named.of_resource(resources[address]) if address in resources else Named(address)
        for address in loaded.declared
    )
    address = names.one(name).address
    declaration = loaded.declared[address]
    resource = resources.get(address)
    if resource is None:
        raise _not_in_environment(declaration, loaded)
    kind = kinds_by_name()[address.kind]
    sources = OriginContext(
        loaded.places[address], loaded.variables, environ=workspace.runtime.environ
    )
    result = PublicResource(
        address=address,
        collection=kind.collection,
        environment=loaded.desired.environment,
        environments=_environments(declaration, loaded),
        declared=declaration.mark,
        fields=fields_with_origin(resource, kind, sources),
        parent=_parent(resource, kind, loaded),
        in_organization=kind.parent is not None and resource.parent is None,
    )
    return workspace.masked(result), loaded.diagnostics


def _environments(declaration: Declaration, loaded: Loaded) -> tuple[str, ...]:
    names = declaration.body.get("environments")
    if isinstance(names, list):
        return tuple(map(str, names))
    return loaded.environments or (loaded.desired.environment,)


def _not_in_environment(declaration: Declaration, loaded: Loaded) -> ReconcilerError:
    names = _environments(declaration, loaded)
    at = declaration.document.key_mark((*declaration.path, "environments"))
    return ReconcilerError(
        f"{declaration.address} is not in environment {loaded.desired.environment}: "
        f"{at.file}:{at.line} limits it to {', '.join(names) or 'none'}",
        hint=f"use -e {names[0]}" if names else "add an environment to the list",
    )


def _parent(resource: Resource, kind: Kind, loaded: Loaded) -> PublicParent | None:
    from reconciler.model.resource import PublicParent

    ref = resource.parent
    if ref is None or kind.parent is None:
        return None
    if ref.key is None:
        return PublicParent(None, ref.id, ref.name, None)
    parent = loaded.desired.resources[Address(kind.parent, ref.key)]
    return PublicParent(parent.address, parent.pinned_id, parent.name, parent.mark)


def audit_of(runs: tuple[LoggedRun, ...], run: str | None = None) -> Audit:
    """Return the runs of a log with the last one, or the one whose id begins with `run`, in full.

    Raises BadUsage if no run or several runs have such an id.
    """
    from reconciler.model.decoding import Audit

    if run is None:
        return Audit(runs, runs[-1])
    matching = tuple(logged for logged in runs if logged.started_by.id.startswith(run))
    if len(matching) != 1:
        ids = [logged.started_by.id for logged in matching or runs]
        problem = "several runs begin with" if matching else "no run begins with"
        raise BadUsage(f"{problem} '{run}'", hint=f"runs: {listed(ids, _LISTED)}")
    return Audit(matching, matching[0])
