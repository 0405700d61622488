"""The Python API: what the commands do, as typed coroutines. See docs/api.md.

Every function raises exceptions of `reconciler.errors`, prints nothing and masks known secrets in
its result. `run` runs one of them for callers without an event loop. Use cases are imported when
they are called, and classes when they are named: importing this module is cheap.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from reconciler.authoring.comparing import EnvironmentComparison
    from reconciler.commands.applying import Applied, Screen
    from reconciler.commands.options import PlanRequest, WorkspaceOptions
    from reconciler.commands.planning import PlanResult
    from reconciler.commands.runtime import Runtime
    from reconciler.model.backfill_plan import BackfillPlan
    from reconciler.model.event import Event
    from reconciler.model.files import Imported
    from reconciler.model.kind import Action
    from reconciler.model.plan import Plan
    from reconciler.model.run import LogReport, RunReport
    from reconciler.operations.backfill_ranges import ClosedGaps, SincePause, Span
    from reconciler.operations.backfills import Backfilled
    from reconciler.operations.gaps import GapReport
    from reconciler.operations.projects import ProjectDetails, ProjectReport
    from reconciler.operations.status_report import StatusReport
    from reconciler.workspace.loading import Loaded


__all__ = [
    "Applied",
    "BackfillPlan",
    "Backfilled",
    "ClosedGaps",
    "EnvironmentComparison",
    "Event",
    "GapReport",
    "Imported",
    "Loaded",
    "LogReport",
    "Plan",
    "PlanResult",
    "PlanScope",
    "ProjectDetails",
    "ProjectReport",
    "RunReport",
    "SincePause",
    "Span",
    "StatusReport",
    "Workspace",
    "apply",
    "backfill",
    "cancel_backfills",
    "compare",
    "gaps",
    "import_",
    "load",
    "logs",
    "pause",
    "plan",
    "project_activity",
    "project_demo_data",
    "projects",
    "reset_token",
    "run",
    "runs",
    "show_project",
    "status",
    "unpause",
]

_MODULES = {
    "Applied": "reconciler.commands.applying",
    "BackfillPlan": "reconciler.model.backfill_plan",
    "Backfilled": "reconciler.operations.backfills",
    "ClosedGaps": "reconciler.operations.backfill_ranges",
    "EnvironmentComparison": "reconciler.authoring.comparing",
    "Event": "reconciler.model.event",
    "GapReport": "reconciler.operations.gaps",
    "Imported": "reconciler.model.files",
    "Loaded": "reconciler.workspace.loading",
    "LogReport": "reconciler.model.run",
    "Plan": "reconciler.model.plan",
    "PlanResult": "reconciler.commands.planning",
    "ProjectDetails": "reconciler.operations.projects",
    "ProjectReport": "reconciler.operations.projects",
    "RunReport": "reconciler.model.run",
    "SincePause": "reconciler.operations.backfill_ranges",
    "Span": "reconciler.operations.backfill_ranges",
    "StatusReport": "reconciler.operations.status_report",
}
"""The modules of the classes that functions take and return."""
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

    `no_inventory` does not use git.
    """

    targets: Sequence[str] = ()
    excludes: Sequence[str] = ()
    kinds: Sequence[str] = ()
    projects: Sequence[str] = ()
    no_inventory: bool = False
    rotate_secrets: Sequence[str] = ()
    allow_replace: bool = False


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run one call of this API and return its result, for callers without an event loop."""
    import asyncio

    return asyncio.run(work)


async def load(workspace: Workspace) -> Loaded:
    """Load and check the files, without a network.

    `desired.resources` are the resources by address, `diagnostics` the warnings.

    Raises InvalidConfiguration with all diagnostics, BadUsage for an unknown environment.
    """
    from reconciler.commands.session import Session

    return Session.open(_options_of(workspace), _runtime_of(workspace)).loaded


async def plan(workspace: Workspace, scope: PlanScope | None = None) -> PlanResult:
    """Read live state and return the plan. Changes nothing.

    Raises InvalidConfiguration, GitUnavailable, BadUsage, ServiceError.
    """
    from reconciler.commands import planning

    return await planning.plan(_plan_request_of(workspace, scope), _runtime_of(workspace))


async def apply(
    workspace: Workspace,
    scope: PlanScope | None = None,
    *,
    approve: Callable[[Plan], bool],
    plan_file: Path | None = None,
    push: bool = False,
    log_file: Path | None = None,
) -> Applied:
    """Plan, ask `approve`, apply and verify.

    `plan_file` is a saved plan: it counts as approved. `log_file` is an audit log.

    Raises:
        RefusedByPolicy: a guard refuses the plan; nothing was sent.
        StalePlan: the saved plan is stale; nothing was sent.
        SecretUnavailable: a secret that would be sent is missing; nothing was sent.
        ReconcilerError: not approved; nothing was sent.
        The errors of `plan`.

    """
    from reconciler.commands import applying
    from reconciler.commands.recording import Outputs

    request = applying.ApplyRequest(
        _plan_request_of(workspace, scope),
        plan_file=plan_file,
        push=push,
        outputs=Outputs(log_file),
    )
    return await applying.apply(request, _runtime_of(workspace), _screen(approve))


async def import_(  # noqa: PLR0913 - the options of the command
    workspace: Workspace,
    names: Sequence[str] = (),
    *,
    ids: Sequence[str] = (),
    projects: Sequence[str] = (),
    kinds: Sequence[str] = (),
    into: str = "",
    dry_run: bool = False,
) -> Imported:
    """Write live objects into files of the workspace. `dry_run` writes nothing.

    Raises InvalidConfiguration, BadUsage, ReconcilerError, ServiceError.
    """
    from reconciler.authoring import importing
    from reconciler.authoring.import_choice import Choice

    choice = Choice(tuple(names), tuple(ids), tuple(projects), tuple(kinds))
    options = importing.ImportOptions(_options_of(workspace), choice, into=into, dry_run=dry_run)
    return await _masked(workspace, partial(importing.import_live, options))


async def compare(
    workspace: Workspace, first: str, second: str, names: Sequence[str] = ()
) -> EnvironmentComparison:
    """Compare two environments of the files.

    Raises InvalidConfiguration, BadUsage.
    """
    from reconciler.authoring.comparing import compared, open_pair

    async def comparison(runtime: Runtime) -> EnvironmentComparison:
        return compared(open_pair(_options_of(workspace), (first, second), runtime), names)

    return await _masked(workspace, comparison)


async def status(
    workspace: Workspace, names: Sequence[str] = (), *, projects: Sequence[str] = ()
) -> StatusReport:
    """Return the state of exports, the worst first.

    Raises InvalidConfiguration, BadUsage, ServiceError.
    """
    from reconciler.operations import status as states

    request = states.StatusRequest(_options_of(workspace), tuple(names), tuple(projects))
    return (await _masked(workspace, partial(states.status, request))).report


async def runs(  # noqa: PLR0913 - the options of the command
    workspace: Workspace,
    names: Sequence[str] = (),
    *,
    projects: Sequence[str] = (),
    run: str | None = None,
    first: datetime | None = None,
    last: datetime | None = None,
    statuses: Sequence[str] = (),
    limit: int | None = 20,
) -> RunReport:
    """Return runs of exports, the newest first. `run` is the id of the only one, of one name.

    Raises InvalidConfiguration, BadUsage, ServiceError.
    """
    from reconciler.operations import runs as running

    request = running.RunsRequest(
        _options_of(workspace),
        tuple(names),
        tuple(projects),
        run=run,
        first=first,
        last=last,
        statuses=tuple(statuses),
        limit=limit,
    )
    return (await _masked(workspace, partial(running.runs, request))).report


async def logs(
    workspace: Workspace, name: str, *, run: str | None = None, limit: int | None = 100
) -> LogReport:
    """Return log entries of an export, or of one of its runs.

    Raises NotOffered where the server refuses logs to API keys, and the errors of `runs`.
    """
    from reconciler.operations import logs as log_reading

    request = log_reading.LogsRequest(_options_of(workspace), name, run=run, limit=limit)
    return await _masked(workspace, partial(log_reading.logs, request))


async def gaps(
    workspace: Workspace,
    names: Sequence[str] = (),
    *,
    length: timedelta = timedelta(days=7),
    first: datetime | None = None,
    last: datetime | None = None,
) -> GapReport:
    """Return the intervals that should have been exported and were not.

    The window ends at `last`, None for now, and begins at `first`, None for `length` before.

    Raises InvalidConfiguration, BadUsage, ServiceError.
    """
    from reconciler.operations import gaps as missing

    request = missing.GapRequest(_options_of(workspace), tuple(names), first or length, last)
    return (await _masked(workspace, partial(missing.gaps, request))).report


async def backfill(
    workspace: Workspace,
    names: Sequence[str],
    wanted: Span | ClosedGaps | SincePause,
    *,
    approve: Callable[[BackfillPlan], bool],
    wait: bool = False,
    log_file: Path | None = None,
) -> Backfilled:
    """Plan backfills of exports, ask `approve`, and start them; `wait` until they ended.

    Raises:
        BadUsage: the range is invalid, or a name matches nothing; nothing was sent.
        ReconcilerError: not approved; nothing was sent.
        InvalidConfiguration, ServiceError.

    """
    from reconciler.commands.recording import Outputs
    from reconciler.model.redaction import masked_in
    from reconciler.operations.backfills import BackfillRequest, Screen
    from reconciler.operations.backfills import backfill as start

    options, outputs = _options_of(workspace), Outputs(log_file)
    request = BackfillRequest(options, wanted, tuple(names), outputs=outputs, wait=wait)
    runtime = _runtime_of(workspace)
    screen = Screen(lambda *_: None, _answering(approve, runtime))
    return masked_in(await start(request, runtime, screen), runtime.mask)


async def cancel_backfills(
    workspace: Workspace, name: str, *, row: str | None = None
) -> tuple[str, ...]:
    """Cancel running backfills of an export, or the one with the id `row`; return their ids.

    Raises NotOffered where the server can't, BadUsage, ServiceError.
    """
    from reconciler.operations.runs import cancel

    return await cancel(name, row, _options_of(workspace), _runtime_of(workspace))


async def pause(
    workspace: Workspace,
    names: Sequence[str],
    *,
    approve: Callable[[Plan], bool],
    log_file: Path | None = None,
) -> Applied:
    """Pause exports after `approve`.

    Raises what `apply` raises, and BadUsage for a name that matches nothing.
    """
    from reconciler.model.kind import Action

    return await _toggle(workspace, names, Action.PAUSE, approve, log_file)


async def unpause(
    workspace: Workspace,
    names: Sequence[str],
    *,
    approve: Callable[[Plan], bool],
    log_file: Path | None = None,
) -> Applied:
    """Unpause exports after `approve`. Runs that the pause left out are not made.

    Raises what `pause` raises.
    """
    from reconciler.model.kind import Action

    return await _toggle(workspace, names, Action.UNPAUSE, approve, log_file)


async def _toggle(
    workspace: Workspace,
    names: Sequence[str],
    action: Action,
    approve: Callable[[Plan], bool],
    log_file: Path | None,
) -> Applied:
    from reconciler.commands.recording import Outputs
    from reconciler.operations import pausing

    request = pausing.PauseRequest(
        _options_of(workspace), tuple(names), action, outputs=Outputs(log_file)
    )
    return await pausing.pause(request, _runtime_of(workspace), _screen(approve))


async def projects(workspace: Workspace, names: Sequence[str] = ()) -> ProjectReport:
    """Return the live projects, with the number of their exports.

    Raises InvalidConfiguration, BadUsage, ServiceError.
    """
    from reconciler.operations import projects as listing

    request = listing.ProjectsRequest(_options_of(workspace), tuple(names))
    return await _masked(workspace, partial(listing.projects, request))


async def show_project(workspace: Workspace, name: str, *, reveal: bool = False) -> ProjectDetails:
    """Return one project with all of its fields. `reveal` shows its API token.

    Raises the errors of `projects`.
    """
    from reconciler.operations import projects as listing

    request = listing.ProjectRequest(_options_of(workspace), name, reveal=reveal)
    return await _masked(workspace, partial(listing.project, request))


async def project_activity(workspace: Workspace, name: str) -> ProjectDetails:
    """Return what the service answers to a request for the activity of a project.

    Raises NotOffered where the server refuses it to API keys, and the errors of `projects`.
    """
    from reconciler.operations import projects as listing

    request = listing.ProjectRequest(_options_of(workspace), name)
    return await _masked(workspace, partial(listing.project_answer, "activity", request))


async def project_demo_data(workspace: Workspace, name: str) -> ProjectDetails:
    """Return what the service answers to the question whether demo data is generated.

    Raises NotOffered where the server refuses it to API keys, and the errors of `projects`.
    """
    from reconciler.operations import projects as listing

    request = listing.ProjectRequest(_options_of(workspace), name)
    return await _masked(workspace, partial(listing.project_answer, "demo_data", request))


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

    runtime = _runtime_of(workspace)
    request = listing.ProjectRequest(_options_of(workspace), name, reveal=reveal)
    answer = _answering(approve, runtime)
    return masked_in(await listing.reset_token(request, runtime, answer, out), runtime.mask)


def _options_of(workspace: Workspace) -> WorkspaceOptions:
    """Return the options of the use cases."""
    from reconciler.commands.options import WorkspaceOptions

    return WorkspaceOptions(
        Path(workspace.folder),
        environment=workspace.environment,
        strict=workspace.strict,
        trust_workspace=workspace.trust_workspace,
    )


def _runtime_of(workspace: Workspace) -> Runtime:
    """Return the runtime of the use cases."""
    from reconciler.commands.runtime import Runtime

    return Runtime(environ=workspace.environ, now=workspace.now, listen=workspace.listen)


def _screen(approve: Callable[[Plan], bool]) -> Screen:
    """Return a screen that shows nothing, and asks for approval."""
    from reconciler.commands.applying import Screen

    async def approved(made: Plan) -> bool:
        return approve(made)

    return Screen(show=lambda _: None, approve=approved)


def _answering(approve: Callable[[_T], bool], runtime: Runtime) -> Callable[[_T], Awaitable[bool]]:
    """Return a coroutine function that asks for approval, with known secrets masked."""
    from reconciler.model.redaction import masked_in

    async def approved(made: _T) -> bool:
        return approve(masked_in(made, runtime.mask))

    return approved


async def _masked(workspace: Workspace, work: Callable[[Runtime], Awaitable[_T]]) -> _T:
    """Run a use case and return its result with known secrets masked."""
    from reconciler.model.redaction import masked_in

    runtime = _runtime_of(workspace)
    return masked_in(await work(runtime), runtime.mask)


def _plan_request_of(workspace: Workspace, scope: PlanScope | None) -> PlanRequest:
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
    return PlanRequest(_options_of(workspace), options, scope.no_inventory)


def __getattr__(name: str) -> Any:
    """Return a class of a result. Raises AttributeError for another name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
