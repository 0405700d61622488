"""`reconciler runs`: the runs of exports, or everything about one run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from reconciler.commands.command import command, option
from reconciler.commands.options import (
    exports_options,
    format_option,
    links_option,
    range_of,
    range_options,
    workspace_of,
)
from reconciler.commands.screen import render_options, show_report
from reconciler.commands.workspace import Reported, Workspace
from reconciler.errors import BadUsage, ReconcilerError, ServiceError
from reconciler.exit_codes import ExitCode, worst_of
from reconciler.model.kind import SINCE_2026
from reconciler.model.live import Query
from reconciler.model.run import STATUSES, ListedRun, Run, RunReport, SubjectOfRuns
from reconciler.model.schemas import time_text
from reconciler.model.times import Moment, window_at

if TYPE_CHECKING:
    from reconciler.service.operations import ObjectCalls


@command(
    "runs",
    examples=(
        ("runs lake", "The newest 20 runs of an export"),
        ("runs lake --run 0192e6b2-45d1-0000-5f2b-7c1a2b3c4d5e", "Everything about one run"),
        ("runs --status Failed --since 7d --all", "What failed in a week in any export"),
    ),
    page="docs/operations.md",
)
@exports_options
@option("--run", metavar="ID", help="Everything about this run of NAME.")
@range_options
@option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(STATUSES, case_sensitive=False),
    metavar="STATUS",
    help=f"Only runs with these statuses: {', '.join(STATUSES)}.",
)
@option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Maximum count.")
@option("--all", "everything", is_flag=True, help="All runs, page by page.")
@format_option("runs")
@links_option
def runs_command(
    names: tuple[str, ...], output_format: str, *, links: bool, **options: Any
) -> ExitCode:
    """Show the runs of exports, the newest first, or everything about one run.

    Shows the runs of all exports of the organization, or of those that NAME selects: address, id,
    key, name or glob. An export whose runs cannot be read does not hide the others, and the exit
    code is that of its error. Times without an offset are UTC. To export the intervals of failed
    runs again, use `reconciler backfill NAME --failed`.
    """
    if options["run"] is not None and (len(names) != 1 or options["project"]):
        raise BadUsage("--run is of one export", hint="write: reconciler runs NAME --run ID")
    first, last = range_of(options)
    work = partial(
        runs,
        names=names,
        projects=options["project"],
        first=first,
        last=last,
        limit=None if options["everything"] else options["limit"],
        **{name: options[name] for name in ("run", "statuses")},
    )
    how = render_options(links=links)
    report = show_report("runs", output_format, work, workspace_of(options), how).report
    return worst_of(item.exit_code for item in report.unread)


async def runs(  # noqa: PLR0913 - the options of the command
    workspace: Workspace,
    names: Sequence[str] = (),
    *,
    projects: Sequence[str] = (),
    run: str | None = None,
    first: Moment | None = None,
    last: datetime | None = None,
    statuses: Sequence[str] = (),
    limit: int | None = 20,
) -> Reported[RunReport]:
    """Return the newest `limit` runs of objects, the newest first; None for all.

    `names` select exports and `projects` projects, by address, id, key, name or glob; all exports
    without any. `run` is the id of the only run, of one name. `first` and `last` are a window of
    the creation. `statuses` are those to show, all without any. An object that can't be read does
    not hide others.

    Raises InvalidConfiguration, BadUsage, and the error of the first object if all fail.
    """
    from reconciler.commands.targets import opened
    from reconciler.service.operations import BEGINNING
    from reconciler.service.pace import together

    async with opened(workspace, "runs") as targets:
        chosen = targets.chosen(names, projects) if run is None else (targets.one(*names),)
        start, end = window_at(targets.now(), first, last)
        query: dict[str, str | tuple[str, ...]] = {
            "ordering": "-created_at",
            "after": time_text(start or BEGINNING),
            **({} if end is None else {"before": time_text(end)}),
        }
        if statuses and targets.live.dialect in SINCE_2026:
            query["status"] = tuple(statuses)
        most = None if limit is None else limit + 1
        every = await together(
            _read(targets.calls(target), query, run, statuses, most) for target in chosen
        )
        exports, listed = [], []
        for target, result in zip(chosen, every, strict=True):
            about = targets.about(target, "runs")
            if isinstance(result, ReconcilerError):
                about |= {"error": result.message, "exit_code": result.exit_code}
            else:
                listed += [ListedRun(**asdict(item), address=target.address) for item in result]
            exports.append(SubjectOfRuns(**about))
        errors = [result for result in every if isinstance(result, ReconcilerError)]
        if errors and len(errors) == len(every):
            raise errors[0]
        # Those of one moment keep the order of the service.
        listed.sort(key=lambda item: (-(item.created_at or BEGINNING).timestamp(), item.address))
        report = RunReport(
            environment=targets.environment,
            exports=tuple(exports),
            more=limit is not None and len(listed) > limit,
            runs=tuple(listed[:limit]),
            detail=run is not None,
        )
        return workspace.masked(Reported(report, calls=targets.transport.calls))


async def _read(
    calls: ObjectCalls,
    query: Query,
    run_id: str | None,
    statuses: Sequence[str],
    most: int | None,
) -> list[Run] | ReconcilerError:
    """Return the newest runs of an object that are wanted, or why they can't be read."""
    from reconciler.service.operations import NotOffered, read_run, valid

    runs: list[Run] = []
    try:
        if run_id is not None:
            return [await read_run(calls, run_id)]
        async for body in calls.listed("runs", query=query):
            run = valid(Run.of, [body], f"runs of {calls.live.id}")[0]
            # Servers may ignore the statuses.
            if not statuses or run.status in statuses:
                runs.append(run)
            if len(runs) == most:
                break
    except (ServiceError, NotOffered) as error:
        return error
    return runs
