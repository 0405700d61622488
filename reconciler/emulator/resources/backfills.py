"""Backfills of an export: their bodies, answers and lists by dialect (service.md, 8)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from datetime import date as calendar_date
from typing import Any

from starlette.responses import Response

from reconciler.emulator.access import Call, export_of, export_of_list
from reconciler.emulator.answers import JSONAnswer, body_of, uuid_in
from reconciler.emulator.backfills import Backfills
from reconciler.emulator.clock import parsed, stamp
from reconciler.emulator.outcomes import LIVE
from reconciler.emulator.refusal import Refusal, invalid, not_found, server_error
from reconciler.emulator.resources.cursor import Mark, by_creation, ordered_page
from reconciler.emulator.resources.runs import ExportRuns
from reconciler.emulator.schedule import DAYS, weekday
from reconciler.emulator.settings import NEVER
from reconciler.emulator.store import StoredExport
from reconciler.emulator.world import World

_PAGE = 50
_WITHOUT_END = ("HTTP", "NoOp")
_SOON = timedelta(seconds=1)


class ExportBackfills:
    """The operations. Each takes a call and returns the answer, or raises Refusal."""

    def __init__(
        self,
        world: World,
        backfills: Backfills,
        runs: ExportRuns,
        shown: Callable[[StoredExport], dict[str, Any]],
    ) -> None:
        self._world = world
        self._store = world.store
        self._backfills = backfills
        self._export_runs = runs
        self._export_shown = shown

    # Create

    async def created(self, call: Call) -> Response:
        """POST backfill or backfills; the answer depends on the dialect."""
        dialect = self._world.dialect
        if call.organization is not None and dialect.crashes:
            # This action looks for a team that the organization path does not have (1.10).
            raise server_error()
        export = export_of(call, self._store)
        sent = await body_of(call.request, crash=dialect.crashes)
        if dialect.integrations:
            if sent.get("start_at") is None:
                detail = "Backfilling from the beginning of time is not enabled for this team."
                raise _refused(detail)
            self._check_limit(export)
        start, end = self._range(export, sent)
        backfill = self._backfills.begin_unless_running(export, start, end)
        if backfill is None:
            raise server_error()
        if not dialect.small_answers:
            return JSONAnswer(self._export_shown(export))
        if dialect.integrations:
            return JSONAnswer({"backfill_id": backfill["id"]}, status_code=201)
        return JSONAnswer({"backfill_id": backfill["workflow"]})

    def _check_limit(self, export: StoredExport) -> None:
        """Raise Refusal (429) if the project has as many backfills as it may have."""
        count = self._store.count_live_backfills(export.project, self._world.clock.now())
        if count >= self._world.settings.backfill_limit:
            raise Refusal(
                429,
                "server_error",
                "too_many_concurrent_backfills",
                f"This team already has {count} batch export backfills running. "
                "Wait for some to finish or cancel them before creating more.",
            )

    def _range(
        self, export: StoredExport, sent: dict[str, Any]
    ) -> tuple[datetime | None, datetime | None]:
        """Return the checked range. Raise Refusal."""
        dialect, now = self._world.dialect, self._world.clock.now()
        start = self._bound(export, sent.get("start_at"))
        end = self._bound(export, sent.get("end_at"))
        if not dialect.crashes:
            start, end = start or parsed(export.body["created_at"]), end or now
        elif end is None and export.body["destination"]["type"] not in _WITHOUT_END:
            raise server_error()
        if start is not None and end is not None and start >= end:
            order = "must be before" if dialect.integrations else "happens after"
            raise _refused(f"The initial backfill datetime 'start_at' {order} 'end_at'")
        if end is not None and end > now + _SOON:
            raise _refused(f"The provided 'end_at' ({end.isoformat()}) is in the future")
        return (start if dialect.integrations else self._moved(export, start, end)), end

    def _bound(self, export: StoredExport, value: Any) -> datetime | None:
        """Return a bound in UTC: a date for days and weeks in 2026, else a moment with offset."""
        if value is None:
            return None
        interval = export.body["interval"]
        if self._world.dialect.integrations and interval in ("day", "week"):
            return self._date(export, value)
        moment = _iso(value)
        if moment is None:
            raise _refused(f"Input {value} is not a valid ISO formatted datetime.")
        if moment.tzinfo is None:
            raise _refused(f"Input {value} is naive.")
        return moment.astimezone(UTC)

    def _date(self, export: StoredExport, value: Any) -> datetime:
        try:
            date = datetime.combine(calendar_date.fromisoformat(value), time())
        except (ValueError, TypeError):
            detail = f"Input '{value}' is not a valid ISO formatted date."
            if _iso(value) is not None:
                detail += (
                    " Daily or weekly batch export backfills expect only the date component, but "
                    "a time was included."
                )
            raise _refused(detail) from None
        schedule = self._backfills.schedule(export)
        if export.body["interval"] == "week" and weekday(date) != schedule.offset_day:
            raise _refused(
                f"Input {value} is not on the correct day of the week for this batch export. "
                f"{value} is a {DAYS[weekday(date)]} but this batch export is configured to run "
                f"weekly on {DAYS[schedule.offset_day]}."
            )
        return schedule.on_date(date)

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

    async def retried(self, call: Call) -> Response:
        """POST retry: a backfill of the run's interval. The answer names its workflow."""
        export, run = export_of(call, self._store), self._export_runs.named(call)
        start = parsed(run["start"]) if run["start"] is not None else None
        backfill = self._backfills.begin_unless_running(export, start, parsed(run["end"]))
        if backfill is None:
            raise server_error()
        status = 201 if self._world.dialect.integrations else 200
        return JSONAnswer({"backfill_id": backfill["workflow"]}, status_code=status)

    # Read and cancel

    async def listed(self, call: Call) -> Response:
        """GET backfills: cursor pages of 50. For an unknown export the list is empty."""
        export = export_of_list(call, self._store, any_uuid=self._world.dialect.crashes)
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
    try:
        return datetime.fromisoformat(value)
    except (ValueError, TypeError):
        return None


def _by_start(backfill: dict[str, Any]) -> Mark:
    start = backfill["start_at"]
    return stamp(parsed(start)) if start is not None else 0, backfill["id"]


_ORDERINGS = {"created_at": by_creation, "start_at": _by_start}
