"""The use case `gaps`: compare the runs of objects with their schedules. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from reconciler.client import Transport, together
from reconciler.client.limits import Estimate
from reconciler.commands.options import WorkspaceOptions
from reconciler.commands.runtime import Reported, Runtime
from reconciler.commands.session import Session
from reconciler.errors import BadUsage
from reconciler.model.gaps import Gap, GapReport, ObjectGaps
from reconciler.model.intervals import Interval, Schedule, UnknownSchedule
from reconciler.model.run import Run
from reconciler.operations.run_history import (
    PAGE,
    latest_runs,
    reaches_back,
    read_backfills,
    read_runs,
)
from reconciler.operations.targets import Target, Targets, read_targets
from reconciler.planning.gaps import History, due_intervals, gaps_of
from reconciler.reading.calls import ObjectCalls


class GapRequest(Struct, frozen=True):
    """Which objects, all without `names`, and which window: up to `last`, None for now.

    `first` is None for `length` before the end.
    """

    workspace: WorkspaceOptions
    names: tuple[str, ...] = ()
    length: timedelta = timedelta(days=7)
    first: datetime | None = None
    last: datetime | None = None

    def window(self, now: datetime) -> Interval:
        """Return the window. Raises BadUsage for an empty one."""
        last = now if self.last is None else min(self.last, now)
        first = last - self.length if self.first is None else self.first
        if first >= last:
            raise BadUsage("empty time range", hint="set --from to a time before --to and now")
        return Interval(first, last)


Announce = Callable[[Estimate], None]
"""Is called with the calls that reading the runs takes at most, before they are made."""


async def gaps(
    request: GapRequest, runtime: Runtime, announce: Announce = lambda _: None
) -> Reported[GapReport]:
    """Return the gaps of objects.

    Raises InvalidConfiguration, BadUsage, ServiceError.
    """
    session = Session.open(request.workspace, runtime)
    async with session.connected() as transport:
        targets = await read_targets(session, transport, "runs")
        chosen = targets.named(request.names)
        now = session.now(transport)
        window = request.window(now)
        listed = await gaps_in(chosen, targets, transport, window, now, announce)
        report = GapReport(session.loaded.desired.environment, window, tuple(listed))
        return Reported(report, calls=transport.calls)


async def gaps_in(
    chosen: tuple[Target, ...],
    targets: Targets,
    transport: Transport,
    window: Interval,
    now: datetime,
    announce: Announce = lambda _: None,
) -> list[ObjectGaps]:
    """Return the gaps of objects in a window, in their order. Raises ServiceError."""
    readings = [
        _Reading.of(target, targets.calls(target, transport), window, now) for target in chosen
    ]
    calls = sum(reading.most_calls for reading in readings)
    if calls:
        announce(transport.estimate(calls))
    return await together(reading.gaps() for reading in readings)


class _Reading(Struct, frozen=True):
    """What has to be read of one object. `runs` are all that matter, None if they are unread."""

    target: Target
    calls: ObjectCalls
    schedule: Schedule | None
    window: Interval
    now: datetime
    expected: int
    runs: tuple[Run, ...] | None
    latest: tuple[Run, ...]
    unknown: str | None = None

    @classmethod
    def of(cls, target: Target, calls: ObjectCalls, window: Interval, now: datetime) -> _Reading:
        latest = latest_runs(target.live)
        schedule, unknown = None, None
        try:
            schedule = Schedule.of(target.live.body, calls.dialect)
            if not schedule.works:
                unknown = f"the server never runs exports with interval '{schedule.interval}'"
        except UnknownSchedule as error:
            unknown = str(error)
        if target.live.parent_id is None:
            unknown = "the service does not say where it belongs"
        expected = 0
        if schedule is not None and unknown is None:
            expected = sum(1 for _ in due_intervals(schedule, window, now))
        known = not expected or reaches_back(latest, window.start)
        runs = latest if known else None
        return cls(target, calls, schedule, window, now, expected, runs, latest, unknown)

    @property
    def most_calls(self) -> int:
        """The calls that it takes unless intervals have several runs."""
        if not self.expected:
            return 0
        pages = 0 if self.runs is not None else self.expected // PAGE + 1
        return pages + self.calls.offered("backfills")

    async def gaps(self) -> ObjectGaps:
        """Read what is missing, and return the gaps. Raises ServiceError."""
        gaps: tuple[Gap, ...] = ()
        if self.schedule is not None and self.expected:
            runs = self.runs
            if runs is None:
                runs = await read_runs(self.calls, self.window.start)
            history = History(runs)
            gaps = gaps_of(self.schedule, history, self.window, self.now)
            if gaps:
                rows = await read_backfills(self.calls, self.window.start)
                gaps = gaps_of(
                    self.schedule, replace(history, backfills=rows), self.window, self.now
                )
        target = self.target
        return ObjectGaps(
            target.address,
            target.live.name,
            target.parent_name,
            gaps,
            self.expected,
            rows_of_a_run(self.latest),
            self.unknown,
        )


def rows_of_a_run(runs: tuple[Run, ...]) -> int | None:
    """Return the median number of rows of completed runs, None without any."""
    counts = [run.records for run in runs if run.completed and run.records is not None]
    return int(median(counts)) if counts else None
