"""Runs of an export: on the project path only (service.md, 2 and 7)."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.access import Call, export_of, export_of_list
from reconciler.emulator.answers import JSONAnswer, uuid_in
from reconciler.emulator.clock import parsed, stamp
from reconciler.emulator.fields import choice
from reconciler.emulator.outcomes import STATUSES
from reconciler.emulator.refusal import invalid, not_found
from reconciler.emulator.resources.cursor import Mark, by_creation, ordered_page, ordering_of
from reconciler.emulator.runs import Runs
from reconciler.emulator.world import World

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
        export = export_of_list(call, self._store, any_uuid=self._world.dialect.crashes)
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
        if not wanted or not self._world.dialect.integrations:
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
