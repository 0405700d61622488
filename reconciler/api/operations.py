"""State, runs, logs, gaps, backfills and pauses of exports; projects and their tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.api.workspace import Workspace, masked, options_of, runtime_of

if TYPE_CHECKING:
    from reconciler.model.backfill_plan import BackfillPlan
    from reconciler.model.kind import Action
    from reconciler.model.plan import Plan
    from reconciler.model.run import LogReport, RunReport
    from reconciler.operations.backfills import Backfilled
    from reconciler.operations.gaps import GapReport
    from reconciler.operations.pausing import Paused
    from reconciler.operations.projects import ProjectDetails, ProjectReport
    from reconciler.operations.status_report import StatusReport


@dataclass(frozen=True, slots=True)
class BackfillRange:
    """What to backfill: a range of two times, the gaps of a window, or all since the last pause.

    With `gaps` the window ends at `last`, None for now, and begins at `first`, None for `length`
    before; with `failed`, only gaps whose runs failed. Without an offset times are UTC, and a date
    is that of the schedule of the export.
    """

    first: str | None = None
    last: str | None = None
    gaps: bool = False
    failed: bool = False
    since_pause: bool = False
    length: timedelta = timedelta(days=7)


async def status(
    workspace: Workspace, names: Sequence[str] = (), *, projects: Sequence[str] = ()
) -> StatusReport:
    """Return the state of exports, the worst first.

    Raises InvalidConfiguration, AmbiguousIdentity, BadUsage, ServiceError.
    """
    from reconciler.operations import status as states

    request = states.StatusRequest(options_of(workspace), tuple(names), tuple(projects))
    return (await masked(workspace, partial(states.status, request))).report


async def runs(  # noqa: PLR0913 - the options of the command
    workspace: Workspace,
    name: str,
    *,
    run: str | None = None,
    first: datetime | None = None,
    last: datetime | None = None,
    statuses: Sequence[str] = (),
    limit: int | None = 20,
) -> RunReport:
    """Return runs of an export, the newest first. `run` is the id of the only one.

    Raises InvalidConfiguration, AmbiguousIdentity, BadUsage, ServiceError.
    """
    from reconciler.operations import runs as running

    request = running.RunsRequest(
        options_of(workspace),
        name,
        run=run,
        first=first,
        last=last,
        statuses=tuple(statuses),
        limit=limit,
    )
    return await masked(workspace, partial(running.runs, request))


async def logs(
    workspace: Workspace, name: str, *, run: str | None = None, limit: int | None = 100
) -> LogReport:
    """Return log entries of an export, or of one of its runs.

    Raises NotOffered where the server refuses logs to API keys, and the errors of `runs`.
    """
    from reconciler.operations import logs as log_reading

    request = log_reading.LogsRequest(options_of(workspace), name, run=run, limit=limit)
    return await masked(workspace, partial(log_reading.logs, request))


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

    Raises InvalidConfiguration, AmbiguousIdentity, BadUsage, ServiceError.
    """
    from reconciler.operations import gaps as missing

    request = missing.GapRequest(
        options_of(workspace), tuple(names), length=length, first=first, last=last
    )
    return (await masked(workspace, partial(missing.gaps, request))).report


async def backfill(
    workspace: Workspace,
    names: Sequence[str],
    what: BackfillRange,
    *,
    approve: Callable[[BackfillPlan], bool],
    wait: bool = False,
    log_file: Path | None = None,
) -> Backfilled:
    """Plan backfills of exports, ask `approve`, and start them; `wait` until they ended.

    Raises:
        BadUsage: the range is invalid, or a name matches nothing; nothing was sent.
        ReconcilerError: not approved; nothing was sent.
        InvalidConfiguration, AmbiguousIdentity, ServiceError.

    """
    wanted = {**asdict(what), "wait": wait}
    return await _backfilled(workspace, names, approve, log_file, wanted)


