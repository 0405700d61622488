"""What the functions of the API work on."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from reconciler.commands.options import PlanRequest, WorkspaceOptions
    from reconciler.commands.runtime import Runtime
    from reconciler.model.event import Event


_T = TypeVar("_T")


def _now() -> datetime:
    return datetime.now(tz=UTC)  # noqa: TID251 - the default clock of API callers


def _ignore(_: Event) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Workspace:
    """One environment of a workspace.

    folder
        The folder with reconciler.yaml.
    environment
        Its name, None for the only one or `default:` of the workspace.
    trust_workspace
        Whether the files decide where the API key is sent and what is allowed, instead of the
        trusted branch and the variables (docs/security.md).
    environ
        The environment variables: connection and secrets.
    now
        The clock.
    listen
        Is called with every event: progress, requests, changes.
    """

    folder: Path | str
    environment: str | None = None
    strict: bool = False
    trust_workspace: bool = False
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    now: Callable[[], datetime] = field(default=_now, repr=False)
    listen: Callable[[Event], None] = field(default=_ignore, repr=False)


@dataclass(frozen=True, slots=True)
class PlanScope:
    """What to plan: all without names. Names are addresses, ids, keys, live names and globs.

    `base` is a git reference, None for the default; `no_base` does not use git.
    """

    targets: Sequence[str] = ()
    excludes: Sequence[str] = ()
    kinds: Sequence[str] = ()
    projects: Sequence[str] = ()
    base: str | None = None
    no_base: bool = False
    rotate_secrets: Sequence[str] = ()
    allow_replace: bool = False


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run one call of this API and return its result, for callers without an event loop."""
    import asyncio

    return asyncio.run(work)


def options_of(workspace: Workspace) -> WorkspaceOptions:
    """Return the options of the use cases."""
    from reconciler.commands.options import WorkspaceOptions

    return WorkspaceOptions(
        Path(workspace.folder),
        environment=workspace.environment,
        strict=workspace.strict,
        trust_workspace=workspace.trust_workspace,
    )


def runtime_of(workspace: Workspace) -> Runtime:
    """Return the runtime of the use cases."""
    from reconciler.commands.runtime import Runtime

    return Runtime(environ=workspace.environ, now=workspace.now, listen=workspace.listen)


async def masked(workspace: Workspace, work: Callable[[Runtime], Awaitable[_T]]) -> _T:
    """Run a use case and return its result with known secrets masked."""
    from reconciler.model.redaction import masked_in

    runtime = runtime_of(workspace)
    return masked_in(await work(runtime), runtime.mask)


def plan_request_of(workspace: Workspace, scope: PlanScope | None) -> PlanRequest:
    """Return the request for a plan of some resources, of all without a scope."""
    from reconciler.commands.options import PlanRequest
    from reconciler.model.policy import PlanOptions, Selection

    scope = scope or PlanScope()
    selection = Selection(
        targets=tuple(scope.targets),
        excludes=tuple(scope.excludes),
        kinds=tuple(scope.kinds),
        parents=tuple(scope.projects),
    )
    options = PlanOptions(tuple(scope.rotate_secrets), scope.allow_replace, selection)
    return PlanRequest(options_of(workspace), options, scope.base, scope.no_base)
