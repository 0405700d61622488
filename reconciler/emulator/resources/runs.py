"""Runs, logs and backfills of an export: on the project path only (service-facts 2, 3, 1.8)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.access import Call
from reconciler.emulator.answers import JSONAnswer, body_of, link, page
from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.refusal import (
    Refusal,
    invalid,
    not_found,
    server_error,
)
from reconciler.emulator.resources.batch_exports import BatchExports
from reconciler.emulator.runs import Runs
from reconciler.emulator.store import StoredExport
from reconciler.emulator.world import World

_PAGE = 100
_BACKFILL_PAGE = 50
_ORDERINGS = ("created_at", "-created_at", "data_interval_start", "-data_interval_start")
_RELATIVE = re.compile(r"-(\d+)([dhm])$")
_UNITS = {"d": "days", "h": "hours", "m": "minutes"}
_LIVE = ("Starting", "Running")
_STATUSES = (
    *("Starting", "Running", "Completed", "Failed", "FailedRetryable", "FailedBilling"),
    *("Cancelled", "Terminated", "TimedOut", "ContinuedAsNew"),
)
MOST_BACKFILLS = 5
"""Backfills at work at a time in one project; the real number was not found (1.8)."""


class ExportRuns:
    """The operations. Each takes the request and answers, or raises Refusal."""

    def __init__(self, world: World, exports: BatchExports, runs: Runs) -> None:
        self._world = world
        self._store = world.store
        self._exports = exports
        self._runs = runs

    def _export(self, call: Call) -> StoredExport:
        if call.organization is not None:
            raise server_error()
        return self._exports.named(call)

    async def listed(self, call: Call) -> Response:
        """GET runs: cursor pages, newest first unless ordered otherwise."""
        export = self._export(call)
        ordering = call.request.query_params.get("ordering", "-created_at")
        ordering = ordering if ordering in _ORDERINGS else "-created_at"
        found = self._visible(call.request, export, by_interval="interval" in ordering)
        wanted = call.request.query_params.getlist("status")
        if wanted and self._world.dialect.integrations:
            unknown = [each for each in wanted if each not in _STATUSES]
            if unknown:
                raise invalid("status", "invalid_choice", f"{unknown[0]} is not a status.")
            found = [each for each in found if each["status"] in wanted]
        key = "data_interval_start" if "interval" in ordering else "created_at"
        found.sort(key=lambda each: (each[key], each["id"]), reverse=ordering.startswith("-"))
        return _cursor_page(call.request, found, _PAGE)

    def _visible(
        self, request: Request, export: StoredExport, *, by_interval: bool
    ) -> list[dict[str, Any]]:
        """Runs inside the window, which is the last days unless the request says otherwise."""
        now = self._world.clock.now()
        names = ("start", "end") if by_interval else ("after", "before")
        first, last = (_moment(request.query_params.get(name), name, now) for name in names)
        window = self._world.dialect.window_days
        if first is None and window is not None:
            first = now - timedelta(days=window)
        key = "data_interval_start" if by_interval else "created_at"
        shown = [self._runs.shown(each) for each in self._store.runs(export.id)]
        return [
            each
            for each in shown
            if parsed(each["created_at"]) <= now
            and (first is None or parsed(each[key]) >= first)
            and (last is None or parsed(each[key]) <= last)
        ]

    def _run(self, request: Request, export: StoredExport) -> dict[str, Any]:
        """The stored run that the path names. The window holds for a single run too (2)."""
        try:
            identity = str(UUID(request.path_params["run"]))
        except ValueError:
            raise not_found() from None
        visible = {each["id"] for each in self._visible(request, export, by_interval=False)}
        run = self._store.run(export.id, identity)
        if run is None or identity not in visible:
            raise not_found()
        return run

    async def retrieved(self, call: Call) -> Response:
        """GET one run."""
        export = self._export(call)
        return JSONAnswer(self._runs.shown(self._run(call.request, export)))

    async def retried(self, call: Call) -> Response:
        """POST retry: a backfill of the run's interval."""
        export = self._export(call)
        run = self._run(call.request, export)
        created = 201 if self._world.dialect.integrations else 200
        identity = self._begin(export, parsed(run["start"]), parsed(run["end"]))
        return JSONAnswer({"backfill_id": identity}, status_code=created)

    async def cancelled(self, call: Call) -> Response:
        """POST cancel: only while it runs."""
        export = self._export(call)
        run = self._run(call.request, export)
        if self._runs.shown(run)["status"] not in _LIVE:
            raise invalid(None, "invalid_input", "Cannot cancel a run that is not running.")
        self._store.add_runs([{**run, "cancelled": iso(self._world.clock.now())}])
        return JSONAnswer({"cancelled": True})

    # Logs

    async def export_logs(self, call: Call) -> Response:
        """GET the logs of an export, newest first."""
        export = self._export(call)
        runs = self._store.runs(export.id, newest=200)
        return self._log_page(call.request, export, runs)

    async def run_logs(self, call: Call) -> Response:
        """GET the logs of a run; broken in both real servers (3)."""
        export = self._export(call)
        run = self._run(call.request, export)
        match self._world.dialect.run_logs:
            case "crash":
                raise server_error()
            case "empty":
                return self._log_page(call.request, export, [])
            case _:
                return self._log_page(call.request, export, [run])

    def _log_page(
        self, request: Request, export: StoredExport, runs: Sequence[dict[str, Any]]
    ) -> Response:
        now = self._world.clock.now()
        query = request.query_params
        entries = [each for run in runs for each in self._runs.logs(run, export.project)]
        entries.sort(key=lambda each: each["timestamp"], reverse=True)
        old = self._world.dialect.log_style == "old"
        levels = {each.upper() for each in query.getlist("level_filter" if old else "level")}
        after, before = (_moment(query.get(name), name, now) for name in ("after", "before"))
        entries = [
            each
            for each in entries
            if (not levels or each["level"] in levels)
            and (after is None or parsed(each["timestamp"]) > after)
            and (before is None or parsed(each["timestamp"]) < before)
            and query.get("search", "").lower() in each["message"].lower()
            and query.get("instance_id", each.get("instance_id")) == each.get("instance_id")
        ]
        if not old:
            # The store is asked for `limit` rows first: offset never reaches further (3).
            entries = entries[: _log_limit(query.get("limit"))]
        return page(request, len(entries), lambda limit, offset: entries[offset : offset + limit])

    # Backfills

    async def backfilled(self, call: Call) -> Response:
        """POST backfill or backfills: two addresses, two answers (1.8)."""
        export = self._export(call)
        sent = await body_of(call.request)
        start, end = self._range(export, sent)
        identity = self._begin(export, start, end)
        if not self._world.dialect.small_answers:
            return JSONAnswer(self._exports.fields.shown(export))
        if self._world.dialect.integrations:
            return JSONAnswer({"backfill_id": identity}, status_code=201)
        return JSONAnswer({"backfill_id": f"{export.id}-Backfill-{iso(start)}-{iso(end)}"})

    def _range(self, export: StoredExport, sent: dict[str, Any]) -> tuple[datetime, datetime]:
        now = self._world.clock.now()
        lenient = self._world.dialect.name == "interface"
        start = self._bound(export, sent.get("start_at"), "start_at")
        end = self._bound(export, sent.get("end_at"), "end_at")
        if start is None:
            if self._world.dialect.integrations:
                raise invalid("start_at", "required", "start_at is required.")
            start = parsed(export.body["created_at"])
        if end is None:
            type_name = export.body["destination"]["type"]
            if not lenient and type_name not in ("HTTP", "NoOp"):
                raise server_error()
            end = now
        if start >= end:
            raise invalid(None, "invalid_input", "The initial backfill datetime must be earlier.")
        if end > now + timedelta(seconds=1):
            raise invalid(None, "invalid_input", "The end of a backfill can't be in the future.")
        return start, end

    def _bound(self, export: StoredExport, value: Any, name: str) -> datetime | None:
        """Dates only for days and weeks in 2026; else a moment with an offset."""
        if value is None:
            return None
        wrong = invalid(name, "invalid_input", f"Input {value} is not a valid {name}.")
        if not isinstance(value, str):
            raise wrong
        by_date = self._world.dialect.integrations and export.body["interval"] in ("day", "week")
        if by_date and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
            raise wrong
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise wrong from None
        if by_date:
            if export.body["interval"] == "week" and (moment.weekday() + 1) % 7 != (
                export.body.get("offset_day") or 0
            ):
                raise wrong
            return parsed(value)
        if moment.tzinfo is None:
            raise wrong
        return moment

    def _begin(self, export: StoredExport, start: datetime, end: datetime) -> str:
        if self._world.dialect.integrations:
            self._check_concurrency(export)
        now = self._world.clock.now()
        identity = str(uuid4())
        runs = self._runs.backfilled(export, identity, start, end)
        with self._store.transaction():
            self._store.add_runs(runs)
            self._store.add_backfill(
                {
                    "id": identity,
                    "export": export.id,
                    "start": iso(start),
                    "end": iso(end),
                    "created": iso(now),
                    "runs": [each["id"] for each in runs],
                    "cancelled": None,
                }
            )
        return identity

    def _check_concurrency(self, export: StoredExport) -> None:
        busy = [
            each
            for each in self._store.backfills(export.id)
            if self._backfill(each)["status"] in _LIVE
        ]
        if len(busy) >= MOST_BACKFILLS:
            raise Refusal(
                429,
                "server_error",
                "too_many_concurrent_backfills",
                "Too many backfills are running for this project.",
            )

    async def backfills(self, call: Call) -> Response:
        """GET backfills: cursor pages of 50."""
        export = self._export(call)
        found = [self._backfill(each) for each in self._store.backfills(export.id)]
        return _cursor_page(call.request, found, _BACKFILL_PAGE)

    async def backfill_cancelled(self, call: Call) -> Response:
        """POST cancel of a backfill."""
        export = self._export(call)
        wanted = call.request.path_params["backfill"]
        for each in self._store.backfills(export.id):
            if each["id"] == wanted:
                if self._backfill(each)["status"] not in _LIVE:
                    raise invalid(None, "invalid_input", "Cannot cancel: it is not running.")
                moment = iso(self._world.clock.now())
                self._store.add_backfill({**each, "cancelled": moment})
                return JSONAnswer({"cancelled": True})
        raise not_found()

    def _backfill(self, each: dict[str, Any]) -> dict[str, Any]:
        runs = [
            self._runs.shown(run)
            for identity in each["runs"]
            if (run := self._store.run(each["export"], identity)) is not None
        ]
        ended = [run for run in runs if run["finished_at"] is not None]
        status = "Completed" if len(ended) == len(runs) else "Running"
        status = "Cancelled" if each["cancelled"] is not None else status
        done = status != "Running"
        export = self._store.export(each["export"])
        return {
            "id": each["id"],
            "team": export.project if export is not None else None,
            "batch_export": each["export"],
            "start_at": each["start"],
            "end_at": each["end"],
            "status": status,
            "created_at": each["created"],
            "finished_at": max((run["finished_at"] for run in ended), default=None)
            if done
            else None,
            "last_updated_at": each["cancelled"] or each["created"],
            "total_records_count": sum(run["records_completed"] or 0 for run in ended),
            "adjusted_start_at": None,
            "progress": {
                "total_runs": len(runs),
                "finished_runs": len(ended),
                "progress": len(ended) / len(runs) if runs else 1.0,
            },
        }


