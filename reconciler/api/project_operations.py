"""Projects: list, show, activity, demo data, and the reset of a token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.api.workspace import Workspace, masked, options_of, runtime_of

if TYPE_CHECKING:
    from reconciler.operations.projects import ProjectDetails, ProjectReport


async def projects(workspace: Workspace, names: Sequence[str] = ()) -> ProjectReport:
    """Return the live projects, with the number of their exports.

    Raises InvalidConfiguration, AmbiguousIdentity, BadUsage, ServiceError.
    """
    from reconciler.operations import projects as listing

    request = listing.ProjectsRequest(options_of(workspace), tuple(names))
    return await masked(workspace, partial(listing.projects, request))


async def show_project(workspace: Workspace, name: str, *, reveal: bool = False) -> ProjectDetails:
    """Return one project with all of its fields. `reveal` shows its API token.

    Raises the errors of `projects`.
    """
    from reconciler.operations import projects as listing

    request = listing.ProjectRequest(options_of(workspace), name, reveal=reveal)
    return await masked(workspace, partial(listing.project, request))


async def project_activity(workspace: Workspace, name: str) -> ProjectDetails:
    """Return what the service answers to a request for the activity of a project.

    Raises NotOffered where the server refuses it to API keys, and the errors of `projects`.
    """
    from reconciler.operations import projects as listing

    request = listing.ProjectRequest(options_of(workspace), name)
    return await masked(workspace, partial(listing.project_activity, request))


async def project_demo_data(workspace: Workspace, name: str) -> ProjectDetails:
    """Return what the service answers to the question whether demo data is generated.

    Raises NotOffered where the server refuses it to API keys, and the errors of `projects`.
    """
    from reconciler.operations import projects as listing

    request = listing.ProjectRequest(options_of(workspace), name)
    return await masked(workspace, partial(listing.project_demo_data, request))


async def reset_token(
    workspace: Workspace,
    name: str,
    *,
    approve: Callable[[ProjectDetails], bool],
    reveal: bool = False,
    out: Path | None = None,
) -> ProjectDetails:
    """Replace the API token of a project, once, after `approve`. Its clients need the new one.

    The result has the new token if `reveal`; `out` is a file of mode 0600 for it.

    Raises NotOffered where the server refuses it to API keys, AmbiguousOutcome without a clear
    answer, ReconcilerError if it is not approved, and the errors of `projects`.
    """
    from reconciler.model.redaction import masked_in
    from reconciler.operations import projects as listing

    runtime = runtime_of(workspace)

    async def approved(details: ProjectDetails) -> bool:
        return approve(masked_in(details, runtime.mask))

    request = listing.ProjectRequest(options_of(workspace), name, reveal=reveal)
    reset = listing.ResetRequest(request, out)
    return masked_in(await listing.reset_token(reset, runtime, approved), runtime.mask)
