"""Backfills: how they begin, run one interval after another, and end; their operations.

Sources: service.md, 1.8 and 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time, timedelta
from datetime import date as calendar_date
from typing import Any
from uuid import uuid4

from starlette.responses import Response

from reconciler.emulator.access import Call, export_of, export_of_list
from reconciler.emulator.answers import (
    JSONAnswer,
    Mark,
    body_of,
    by_creation,
    ordered_page,
    uuid_in,
)
from reconciler.emulator.clock import iso, parsed, stamp
from reconciler.emulator.outcomes import LIVE, MEAN_RECORDS, Interval
from reconciler.emulator.refusal import Refusal, invalid, not_found, server_error
from reconciler.emulator.run_store import STEP, Event
from reconciler.emulator.runs import BETWEEN, Runs
from reconciler.emulator.schedule import DAYS, END_OF_TIME, Schedule, schedule_of, weekday
from reconciler.emulator.store import StoredExport
from reconciler.emulator.world import NEVER, World

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
        return schedule_of(export.body, local=dialect.newest, weekly=not dialect.older)

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
        estimates = self._world.dialect.newest
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
        live = self._store.live_backfills(export.id) if self._world.dialect.real else []
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
        return self._world.dialect.real and parsed(end) < at - _SCHEDULE_KEPT

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
        runs_at = at if self._world.dialect.newest else at + _RUNS_FOLLOW
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
        if self._world.dialect.newest:
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


_PAGE = 50
_WITHOUT_END = ("HTTP", "NoOp")
_SOON = timedelta(seconds=1)


class ExportBackfills:
    """The operations. Each takes a call and returns the answer, or raises Refusal."""

    def __init__(
        self,
        world: World,
        backfills: Backfills,
        shown: Callable[[StoredExport], dict[str, Any]],
    ) -> None:
        self._world = world
        self._store = world.store
        self._backfills = backfills
        self._export_shown = shown

    # Create

    async def created(self, call: Call) -> Response:
        """POST backfill or backfills; the answer depends on the dialect."""
        dialect = self._world.dialect
        if call.organization is not None and dialect.real:
            # This action looks for a team that the organization path does not have (1.10).
            raise server_error()
        export = export_of(call, self._store)
        sent = await body_of(call.request, crash=dialect.real)
        if dialect.newest:
            if sent.get("start_at") is None:
                detail = "Backfilling from the beginning of time is not enabled for this team."
                raise _refused(detail)
            self._check_limit(export)
        start, end = self._range(export, sent)
        backfill = self._backfills.begin_unless_running(export, start, end)
        if backfill is None:
            raise server_error()
        if not dialect.real:
            return JSONAnswer(self._export_shown(export))
        if dialect.newest:
            return JSONAnswer({"backfill_id": backfill["id"]}, status_code=201)
        return JSONAnswer({"backfill_id": backfill["workflow"]})

    def _check_limit(self, export: StoredExport) -> None:
        """Raise Refusal (429) if the project has as many backfills as it may have."""
        count = self._store.count_live_backfills(export.project, self._world.clock.now())
        if count >= self._world.settings.backfill_limit:
            detail = (
                f"This team already has {count} batch export backfills running. "
                "Wait for some to finish or cancel them before creating more."
            )
            raise Refusal(429, "server_error", "too_many_concurrent_backfills", detail)

    def _range(
        self, export: StoredExport, sent: dict[str, Any]
    ) -> tuple[datetime | None, datetime | None]:
        """Return the checked range. Raise Refusal."""
        dialect, now = self._world.dialect, self._world.clock.now()
        start = self._bound(export, sent.get("start_at"))
        end = self._bound(export, sent.get("end_at"))
        if not dialect.real:
            start, end = start or parsed(export.body["created_at"]), end or now
        elif end is None and export.body["destination"]["type"] not in _WITHOUT_END:
            raise server_error()
        if start is not None and end is not None and start >= end:
            order = "must be before" if dialect.newest else "happens after"
            raise _refused(f"The initial backfill datetime 'start_at' {order} 'end_at'")
        if end is not None and end > now + _SOON:
            raise _refused(f"The provided 'end_at' ({end.isoformat()}) is in the future")
        return (start if dialect.newest else self._moved(export, start, end)), end

    def _bound(self, export: StoredExport, value: Any) -> datetime | None:
        """Return a bound in UTC: a date for days and weeks in 2026, else a moment with offset."""
        if value is None:
            return None
        interval = export.body["interval"]
        if self._world.dialect.newest and interval in ("day", "week"):
            return self._date(export, value)
        moment = _iso(value)
        if moment is None:
            raise _refused(f"Input {value} is not a valid ISO formatted datetime.")
        if moment.tzinfo is None:
            raise _refused(f"Input {value} is naive.")
        return moment

    def _date(self, export: StoredExport, value: Any) -> datetime:
        schedule = self._backfills.schedule(export)
        try:
            date = datetime.combine(calendar_date.fromisoformat(value), time())
            tick = schedule.on_date(date)
        except (ValueError, TypeError, OverflowError):
            detail = f"Input '{value}' is not a valid ISO formatted date."
            if _iso(value) is not None:
                detail += (
                    " Daily or weekly batch export backfills expect only the date component, but "
                    "a time was included."
                )
            raise _refused(detail) from None
        if export.body["interval"] == "week" and weekday(date) != schedule.offset_day:
            raise _refused(
                f"Input {value} is not on the correct day of the week for this batch export. "
                f"{value} is a {DAYS[weekday(date)]} but this batch export is configured to run "
                f"weekly on {DAYS[schedule.offset_day]}."
            )
        return tick

    def _moved(
        self, export: StoredExport, start: datetime | None, end: datetime | None
    ) -> datetime | None:
        """Return the start, moved to the first data, as older servers do without an error."""
        data = self._backfills.first_data()
        if data is None or (export.body.get("model") or "events") not in ("events", "persons"):
            return start
        if self._world.settings.first_data_at == NEVER:
            raise _refused("There is no data to backfill for this model.")
        first = self._backfills.schedule(export).align(data)
        if end is not None and end <= first:
            raise _refused(
                "The provided backfill date range contains no data. The earliest possible backfill "
                f"start date is {first.strftime('%Y-%m-%d %H:%M:%S')}."
            )
        return max(start, first) if start is not None else None

    # Read and cancel

    async def listed(self, call: Call) -> Response:
        """GET backfills: cursor pages of 50. For an unknown export the list is empty."""
        export = export_of_list(call, self._store, any_uuid=self._world.dialect.real)
        backfills = self._store.backfills(export, self._world.clock.now())
        shown = [self._backfills.shown(backfill) for backfill in backfills]
        return ordered_page(call.request, shown, _ORDERINGS, size=_PAGE)

    async def retrieved(self, call: Call) -> Response:
        """GET one. A row that is not listed yet is 404."""
        return JSONAnswer(self._backfills.shown(self._named(call)))

    async def cancelled(self, call: Call) -> Response:
        """POST cancel: only while it has not ended."""
        backfill = self._named(call)
        if backfill["status"] not in LIVE:
            raise _refused(f"Cannot cancel a backfill that is in '{backfill['status']}' status")
        with self._store.transaction():
            self._backfills.cancel(backfill, self._world.clock.now())
        return JSONAnswer({"cancelled": True})

    def _named(self, call: Call) -> dict[str, Any]:
        """Return the backfill that the path names. Raise Refusal (404)."""
        export = export_of(call, self._store)
        backfill = self._store.backfill(uuid_in(call.request, "backfill"))
        if backfill is None or backfill["export"] != export.id:
            raise not_found()
        if parsed(backfill["created"]) > self._world.clock.now():
            raise not_found()
        return backfill


def _refused(detail: str) -> Refusal:
    """Return the 400 of a backfill: no field is named."""
    return invalid(None, detail)


def _iso(value: Any) -> datetime | None:
    """Return a moment, in UTC if it has an offset; None for anything else."""
    try:
        moment = datetime.fromisoformat(value)
        return moment if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None


def _by_start(backfill: dict[str, Any]) -> Mark:
    start = backfill["start_at"]
    return stamp(parsed(start)) if start is not None else 0, backfill["id"]


_ORDERINGS = {"created_at": by_creation, "start_at": _by_start}
