"""The use case `logs`: the log of one object, or of one run. Changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import asdict, replace

from reconciler.commands.runtime import Workspace
from reconciler.errors import Forbidden, InvalidResponse
from reconciler.model.field_types import time_text
from reconciler.model.kind import Dialect
from reconciler.model.request import Query
from reconciler.model.run import LogEntry, LogReport, Matched, Run
from reconciler.model.times import Interval, Moment, window_at
from reconciler.operations.runs import Opened, opened, read_run, valid
from reconciler.reading.calls import NotOffered, ObjectCalls

_BEFORE = timedelta(minutes=1)
_AFTER = timedelta(minutes=5)
"""Entries are written before the run has a row, and after it has ended."""
MOST = 500
"""Entries of a page (service.md, 3)."""
_LEAST = timedelta(microseconds=1)


def window_of(run: Run, now: datetime) -> Interval | None:
    """Return when a run may have logged, None if its creation is unknown."""
    if run.created_at is None:
        return None
    end = run.finished_at
    # A run that billing refused has no end, and logs once.
    if end is None:
        end = now if run.pending else run.created_at
    return Interval(run.created_at - _BEFORE, end + _AFTER)


class LogFilter(Struct, frozen=True):
    """Which entries to read: after and before moments, of some levels, with a text."""

    first: datetime | None = None
    last: datetime | None = None
    levels: tuple[str, ...] = ()
    search: str | None = None

    def query(self, dialect: Dialect | None) -> dict[str, str | tuple[str, ...]]:
        """Return the parameters of a request."""
        query: dict[str, str | tuple[str, ...]] = {}
        if self.first is not None:
            query["after"] = time_text(self.first)
        if self.last is not None:
            query["before"] = time_text(self.last)
        if self.levels:
            # Up to 2024 the parameter has another name. Servers ignore the one they don't know.
            is_new = dialect is not None and dialect.is_since(Dialect.V2025)
            names = ("level",) if is_new else ("level", "level_filter")
            query |= dict.fromkeys(names, self.levels)
        if self.search:
            query["search"] = self.search
        return query

    def keeps(self, entry: LogEntry) -> bool:
        """Return whether an entry has one of the levels, for servers that ignore them."""
        return not self.levels or entry.level in self.levels


async def read_logs(
    calls: ObjectCalls, wanted: LogFilter, *, page: int = MOST, run: str | None = None
) -> AsyncIterator[LogEntry]:
    """Yield log entries, of one run if it is given, the newest first, as they are needed.

    Raises NotOffered, ServiceError, InvalidResponse.
    """
    query = wanted.query(calls.dialect) | {"limit": str(page)}
    known = Counter[LogEntry]()
    oldest: datetime | None = None
    while True:
        entries = await _page(calls, query, run)
        fresh = list((Counter(entries) - known).elements())
        fresh.sort(key=lambda entry: entry.timestamp, reverse=True)
        for entry in fresh:
            if wanted.keeps(entry):
                yield entry
        if len(entries) < page:
            return
        before = min(entry.timestamp for entry in entries)
        # `before` is exclusive, and further entries may have the time of the last one.
        is_stuck = oldest is not None and before >= oldest
        query["before"] = time_text(before if is_stuck else before + _LEAST)
        known = Counter(entry for entry in entries if entry.timestamp <= before)
        oldest = before


async def _page(calls: ObjectCalls, query: Query, run: str | None) -> list[LogEntry]:
    label = f"logs of {calls.live.id}"
    try:
        if run is None:
            body = await calls.send("logs", query=query)
        else:
            body = await calls.send("run_logs", query=query, run=run)
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
    wanted: LogFilter | None = None,
    *,
    run: str | None = None,
    limit: int | None = 100,
    first: Moment | None = None,
    last: datetime | None = None,
) -> LogReport:
    """Return the newest `limit` entries of the log of an object, or of one run; None for all.

    `first` and `last` replace the window of `wanted`.

    Raises InvalidConfiguration, BadUsage, NotOffered, ServiceError.
    """
    async with _opened(workspace, name) as world:
        wanted = wanted or LogFilter()
        start, end = window_at(world.now, first or wanted.first, last or wanted.last)
        wanted, path, about, matched = replace(wanted, first=start, last=end), run, None, None
        if run is not None:
            about, matched = await read_run(world.calls, run), Matched.BY_SERVICE
            # Since 2025 the path of a run's logs is empty, or fails (service.md, 3).
            if world.calls.dialect is not Dialect.INTERFACE:
                matched, path = Matched.BY_TIME, None
                wanted = _while(about, wanted, world.now)
        entries, more = await _newest(world, wanted, path, limit)
        shown = _shown(entries)
        report = LogReport(
            **asdict(world.subject), more=more, run=about, matched=matched, entries=shown
        )
        return workspace.masked(report)


def _while(run: Run, wanted: LogFilter, now: datetime) -> LogFilter:
    """Return a filter that also leaves out what was logged before or after a run."""
    window = window_of(run, now)
    if window is None:
        return wanted
    first, last = wanted.first or window.start, wanted.last or window.end
    return replace(wanted, first=max(first, window.start), last=min(last, window.end))


@asynccontextmanager
async def _opened(workspace: Workspace, name: str) -> AsyncIterator[Opened]:
    """Yield the object, and name its page where the service refuses logs to keys."""
    async with opened(workspace, name, tab="logs") as world:
        try:
            yield world
        except NotOffered as error:
            page = world.subject.page
            if page is None:
                raise
            raise error.reworded(hint=f"read them in the browser: {page}") from None


async def _newest(
    world: Opened, wanted: LogFilter, run: str | None, limit: int | None
) -> tuple[list[LogEntry], bool]:
    """Return the newest entries, the newest first, and whether there are more."""
    page = MOST if limit is None else min(MOST, limit + 1)
    kept: list[LogEntry] = []
    async for entry in read_logs(world.calls, wanted, page=page, run=run):
        if len(kept) == limit:
            return kept, True
        kept.append(entry)
    return kept, False


def _shown(entries: list[LogEntry]) -> tuple[LogEntry, ...]:
    """Return entries, the oldest first."""
    # Entries of one time keep the order in which they were logged.
    ordered = entries[::-1]
    ordered.sort(key=lambda entry: entry.timestamp)
    return tuple(ordered)
