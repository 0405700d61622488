"""Backfills: how they begin, run one interval after another, and end (service.md, 8)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.outcomes import LIVE, MEAN_RECORDS, Interval
from reconciler.emulator.run_store import STEP, Event
from reconciler.emulator.runs import BETWEEN, Runs
from reconciler.emulator.schedule import END_OF_TIME, Schedule, schedule_of
from reconciler.emulator.settings import NEVER
from reconciler.emulator.store import StoredExport
from reconciler.emulator.world import World

_COUNTED_MODELS = ("events", "persons", "sessions")
_SCHEDULE_KEPT = timedelta(days=7)
_RUNS_FOLLOW = timedelta(seconds=10)


class Backfills:
    """Begins, advances, cancels and shows backfills."""

    def __init__(self, world: World, runs: Runs) -> None:
        self._world = world
        self._store = world.store
        self._runs = runs

    def schedule(self, export: StoredExport) -> Schedule:
        """Return the schedule of an export in this dialect."""
        dialect = self._world.dialect
        return schedule_of(export.body, local=dialect.integrations, weekly=dialect.weekly_runs)

    def first_data(self) -> datetime | None:
        """Return when the data begins; None for before every range, the end of time for never."""
        value = self._world.settings.first_data_at
        if value is None:
            return None
        return END_OF_TIME if value == NEVER else parsed(value)

    # Begin

    def begin(
        self, export: StoredExport, start: datetime | None, end: datetime | None
    ) -> dict[str, Any]:
        """Begin a backfill now and return it as it is stored.

        No start means the beginning of the data, no end the present.
        """
        now, settings = self._world.clock.now(), self._world.settings
        estimates = self._world.dialect.integrations
        delay = settings.backfill_row_delay_seconds if estimates else 0
        created = now + timedelta(seconds=delay)
        backfill: dict[str, Any] = {
            "id": str(uuid4()),
            "export": export.id,
            "project": export.project,
            "workflow": workflow_id(export, start, end),
            "start": iso(start) if start is not None else None,
            "end": iso(end) if end is not None else None,
            "created": iso(created),
            "updated": iso(created),
            "finished": None,
            "status": "Starting" if estimates else "Running",
            "first": iso(start) if start is not None else None,
            "adjusted": None,
            "count": None,
            "step": 0,
            "current": None,
        }
        estimate = settings.backfill_estimate_seconds if estimates else 0
        self._continue(backfill, created + timedelta(seconds=estimate))
        self._store.write_backfill(backfill, live=True)
        return backfill

    def begin_unless_running(
        self, export: StoredExport, start: datetime | None, end: datetime | None
    ) -> dict[str, Any] | None:
        """Return a new backfill, or None where the server crashes: the same range still runs."""
        workflow = workflow_id(export, start, end)
        live = self._store.live_backfills(export.id) if self._world.dialect.crashes else []
        if any(backfill["workflow"] == workflow for backfill in live):
            return None
        return self.begin(export, start, end)

    # Advance

    def advance(self, export: StoredExport, identity: str, at: datetime, *, last: bool) -> None:
        """Take the step that is due: estimate, begin the next run, or end, at once if `last`."""
        backfill = self._store.backfill(identity)
        if backfill is None or backfill["status"] not in LIVE:
            return
        if self._schedule_is_deleted(export, at):
            self._end(backfill, "Failed", at)
            return
        if backfill["status"] == "Starting":
            self._estimate(export, backfill)
            backfill |= {"status": "Running", "updated": iso(at)}
            if backfill["count"] == 0:
                self._end(backfill, "Completed", at)
                return
        interval = None if last else self._next(export, backfill, at)
        if interval is None:
            self._complete(backfill, at)
            return
        run = self._attached(export, interval, at) or self._run(export, interval, at)
        backfill |= {"step": backfill["step"] + 1, "current": run["id"]}
        if run["finished"] is not None:
            self._continue(backfill, max(at, parsed(run["finished"])) + BETWEEN)
        self._store.write_backfill(backfill, live=True)

    def _continue(self, backfill: Mapping[str, Any], at: datetime) -> None:
        self._store.add_event(backfill["export"], Event(STEP, backfill["id"], at))

    def _schedule_is_deleted(self, export: StoredExport, at: datetime) -> bool:
        """Return whether the engine deleted the schedule, a week after end_at unless paused."""
        end = export.body.get("end_at")
        if end is None or export.body.get("paused", False):
            return False
        return self._world.dialect.crashes and parsed(end) < at - _SCHEDULE_KEPT

    def _estimate(self, export: StoredExport, backfill: dict[str, Any]) -> None:
        """Look for the first row in the range, and count. Queries are not estimated."""
        start, end = _moments(backfill)
        if (export.body.get("model") or "events") not in _COUNTED_MODELS or start is None:
            return
        schedule = self.schedule(export)
        data = self.first_data() or start
        last = end or parsed(backfill["created"])
        if data >= last:
            backfill["count"] = 0
            return
        adjusted = schedule.align(max(data, start))
        first = max(start, adjusted)
        backfill["adjusted"] = iso(adjusted)
        backfill["first"] = iso(first)
        backfill["count"] = MEAN_RECORDS * schedule.whole_steps(first, last) or None

    def _next(
        self, export: StoredExport, backfill: Mapping[str, Any], at: datetime
    ) -> Interval | None:
        """Return the next interval, None when no whole one is left."""
        _, end = _moments(backfill)
        limit, step = end or at, backfill["step"]
        schedule = self.schedule(export)
        if not schedule.works:
            return None
        if backfill["first"] is None:
            return Interval(None, limit, backfill["id"]) if step == 0 else None
        first = parsed(backfill["first"])
        start, stop = schedule.plus(first, step), schedule.plus(first, step + 1)
        return Interval(start, stop, backfill["id"]) if stop <= limit else None

    def _run(self, export: StoredExport, interval: Interval, at: datetime) -> dict[str, Any]:
        """Begin the runs of an interval and return the last."""
        runs = self._runs.rows(export, interval, at)
        self._runs.keep(runs)
        return runs[-1]

    def _attached(
        self, export: StoredExport, interval: Interval, at: datetime
    ) -> dict[str, Any] | None:
        """Return a run of the interval that still executes: the backfill waits for it."""
        runs = self._store.runs_ending(export.id, interval.end)
        return next((run for run in runs if self._runs.live(run, at)), None)

    # End

    def _complete(self, backfill: dict[str, Any], at: datetime) -> None:
        runs = self._store.runs_of_backfill(backfill["id"])
        completed = [run for run in runs if self._runs.state(run, at)[0] == "Completed"]
        backfill["count"] = sum(run["records"] for run in completed) if runs else None
        self._end(backfill, "Completed", at)

    def _end(self, backfill: dict[str, Any], status: str, at: datetime) -> None:
        ended = {**backfill, "status": status, "updated": iso(at), "finished": iso(at)}
        self._store.write_backfill(ended, live=False)
        self._store.drop_event(STEP, backfill["id"])

    def cancel(self, backfill: dict[str, Any], at: datetime) -> None:
        """Cancel a backfill and its runs; older servers cancel the runs a little later."""
        self._end(backfill, "Cancelled", at)
        runs_at = at if self._world.dialect.integrations else at + _RUNS_FOLLOW
        for run in self._store.runs_of_backfill(backfill["id"]):
            if self._runs.live(run, at):
                self._runs.cancel(run, runs_at)

    # Answers

    def shown(self, backfill: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer for a backfill."""
        answer: dict[str, Any] = {
            "id": backfill["id"],
            "team": backfill["project"],
            "batch_export": backfill["export"],
            "start_at": backfill["start"],
            "end_at": backfill["end"],
            "status": backfill["status"],
            "created_at": backfill["created"],
            "finished_at": backfill["finished"],
            "last_updated_at": backfill["updated"],
            "progress": self._progress(backfill),
        }
        if self._world.dialect.integrations:
            answer["total_records_count"] = backfill["count"]
            answer["adjusted_start_at"] = backfill["adjusted"]
        return answer

    def _progress(self, backfill: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return how far it is; None where that is unknown (service.md, 8.3)."""
        total = self._total(backfill)
        if total is None:
            return None
        if backfill["status"] == "Completed":
            return {"total_runs": total, "finished_runs": total, "progress": 1.0}
        if backfill["status"] not in LIVE or total == 0 or backfill["start"] is None:
            return None
        now = self._world.clock.now()
        states = [
            self._runs.state(run, now)[0] for run in self._store.runs_of_backfill(backfill["id"])
        ]
        finished = sum(state in ("Completed", "Failed") for state in states)
        total = max(total, finished)
        return {
            "total_runs": total,
            "finished_runs": finished,
            "progress": round(finished / total, 1),
        }

    def _total(self, backfill: Mapping[str, Any]) -> int | None:
        """Return the expected number of runs, by the length of the range."""
        if backfill["start"] is None:
            return 1
        if backfill["count"] == 0:
            return 0
        export = self._store.export(backfill["export"])
        if export is None or backfill["end"] is None:
            return None
        first, end = parsed(backfill["adjusted"] or backfill["start"]), parsed(backfill["end"])
        return -((first - end) // self.schedule(export).step)


def workflow_id(export: StoredExport, start: datetime | None, end: datetime | None) -> str:
    """Return the workflow engine's id of a backfill."""
    return f"{export.id}-Backfill-{_part(start, 'START')}-{_part(end, 'END')}"


def _part(moment: datetime | None, without: str) -> str:
    return without if moment is None else iso(moment).replace("Z", "+00:00")


def _moments(backfill: Mapping[str, Any]) -> tuple[datetime | None, datetime | None]:
    start, end = backfill["start"], backfill["end"]
    return (
        parsed(start) if start is not None else None,
        parsed(end) if end is not None else None,
    )
