"""The use cases `show` and `audit`: saved plans, resources with their origins, audit logs."""

from __future__ import annotations

from pathlib import Path

from reconciler.commands.files import read_file, saved_backfills
from reconciler.commands.options import WorkspaceOptions
from reconciler.commands.runtime import Runtime
from reconciler.commands.session import Session
from reconciler.diagnostics import Diagnostic
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.kinds import kinds_by_name
from reconciler.model.address import Address
from reconciler.model.audit_log import Audit, read_log
from reconciler.model.backfill_plan import BackfillPlan
from reconciler.model.decoding import decode
from reconciler.model.kind import Kind
from reconciler.model.naming import Named, Names
from reconciler.model.plan import Plan
from reconciler.model.resolved import PublicParent, PublicResource
from reconciler.model.resource import Resource
from reconciler.model.text import listed
from reconciler.workspace.loading import Loaded
from reconciler.workspace.origins import OriginContext, fields_with_origin
from reconciler.workspace.resource_files import Declaration

_LISTED = 10


def show(
    plan_file: Path | None,
    address: str | None,
    workspace: WorkspaceOptions,
    runtime: Runtime,
    *,
    show_unmanaged: bool,
) -> tuple[Plan | BackfillPlan | PublicResource, tuple[Diagnostic, ...]]:
    """Return the saved plan or the resolved resource, and warnings about the files.

    Raises BadUsage unless exactly one of the two is named, with the options that it takes, and
    what reading the files raises.
    """
    if plan_file is not None and address is None:
        if workspace != WorkspaceOptions(workspace.folder):
            raise BadUsage(
                "-e and --strict require --resolved",
                hint="a saved plan contains everything that is shown",
            )
        try:
            data = read_file(plan_file)
        except ReconcilerError as error:
            raise error.reworded(hint="--resolved ADDRESS shows a resource") from None
        return saved_backfills(data, plan_file) or decode(data, name=str(plan_file)), ()
    if address is not None and plan_file is None:
        if show_unmanaged:
            raise BadUsage("--show-unmanaged requires a saved plan")
        return resolved(address, workspace, runtime)
    raise BadUsage(
        "show takes either the file of a saved plan or --resolved ADDRESS",
        hint="save a plan with `plan --out FILE`; an address is kind.key",
    )


def resolved(
    name: str, options: WorkspaceOptions, runtime: Runtime
) -> tuple[PublicResource, tuple[Diagnostic, ...]]:
    """Return the only resource that a text names, and warnings.

    Raises:
        InvalidConfiguration: with every diagnostic of the files.
        BadUsage: the files have no such resource or environment.
        ReconcilerError: the resource is not in this environment.

    """
    session = Session.open(options, runtime)
    loaded = session.loaded
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
    sources = OriginContext(loaded.places[address], loaded.variables, environ=runtime.environ)
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
    return result, loaded.diagnostics


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
    ref = resource.parent
    if ref is None or kind.parent is None:
        return None
    if ref.key is None:
        return PublicParent(None, ref.id, ref.name, None)
    parent = loaded.desired.resources[Address(kind.parent, ref.key)]
    return PublicParent(parent.address, parent.pinned_id, parent.name, parent.mark)


def audit(file: Path, run: str | None = None) -> Audit:
    """Return the runs of an audit log, with the last one or one whose id begins with `run`.

    Raises:
        BadUsage: no run or several runs have such an id.
        InvalidPlanFile: a line of the file can't be read.
        ReconcilerError: the file can't be read, or is not an audit log.

    """
    runs = read_log(read_file(file), name=str(file))
    if not runs:
        raise ReconcilerError(
            f"{file} is not an audit log", hint="it is written by `reconciler apply --log-file`"
        )
    if run is None:
        return Audit(runs, runs[-1])
    matching = tuple(logged for logged in runs if logged.info.id.startswith(run))
    if len(matching) != 1:
        ids = [logged.info.id for logged in matching or runs]
        problem = "several runs begin with" if matching else "no run begins with"
        raise BadUsage(f"{problem} '{run}'", hint=f"runs: {listed(ids, _LISTED)}")
    return Audit(matching, matching[0])
