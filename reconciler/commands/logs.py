"""`reconciler logs`: the log of one object, or of one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reconciler.commands import completion
from reconciler.commands.command import command, option
from reconciler.commands.options import (
    format_option,
    links_option,
    range_of,
    range_options,
    service_options,
    workspace_of,
)
from reconciler.commands.screen import render_options, show_report
from reconciler.commands.workspace import Workspace
from reconciler.errors import Forbidden, InvalidResponse
from reconciler.model.kind import Dialect
from reconciler.model.live import Query
from reconciler.model.run import LEVELS, LogEntry, LogReport, Matched, Run, levels_from
from reconciler.model.schemas import time_text
from reconciler.model.times import Interval, Moment, window_at

if TYPE_CHECKING:
    from reconciler.service.operations import ObjectCalls

_BEFORE = timedelta(minutes=1)
_AFTER = timedelta(minutes=5)
"""Entries are written before the run has a row, and after it has ended."""
MOST = 500
"""Entries of a page (service.md, 3)."""
_LEAST = timedelta(microseconds=1)


@command(
    "logs",
    examples=(
        ("logs lake", "The newest 100 entries of an export"),
        ("logs lake --level warning --since 7d", "Warnings and errors of a week"),
        ("logs lake --run 0192e6b2-45d1-0000-5f2b-7c1a2b3c4d5e", "The entries of one run"),
    ),
    page="docs/operations.md",
)
@click.argument("name", shell_complete=completion.resources)
@service_options
@option("--run", metavar="ID", help="Only entries of this run.")
@option(
    "--level",
    type=click.Choice(LEVELS, case_sensitive=False),
    help="Only entries of this level or above.",
)
@option("--search", metavar="TEXT", help="Only entries with this text; % and _ are wildcards.")
@range_options
@option(
    "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Maximum count."
)
@option("--all", "everything", is_flag=True, help="All entries, page by page.")
@format_option("logs")
@links_option
def logs_command(name: str, output_format: str, *, links: bool, **options: Any) -> None:
    """Show the log of an export, the newest entry last.

    NAME is an address, an id, a key, a name or a glob of one export. Times without an offset are
    UTC. Servers of 2025 and spring 2026 refuse logs to API keys. Newer servers do not join
    logs to runs: with --run, they are the entries that were logged while it ran, and some may be of
    other runs.
    """
    first, last = range_of(options)
    work = partial(
        logs,
        name=name,
        first=first,
        last=last,
        limit=None if options["everything"] else options["limit"],
        **{name: options[name] for name in ("run", "level", "search")},
    )
    how = render_options(links=links)
    show_report("logs", output_format, work, workspace_of(options), how)


def window_of(run: Run, now: datetime) -> Interval | None:
    """Return when a run may have logged, None if its creation is unknown."""
    if run.created_at is None:
        return None
    # A run that billing refused has no end, and logs once.
    end = run.finished_at or (now if run.pending else run.created_at)
    return Interval(run.created_at - _BEFORE, end + _AFTER)


async def read_logs(
    calls: ObjectCalls, query: Query, *, page: int = MOST, run: str | None = None
) -> AsyncIterator[LogEntry]:
    """Yield log entries, of one run if it is given, the newest first, as they are needed.

    Raises NotOffered, ServiceError, InvalidResponse.
    """
    query = {**query, "limit": str(page)}
    known = Counter[LogEntry]()
    oldest: datetime | None = None
    is_stuck = False
    while True:
        entries = await _page(calls, query, run)
        fresh = list((Counter(entries) - known).elements())
        fresh.sort(key=lambda entry: entry.timestamp, reverse=True)
        for entry in fresh:
            yield entry
        if len(entries) < page:
            return
        if is_stuck and not fresh:
            raise InvalidResponse(f"logs of {calls.live.id}: the list does not end")
        before = min(entry.timestamp for entry in entries)
        # `before` is exclusive, and further entries may have the time of the last one.
        is_stuck = oldest is not None and before >= oldest
        query["before"] = time_text(before if is_stuck else before + _LEAST)
        known = Counter(entry for entry in entries if entry.timestamp <= before)
        oldest = before


async def _page(calls: ObjectCalls, query: Query, run: str | None) -> list[LogEntry]:
    from reconciler.service.operations import NotOffered, valid

    label = f"logs of {calls.live.id}"
    try:
        names = {"run": run} if run is not None else {}
        body = await calls.send("run_logs" if names else "logs", body=None, query=query, **names)
    except Forbidden as error:
        # Servers from 2025 to spring 2026 refuse them whatever the scopes of the key.
        raise NotOffered(f"this server refuses logs to the API key: {error.message}") from None
    results = body.get("results") if isinstance(body, Mapping) else None
    if not isinstance(results, list):
        raise InvalidResponse(f"{label}: the response is not a page of objects")
    return list(valid(LogEntry.of, results, label))


async def logs(  # noqa: PLR0913 - the options of the command
    workspace: Workspace,
    name: str,
    *,
    run: str | None = None,
    level: str | None = None,
    search: str | None = None,
    first: Moment | None = None,
    last: datetime | None = None,
    limit: int | None = 100,
) -> LogReport:
    """Return the newest `limit` entries of the log of an object, or of one run; None for all.

    Only those of `level` or above, with the text `search`, after `first` and before `last`.

    Raises InvalidConfiguration, BadUsage, NotOffered, ServiceError.
    """
    from reconciler.commands.targets import opened
    from reconciler.service.operations import NotOffered, read_run

    async with opened(workspace, "logs") as targets:
        target, now = targets.one(name), targets.now()
        calls, subject = targets.calls(target), targets.about(target, "logs")
        start, end = window_at(now, first, last)
        path, of_run, matched = run, None, None
        try:
            if run is not None:
                of_run, matched = await read_run(calls, run), Matched.BY_SERVICE
                # Since 2025 the path of a run's logs is empty, or fails (service.md, 3).
                if calls.dialect is not Dialect.INTERFACE:
                    path, matched = None, Matched.BY_TIME
                    if window := window_of(of_run, now):
                        start = max(start or window.start, window.start)
                        end = min(end or window.end, window.end)
            levels = levels_from(level) if level is not None else ()
            query = _query(start, end, levels, search, calls.dialect)
            entries, more = await _newest(calls, query, levels, path, limit)
        except NotOffered as error:
            page = subject["page"]
            hint = f"read them in the browser: {page}" if page is not None else None
            raise error.reworded(hint=hint) from None
        return workspace.masked(
            LogReport(**subject, more=more, run=of_run, matched=matched, entries=tuple(entries))
        )


def _query(
    start: datetime | None,
    end: datetime | None,
    levels: tuple[str, ...],
    search: str | None,
    dialect: Dialect | None,
) -> Query:
    # Up to 2024 the parameter has another name. Servers ignore the one they don't know.
    is_new = dialect is not None and dialect.is_since(Dialect.V2025)
    parameters = {
        "after": time_text(start) if start is not None else None,
        "before": time_text(end) if end is not None else None,
        **dict.fromkeys(("level",) if is_new else ("level", "level_filter"), levels),
        "search": search,
    }
    return {name: value for name, value in parameters.items() if value}


async def _newest(
    calls: ObjectCalls,
    query: Query,
    levels: tuple[str, ...],
    run: str | None,
    limit: int | None,
) -> tuple[list[LogEntry], bool]:
    """Return the newest entries, the oldest first, and whether there are more."""
    page = MOST if limit is None else min(MOST, limit + 1)
    kept: list[LogEntry] = []
    async for entry in read_logs(calls, query, page=page, run=run):
        # Servers may ignore levels.
        if not levels or entry.level in levels:
            kept.append(entry)
        if limit is not None and len(kept) > limit:
            break
    # Entries of one time keep the order in which they were logged.
    shown = kept[:limit][::-1]
    shown.sort(key=lambda entry: entry.timestamp)
    return shown, len(kept) > len(shown)
