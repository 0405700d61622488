"""Runs: how they are made, their state, and their operations (service.md, 2 and 7).

A run is stored with its future end. Its state at a moment follows from the clock.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.access import Call, export_of, export_of_list
from reconciler.emulator.answers import (
    JSONAnswer,
    Mark,
    by_creation,
    ordered_page,
    ordering_of,
    uuid_in,
)
from reconciler.emulator.clock import iso, parsed, stamp
from reconciler.emulator.fields import choice
from reconciler.emulator.outcomes import LIVE, STATUSES, Interval, Outcome, outcomes_of
from reconciler.emulator.refusal import invalid, not_found
from reconciler.emulator.run_store import FAILED, STEP, Event, LogLine
from reconciler.emulator.store import StoredExport
from reconciler.emulator.world import World

_NAMESPACE = UUID("3f1c6b1e-58a5-4f0b-9f6b-6a4b8c8f0d11")
_STARTING = timedelta(seconds=2)
_MAIL_PAUSE = timedelta(days=1)
_BYTES = 100
BETWEEN = timedelta(seconds=1)
"""From the end of a run of a backfill to its next one."""
_NO_QUOTA = "Batch export run failed due to exceeding billing limits. No data has been exported."
SHOWN = 10
"""Runs that an export carries in its answers."""


class Runs:
    """Makes, shows and cancels runs."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._store = world.store

    def rows(
        self, export: StoredExport, interval: Interval, begun: datetime
    ) -> list[dict[str, Any]]:
        """Return the runs of an interval that begins: one, or several by an outcome rule."""
        outcomes = outcomes_of(self._world.outcomes, self._world.seed, export, interval)
        rows: list[dict[str, Any]] = []
        for outcome in outcomes:
            run = self._row(export, interval, outcome, begun, len(rows))
            rows.append(run)
            begun = parsed(run["finished"] or run["created"]) + timedelta(seconds=1)
        return rows

    def keep(self, runs: Sequence[dict[str, Any]]) -> None:
        """Store runs, and the effects of their failures: a mail, perhaps a pause."""
        self._store.add_runs(runs)
        for run in runs:
            if run["status"] == "Failed":
                self._mail(run)
            if counts(run):
                event = Event(FAILED, run["id"], parsed(run["finished"]))
                self._store.add_event(run["batch_export"], event)

    def _row(
        self,
        export: StoredExport,
        interval: Interval,
        outcome: Outcome,
        begun: datetime,
        position: int,
    ) -> dict[str, Any]:
        created = begun + timedelta(seconds=outcome.delay if interval.backfill is None else 0)
        stays = outcome.status in LIVE
        finished = None if stays else iso(created + timedelta(seconds=outcome.seconds))
        return {
            "id": self._identity(export, interval, position),
            "batch_export": export.id,
            "status": outcome.status,
            "records": outcome.records,
            "error": outcome.error,
            "by_rule": outcome.by_rule,
            "start": iso(interval.start) if interval.start is not None else None,
            "end": iso(interval.end),
            "created": iso(created),
            "finished": finished,
            "backfill": interval.backfill,
            "cancelled": None,
        }

    def _identity(self, export: StoredExport, interval: Interval, position: int = 0) -> str:
        start = iso(interval.start) if interval.start is not None else ""
        key = f"{self._world.seed}/{export.id}/{start}/{iso(interval.end)}/{interval.backfill}"
        return str(uuid5(_NAMESPACE, f"{key}/{position}"))

    def made(self, export: StoredExport, interval: Interval) -> bool:
        """Return whether the interval was run by the schedule already."""
        return self._store.run(export.id, self._identity(export, interval)) is not None

    # State

    def state(self, run: Mapping[str, Any], now: datetime) -> tuple[str, str | None]:
        """Return the status of a run and when it ended, None while it has not."""
        finished, cancelled = run["finished"], run["cancelled"]
        if cancelled is not None and parsed(cancelled) <= now:
            return "Cancelled", cancelled
        if finished is not None and parsed(finished) <= now:
            return run["status"], finished
        if run["status"] == "Starting" or now < parsed(run["created"]) + _STARTING:
            return "Starting", None
        return "Running", None

    def live(self, run: Mapping[str, Any], now: datetime) -> bool:
        """Return whether a run has not ended."""
        return self.state(run, now)[1] is None

    def cancel(self, run: Mapping[str, Any], at: datetime) -> None:
        """Cancel a run at a moment, unless it ends earlier. Backfills that wait for it continue."""
        if run["finished"] is not None and parsed(run["finished"]) <= at:
            return
        if parsed(run["created"]) > at:
            self._store.drop_run(run["id"])
            return
        self._store.add_runs([{**run, "cancelled": iso(at)}])
        self._store.drop_event(FAILED, run["id"])
        self._store.drop_logs(run["id"], at)
        for backfill in self._store.live_backfills(run["batch_export"]):
            if backfill["current"] == run["id"]:
                event = Event(STEP, backfill["id"], at + BETWEEN)
                self._store.add_event(run["batch_export"], event)

    # Answers

    def shown(self, run: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer for a run as it is now."""
        status, finished = self.state(run, self._world.clock.now())
        done = finished is not None
        # The oldest servers with this status leave the end open (service.md, 7.1).
        hidden = status == "FailedBilling" and not self._world.dialect.newest
        records = _records(run, status)
        answer: dict[str, Any] = {
            "id": run["id"],
            "status": status,
            "records_completed": records,
            "latest_error": run["error"] if done and not hidden and status != "Cancelled" else None,
            "data_interval_start": run["start"],
            "data_interval_end": run["end"],
            "cursor": None,
            "created_at": run["created"],
            "finished_at": finished if not hidden else None,
            "last_updated_at": finished or run["created"],
            "records_total_count": None,
            "batch_export": run["batch_export"],
        }
        if self._world.dialect.real:
            answer["backfill"] = run["backfill"]
            answer["bytes_exported"] = records * _BYTES if records is not None else None
        if self._world.dialect.newest:
            answer |= {"records_failed": 0 if done else None, "batch_export_on_demand": None}
        return answer

    def latest(self, exports: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
        """Return the latest runs of each export as they are answered, in one query."""
        latest: dict[str, list[dict[str, Any]]] = {export: [] for export in exports}
        for run in self._store.latest_runs(exports, self._world.clock.now(), SHOWN):
            latest[run["batch_export"]].append(self.shown(run))
        return latest

    # Logs

    def lines(self, export: str, now: datetime) -> list[LogLine]:
        """Return what an export has logged, newest first."""
        lines = self._store.logs(export, now)
        for run in self._store.runs_created(export, now):
            lines += [line for line in self._lines(run, now) if line.moment <= now]
        lines.sort(key=lambda line: line.moment, reverse=True)
        return lines

    def _lines(self, run: Mapping[str, Any], now: datetime) -> Iterator[LogLine]:
        """Yield what a run logs about itself, latest first."""
        identity, created = run["id"], parsed(run["created"])
        status, finished = self.state(run, now)
        if finished is not None:
            level, message = _ending(run, status)
            yield LogLine(identity, parsed(finished), level, message)
        if status != "FailedBilling":
            span = _span(run)
            second = created + timedelta(seconds=1)
            yield LogLine(identity, second, "INFO", f"Exporting data for range {span}")
            yield LogLine(identity, created, "DEBUG", f"Starting batch export run for range {span}")

    def _mail(self, run: Mapping[str, Any]) -> None:
        """Log the mail about a failure: an export sends at most one a day."""
        moment, export = parsed(run["finished"]), run["batch_export"]
        pattern = "Failure notification email%"
        if self._store.logged_between(export, pattern, moment - _MAIL_PAUSE, moment + _MAIL_PAUSE):
            return
        message = f"Failure notification email for run '{run['id']}' has been sent"
        line = LogLine(run["id"], moment + timedelta(microseconds=1), "INFO", message)
        self._store.add_logs(export, [line])

    def instance(self, run: str) -> str:
        """Return the workflow engine's id of a run, which its log lines carry."""
        return str(uuid5(_NAMESPACE, f"instance/{run}"))


def _records(run: Mapping[str, Any], status: str) -> int | None:
    if status in (*LIVE, "Cancelled"):
        return None
    return int(run["records"]) if status == "Completed" else 0


def _span(run: Mapping[str, Any]) -> str:
    start = parsed(run["start"]).isoformat() if run["start"] is not None else None
    return f"{start} - {parsed(run['end']).isoformat()}"


def _range(run: Mapping[str, Any]) -> str:
    return f"Batch export for range {_span(run)}"


def _ending(run: Mapping[str, Any], status: str) -> tuple[str, str]:
    """Return level and message of the line at the end of a run."""
    match status:
        case "Completed":
            records = run["records"]
            return "INFO", f"{_range(run)} finished successfully with {records} records exported"
        case "Failed":
            return "ERROR", f"{_range(run)} failed with a non-recoverable error: {run['error']}"
        case "Cancelled":
            return "WARNING", f"{_range(run)} was cancelled"
        case "FailedBilling":
            return "WARNING", _NO_QUOTA
        case _:
            return "ERROR", f"{_range(run)} failed: {run['error']}"


def counts(run: Mapping[str, Any]) -> bool:
    """Return whether the failure of a run counts towards an automatic pause."""
    return bool(run["by_rule"] and run["status"] == "Failed")


_PAGE = 100
_RELATIVE = re.compile(r"-(\d{1,6})([ymwdhM])$")
_UNITS = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "M": timedelta(minutes=1),
}


