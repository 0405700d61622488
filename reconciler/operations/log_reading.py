"""The use case `logs`: the log of one object, or of one run. Changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from reconciler.commands.options import WorkspaceOptions
from reconciler.commands.runtime import Runtime
from reconciler.model.kind import Dialect
from reconciler.model.moments import Moment, window_at
from reconciler.model.run import LogEntry, Run
from reconciler.model.run_report import LogReport, Matched
from reconciler.operations.log_pages import MOST, LogFilter, read_logs
from reconciler.operations.run_history import read_run
from reconciler.operations.running import POLL, Opened, opened
from reconciler.planning.run_logs import entries_of, window_of
from reconciler.reading.calls import NotOffered

_LATE = timedelta(minutes=1)
"""How late an entry may appear in the log."""
_MOST_OF_A_RUN = 5_000
"""Entries that are read to find those of one run."""


class LogsRequest(Struct, frozen=True):
    """Whose log to show, the newest `limit` entries of it; None for all.

    `run` is the id of the only run to show. `first` and `last` replace the window of
    `wanted`.
    """

    workspace: WorkspaceOptions
    name: str
    run: str | None = None
    wanted: LogFilter = field(default_factory=LogFilter)
    limit: int | None = 100
    first: Moment | None = None
    last: Moment | None = None


async def logs(request: LogsRequest, runtime: Runtime) -> LogReport:
    """Return the log of an object or of a run.

    Raises InvalidConfiguration, BadUsage, NotOffered, ServiceError.
    """
    async with _opened(request, runtime) as world:
        request = _timed(request, world.now)
        if request.run is None:
            entries, more = await _newest(request, world)
            shown = _shown(entries)
            return LogReport(**asdict(world.subject), more=more, entries=shown)
        run = await read_run(world.calls, request.run)
        matched, entries, more = await _of_run(request, run, world)
        shown = _shown(entries)
        return LogReport(
            **asdict(world.subject), more=more, run=run, matched=matched, entries=shown
        )


async def follow_logs(
    request: LogsRequest, runtime: Runtime, listen: Callable[[LogEntry], None]
) -> None:
    """Report the newest entries, the oldest first, then new ones until it is cancelled.

    Raises as `logs` does.
    """
    async with _opened(request, runtime) as world:
        request = _timed(request, world.now)
        entries, _ = await _newest(request, world)
        known = Counter[LogEntry]()
        since = request.wanted.first
        while True:
            for entry in _shown(list((Counter(entries) - known).elements())):
                listen(entry)
            known |= Counter(entries)
            if known:
                # Entries of several workers do not arrive in order.
                since = latest = max(entry.timestamp for entry in known) - _LATE
                known = Counter({item: n for item, n in known.items() if item.timestamp > latest})
            await runtime.client.sleep(POLL)
            later = replace(request, wanted=replace(request.wanted, first=since), limit=None)
            entries, _ = await _newest(later, world)


def _timed(request: LogsRequest, now: datetime) -> LogsRequest:
    """Return a request whose filter has the window. Raises BadUsage for an empty one."""
    wanted = request.wanted
    first, last = window_at(now, request.first or wanted.first, request.last or wanted.last)
    return replace(request, wanted=replace(wanted, first=first, last=last))


@asynccontextmanager
async def _opened(request: LogsRequest, runtime: Runtime) -> AsyncIterator[Opened]:
    """Yield the object, and name its page where the service refuses logs to keys."""
    async with opened(request.workspace, request.name, runtime, tab="logs") as world:
        try:
            yield world
        except NotOffered as error:
            page = world.subject.page
            if page is None:
                raise
            raise error.reworded(hint=f"read them in the browser: {page}") from None


async def _newest(request: LogsRequest, world: Opened) -> tuple[list[LogEntry], bool]:
    """Return the newest entries, the newest first, and whether there are more."""
    page = MOST if request.limit is None else min(MOST, request.limit + 1)
    kept: list[LogEntry] = []
    async for entry in read_logs(world.calls, request.wanted, page=page):
        if len(kept) == request.limit:
            return kept, True
        kept.append(entry)
    return kept, False


async def _of_run(
    request: LogsRequest, run: Run, world: Opened
) -> tuple[Matched, list[LogEntry], bool]:
    """Return the entries of a run, how they were matched, and whether there are more.

    Since 2025 the path of a run's logs does not work: it is empty, or fails (docs/service.md, 3).
    """
    wanted, calls = request.wanted, world.calls
    if calls.dialect is Dialect.INTERFACE:
        entries = [item async for item in read_logs(calls, wanted, run=run.id)]
        matched = Matched.BY_SERVICE
    else:
        window = window_of(run, world.now)
        every = LogFilter(window.start, window.end) if window is not None else LogFilter()
        read: list[LogEntry] = []
        async for entry in read_logs(calls, every):
            read.append(entry)
            if len(read) == _MOST_OF_A_RUN:
                break
        matched, own = entries_of(run, read)
        entries = [entry for entry in own if wanted.matches(entry)]
    kept = entries[: request.limit]
    return matched, kept, len(kept) < len(entries)


def _shown(entries: list[LogEntry]) -> tuple[LogEntry, ...]:
    """Return entries, the oldest first."""
    # Entries of one time keep the order in which they were logged.
    ordered = entries[::-1]
    ordered.sort(key=_time)
    return tuple(ordered)


def _time(entry: LogEntry) -> datetime:
    return entry.timestamp