def _log_limit(text: str | None) -> int:
    if text is None:
        return 50
    if not text.isdigit() or not 1 <= int(text) <= 500:
        raise invalid("limit", "invalid_input", "limit must be between 1 and 500.")
    return int(text)


def _moment(text: str | None, name: str, now: datetime) -> datetime | None:
    """An ISO moment or a relative one such as -2d."""
    if text is None:
        return None
    relative = _RELATIVE.match(text)
    if relative is not None:
        return now - timedelta(**{_UNITS[relative[2]]: min(int(relative[1]), 100_000)})
    try:
        return parsed(text)
    except ValueError:
        raise invalid(name, "invalid_input", f"'{text}' is not a date.") from None


def _cursor_page(request: Request, found: Sequence[dict[str, Any]], size: int) -> Response:
    """A cursor page: next, previous, results, and no count. A broken cursor is 404."""
    cursor = request.query_params.get("cursor")
    offset = 0
    if cursor:
        try:
            offset = int(base64.urlsafe_b64decode(cursor.encode()).decode().removeprefix("o="))
        except (ValueError, binascii.Error, UnicodeError):
            raise not_found("Invalid cursor") from None
    following = _cursor_link(request, offset + size) if offset + size < len(found) else None
    before = _cursor_link(request, max(0, offset - size)) if offset > 0 else None
    results = list(found[max(0, offset) : max(0, offset) + size])
    return JSONAnswer({"next": following, "previous": before, "results": results})


def _cursor_link(request: Request, offset: int) -> str:
    token = base64.urlsafe_b64encode(f"o={offset}".encode()).decode()
    return link(request, {**request.query_params, "cursor": token})