class ExportRuns:
    """The operations. Each takes a call and returns the answer, or raises Refusal."""

    def __init__(self, world: World, runs: Runs) -> None:
        self._world = world
        self._store = world.store
        self._runs = runs

    async def listed(self, call: Call) -> Response:
        """GET runs: cursor pages, newest first unless ordered otherwise."""
        now = self._world.clock.now()
        export = export_of_list(call, self._store, any_uuid=self._world.dialect.real)
        runs = [
            run
            for run in self._store.runs_created(export, now)
            if self._within_window(call, run, now)
        ]
        shown = self._with_status(call.request, [self._runs.shown(run) for run in runs])
        return ordered_page(call.request, shown, _ORDERINGS, size=_PAGE)

    def _with_status(self, request: Request, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the runs in the wanted statuses; older servers ignore the parameter."""
        wanted = request.query_params.getlist("status")
        if not wanted or not self._world.dialect.newest:
            return runs
        check = choice(*STATUSES)
        for position, status in enumerate(wanted):
            check(f"status__{position}", status)
        return [run for run in runs if run["status"] in wanted]

    def _within_window(self, call: Call, run: dict[str, Any], now: datetime) -> bool:
        """Return whether the run is in the window: the last days unless the request names one.

        An ordering by interval has a window of its own. Runs without a start are outside of it.
        """
        by_interval = "interval" in ordering_of(call.request, _ORDERINGS)
        names = ("start", "end") if by_interval else ("after", "before")
        zone = str(call.project.body.get("timezone") or "UTC") if call.project else "UTC"
        first, last = (_moment_of(call.request.query_params.get(name), now, zone) for name in names)
        if first is None and self._world.dialect.window_days is not None:
            first = now - timedelta(days=self._world.dialect.window_days)
        start, end = (run["start"], run["end"]) if by_interval else (run["created"],) * 2
        return (
            start is not None
            and (first is None or parsed(start) >= first)
            and parsed(end) <= (last or now)
        )

    def named(self, call: Call) -> dict[str, Any]:
        """Return the stored run that the path names. The window holds here, too (2)."""
        now, export = self._world.clock.now(), export_of(call, self._store)
        run = self._store.run(export.id, uuid_in(call.request, "run"))
        if run is None or parsed(run["created"]) > now or not self._within_window(call, run, now):
            raise not_found()
        return run

    async def retrieved(self, call: Call) -> Response:
        """GET one run."""
        return JSONAnswer(self._runs.shown(self.named(call)))

    async def cancelled(self, call: Call) -> Response:
        """POST cancel: only while the run has not ended."""
        run = self.named(call)
        now = self._world.clock.now()
        status, ended = self._runs.state(run, now)
        if ended is not None:
            raise invalid(None, f"Cannot cancel a run that is in '{status}' status")
        self._runs.cancel(run, now)
        return JSONAnswer({"cancelled": True})


def _moment_of(text: str | None, now: datetime, zone: str) -> datetime | None:
    """Return the moment of a parameter, None for a parameter that is not there (service.md, 7).

    `-7d`, `-2w`, `-1y`, `-24h` go back from now; `-1m` is a month, `-30M` are minutes. A naive
    time is one of the zone. What cannot be read is now, without an error.
    """
    if text is None:
        return None
    relative = _RELATIVE.match(text)
    try:
        if relative is not None:
            return _before(now, int(relative[1]), relative[2])
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return now
    return moment.replace(tzinfo=ZoneInfo(zone)) if moment.tzinfo is None else moment


def _before(now: datetime, number: int, unit: str) -> datetime:
    """Return the moment some units ago. Raise OverflowError or ValueError before year 1."""
    if unit in _UNITS:
        return now - number * _UNITS[unit]
    months = now.year * 12 + now.month - 1 - number * (12 if unit == "y" else 1)
    year, month = divmod(months, 12)
    day = min(now.day, monthrange(year, month + 1)[1])
    return now.replace(year=year, month=month + 1, day=day)


def _by_interval(run: dict[str, Any]) -> Mark:
    return stamp(parsed(run["data_interval_start"])), run["id"]


_ORDERINGS = {"created_at": by_creation, "data_interval_start": _by_interval}
