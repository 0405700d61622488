"""The use case `show`: a saved plan, or a resource with its origins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reconciler.commands.files import read_file
from reconciler.commands.resolving import resolved
from reconciler.commands.runtime import Runtime, WorkspaceOptions
from reconciler.errors import BadUsage, Diagnostic
from reconciler.model.codec.plan import decode
from reconciler.model.plan import Plan
from reconciler.model.resolved import ResolvedResource


@dataclass(frozen=True, slots=True)
class ShowRequest:
    """Exactly one of the file of a saved plan and the address of a resource."""

    plan_file: Path | None
    address: str | None
    workspace: WorkspaceOptions
    show_unmanaged: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """The saved plan or the resolved resource, and warnings about the files."""

    result: Plan | ResolvedResource
    diagnostics: tuple[Diagnostic, ...] = ()


def show(request: ShowRequest, runtime: Runtime) -> Shown:
    """Return the saved plan or the resolved resource.

    Raises BadUsage for options that exclude each other, and what reading the files raises.
    """
    if request.plan_file is not None and request.address is None:
        if request.workspace != WorkspaceOptions(Path()):
            raise BadUsage(
                "-C, -e and --strict require --resolved",
                hint="a saved plan contains everything that is shown",
            )
        return Shown(decode(read_file(request.plan_file), name=str(request.plan_file)))
    if request.address is not None and request.plan_file is None:
        if request.show_unmanaged:
            raise BadUsage("--show-unmanaged requires a saved plan")
        resolution = resolved(request.address, request.workspace, runtime)
        return Shown(resolution.resource, resolution.diagnostics)
    raise BadUsage(
        "show takes either the file of a saved plan or --resolved ADDRESS",
        hint="save a plan with `plan --out FILE`; an address is kind.key",
    )