async def retry_runs(  # noqa: PLR0913 - the options of the command
    workspace: Workspace,
    names: Sequence[str],
    *,
    approve: Callable[[BackfillPlan], bool],
    run: str | None = None,
    first: datetime | None = None,
    last: datetime | None = None,
    wait: bool = False,
    log_file: Path | None = None,
) -> Backfilled:
    """Plan retries, ask `approve`, and start them: of one run, or of the failed runs of exports.

    Without `run`, of the runs that began between `first`, seven days ago by default, and `last`.

    Raises NotOffered where the server has no retries, and what `backfill` raises.
    """
    from reconciler.operations.backfills import Retries

    wanted = {"retries": Retries(run, first, last), "wait": wait}
    return await _backfilled(workspace, names, approve, log_file, wanted)


async def _backfilled(
    workspace: Workspace,
    names: Sequence[str],
    approve: Callable[[BackfillPlan], bool],
    log_file: Path | None,
    wanted: dict[str, Any],
) -> Backfilled:
    from reconciler.commands.recording import Outputs
    from reconciler.model.redaction import masked_in
    from reconciler.operations.backfills import BackfillRequest, Screen
    from reconciler.operations.backfills import backfill as start

    options, outputs = options_of(workspace), Outputs(log_file)
    request = BackfillRequest(options, tuple(names), outputs=outputs, **wanted)
    runtime = runtime_of(workspace)

    async def approved(made: BackfillPlan) -> bool:
        return approve(masked_in(made, runtime.mask))

    screen = Screen(lambda *_: None, approved)
    return masked_in(await start(request, runtime, screen), runtime.mask)


async def cancel_run(workspace: Workspace, name: str, run: str) -> None:
    """Cancel a run of an export that has not ended.

    Raises NotOffered where the server can't, Invalid for a run that has ended, BadUsage,
    NotFound, ServiceError.
    """
    from reconciler.operations.runs import cancel_run as cancel

    await cancel(name, run, options_of(workspace), runtime_of(workspace))


async def cancel_backfills(
    workspace: Workspace, name: str, *, row: str | None = None
) -> tuple[str, ...]:
    """Cancel running backfills of an export, or the one with the id `row`; return their ids.

    Raises NotOffered where the server can't, BadUsage, ServiceError.
    """
    from reconciler.operations.runs import cancel

    return await cancel(name, row, options_of(workspace), runtime_of(workspace))


async def pause(
    workspace: Workspace,
    names: Sequence[str],
    *,
    approve: Callable[[Plan], bool],
    write: bool = False,
    log_file: Path | None = None,
) -> Paused:
    """Pause exports after `approve`. `write` also sets `paused:` in the files.

    Raises what `apply` raises, and BadUsage for a name that matches nothing.
    """
    from reconciler.model.kind import Action

    return await _toggle(workspace, names, Action.PAUSE, approve, write=write, log_file=log_file)


async def unpause(
    workspace: Workspace,
    names: Sequence[str],
    *,
    approve: Callable[[Plan], bool],
    write: bool = False,
    log_file: Path | None = None,
) -> Paused:
    """Unpause exports after `approve`. Runs that the pause left out are not made.

    `write` also sets `paused:` in the files. Raises what `pause` raises.
    """
    from reconciler.model.kind import Action

    return await _toggle(workspace, names, Action.UNPAUSE, approve, write=write, log_file=log_file)


async def _toggle(
    workspace: Workspace,
    names: Sequence[str],
    action: Action,
    approve: Callable[[Plan], bool],
    *,
    write: bool,
    log_file: Path | None,
) -> Paused:
    from reconciler.commands.applying import Screen
    from reconciler.commands.recording import Outputs
    from reconciler.operations import pausing

    async def approved(made: Plan) -> bool:
        return approve(made)

    request = pausing.PauseRequest(
        options_of(workspace), tuple(names), action, write=write, outputs=Outputs(log_file)
    )
    screen = Screen(show=lambda _: None, approve=approved)
    return await pausing.pause(request, runtime_of(workspace), screen)


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
    return await masked(workspace, partial(listing.project_answer, "activity", request))


async def project_demo_data(workspace: Workspace, name: str) -> ProjectDetails:
    """Return what the service answers to the question whether demo data is generated.

    Raises NotOffered where the server refuses it to API keys, and the errors of `projects`.
    """
    from reconciler.operations import projects as listing

    request = listing.ProjectRequest(options_of(workspace), name)
    return await masked(workspace, partial(listing.project_answer, "demo_data", request))


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
    return masked_in(await listing.reset_token(request, runtime, approved, out), runtime.mask)
