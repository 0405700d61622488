"""Simulated time: scheduled runs, steps of backfills and automatic pauses, in order.

How the service pauses an export by itself is in service.md, 14.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from typing import Any

from reconciler.emulator.activity import Activity, pause_change
from reconciler.emulator.backfills import Backfills
from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.outcomes import Interval
from reconciler.emulator.run_store import STEP, Event, LogLine
from reconciler.emulator.runs import Runs, counts
from reconciler.emulator.store import StoredExport
from reconciler.emulator.world import World

MOST_AT_ONCE = 2_000
"""The largest number of runs that one move of the clock makes for an export.

Of scheduled runs, the newest ones; backfills end early.
"""
_WINDOWS = {"hour": 24, "day": 7, "week": 4, "every 5 minutes": 12, "every 15 minutes": 4}
_MARGIN = 50
_PAUSED = (
    "Batch export was automatically paused due to exceeding failure threshold and exhausting all "
    "automated retries.The batch export can be unpaused after addressing any errors."
)
_CANCELLED = "{count} ongoing batch export backfill(s) were cancelled due to the automatic pause"


class Timeline:
    """Applies to exports what is due by the clock."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._store = world.store
        self.runs = Runs(world)
        self.backfills = Backfills(world, self.runs)
        self._auto_pause = AutoPause(world, self.runs, self.backfills)

    @property
    def _jitter(self) -> timedelta:
        return timedelta(seconds=self._world.settings.jitter_seconds)

    def begin(self, export: StoredExport, moment: datetime) -> None:
        """Begin the schedule of an export, or begin it again after a change."""
        due = self.backfills.schedule(export).due_after(moment, self._jitter)
        self._store.set_caught_up(export.id, iso(moment), due)

    def catch_up(self, export: StoredExport) -> None:
        """Apply everything that is due. Call it before anything is read or changed."""
        now = self._world.clock.now()
        since = self._store.caught_up(export.id)
        if since is None:
            return
        due = since.due <= now.timestamp()
        with self._store.transaction():
            self._play(export, self._ticks(export, parsed(since.at), now) if due else deque(), now)
            if due:
                self.begin(export, now)

    def catch_up_all(self) -> None:
        """Apply everything that is due, to every export."""
        with self._store.transaction():
            for identity in self._store.due_exports(self._world.clock.now().timestamp()):
                export = self._store.export(identity)
                if export is not None:
                    self.catch_up(export)

    def _ticks(
        self, export: StoredExport, after: datetime, until: datetime
    ) -> deque[tuple[datetime, datetime]]:
        """Return the intervals whose runs start in a window; none before the creation.

        Bounds of the schedule include the tick: the interval that ends at start_at runs.
        """
        body, jitter = export.body, self._jitter
        first, last = body.get("start_at"), body.get("end_at")
        schedule = self.backfills.schedule(export)
        until = min(until - jitter, parsed(last)) if last is not None else until - jitter
        after = max(after - jitter, parsed(body["created_at"]))
        # Ticks of centuries that are not kept must not be counted one by one.
        if until - after > (MOST_AT_ONCE + 1) * schedule.step:
            after = until - (MOST_AT_ONCE + 1) * schedule.step
        return deque(
            (
                (start, end)
                for start, end in schedule.intervals(after, until)
                if first is None or end >= parsed(first)
            ),
            maxlen=MOST_AT_ONCE,
        )

    def _play(
        self, export: StoredExport, ticks: deque[tuple[datetime, datetime]], now: datetime
    ) -> None:
        """Apply ticks and events in the order of their moments."""
        event = self._store.next_event(export.id, now)
        steps = 0
        begun: list[dict[str, Any]] = []
        while ticks or event is not None:
            due = ticks[0][1] + self._jitter if ticks else None
            if event is None or (due is not None and due <= event.moment):
                runs = self._tick(export, *ticks.popleft())
                begun += runs
                if not any(counts(run) for run in runs):
                    continue
                self._flush(begun)
            else:
                self._flush(begun)
                steps += event.kind == STEP
                self._happen(export, event, last=steps >= MOST_AT_ONCE)
                export = self._store.export(export.id) or export
            event = self._store.next_event(export.id, now)
        self._flush(begun)

    def _flush(self, runs: list[dict[str, Any]]) -> None:
        if runs:
            self.runs.keep(runs)
            runs.clear()

    def _tick(self, export: StoredExport, start: datetime, end: datetime) -> list[dict[str, Any]]:
        """Return the runs of a tick; a paused export skips it for good."""
        interval = Interval(start, end)
        if export.body.get("paused", False):
            return []
        if self._jitter and self.runs.made(export, interval):
            return []
        return self.runs.rows(export, interval, end + self._jitter)

    def _happen(self, export: StoredExport, event: Event, *, last: bool) -> None:
        """Let an event take effect; `last` ends a backfill without its other runs."""
        self._store.drop_event(event.kind, event.subject)
        if event.kind == STEP:
            self.backfills.advance(export, event.subject, event.moment, last=last)
        else:
            self._auto_pause.judge(export, event.subject, event.moment)


class AutoPause:
    """Pauses an export after a failed run if too many failed."""

    def __init__(self, world: World, runs: Runs, backfills: Backfills) -> None:
        self._world = world
        self._store = world.store
        self._runs = runs
        self._backfills = backfills
        self._activity = Activity(world)

    def judge(self, export: StoredExport, run: str, at: datetime) -> None:
        """Pause the export if enough of its last runs failed. `run` is the last failed one."""
        if not self._world.settings.auto_pause or export.body.get("paused", False):
            return
        if self._failures(export, at) < self._world.dialect.failures_to_pause:
            return
        moment = iso(at)
        body = {**export.body, "paused": True, "last_paused_at": moment, "last_updated_at": moment}
        self._store.write_export(export.id, body)
        self._activity.record(export, "updated", [pause_change(paused=True)], None, None, at)
        live = self._store.live_backfills(export.id)
        for backfill in live:
            self._backfills.cancel(backfill, at)
        messages = [_PAUSED] + ([_CANCELLED.format(count=len(live))] if live else [])
        self._store.add_logs(
            export.id, [LogLine(run, at, "WARNING", message) for message in messages]
        )

    def _failures(self, export: StoredExport, at: datetime) -> int:
        """Return how many of the last runs failed by a rule. The last are those updated last."""
        window = self._world.dialect.pause_window or _WINDOWS[export.body["interval"]]
        runs = self._store.runs_created(export.id, at, newest=window + _MARGIN)
        runs.sort(key=lambda run: self._updated(run, at), reverse=True)
        return sum(
            run["by_rule"] and self._runs.state(run, at)[0] == "Failed" for run in runs[:window]
        )

    def _updated(self, run: dict[str, Any], at: datetime) -> datetime:
        return parsed(self._runs.state(run, at)[1] or run["created"])
