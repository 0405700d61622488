"""Logs of exports and runs (service.md, 3 and 9)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import Response

from reconciler.emulator.access import Call, export_of
from reconciler.emulator.answers import page
from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.fields import integer, moment
from reconciler.emulator.refusal import server_error
from reconciler.emulator.run_store import LogLine
from reconciler.emulator.runs import ExportRuns, Runs
from reconciler.emulator.store import StoredExport
from reconciler.emulator.world import World

_DEFAULT_LIMIT = 50
_MOST = 500


class ExportLogs:
    """The operations. Each takes the call and answers, or raises Refusal."""

    def __init__(self, world: World, export_runs: ExportRuns, runs: Runs) -> None:
        self._world = world
        self._store = world.store
        self._export_runs = export_runs
        self._runs = runs

    async def of_export(self, call: Call) -> Response:
        """GET the logs of an export, newest first. The organization path has no team (1.10)."""
        if call.organization is not None:
            raise server_error()
        return self._page(call, export_of(call, self._store), run=None)

    async def of_run(self, call: Call) -> Response:
        """GET the logs of a run; broken in both real servers (3)."""
        export = export_of(call, self._store)
        run = self._export_runs.named(call)
        if self._world.dialect.newest:
            raise server_error()
        return self._page(call, export, run=run["id"])

    def _page(self, call: Call, export: StoredExport, *, run: str | None) -> Response:
        """Answer a page of lines; `run` limits them to a run."""
        parameters = call.request.query_params
        old = not self._world.dialect.real
        limit = _limit(parameters.get("limit"), old=old)
        wanted = self._filter(parameters, run)
        lines = [
            line for line in self._runs.lines(export.id, self._world.clock.now()) if wanted(line)
        ]
        # Newer servers read `limit` lines first, and cut the page from them (3).
        lines = lines[:limit]
        return page(
            call.request,
            len(lines),
            lambda size, offset: [
                self._shown(export, line) for line in lines[offset : offset + size]
            ],
        )

    def _filter(self, parameters: QueryParams, run: str | None) -> Callable[[LogLine], bool]:
        """Return which lines the parameters ask for. Raise Refusal."""
        old = not self._world.dialect.real
        levels = {level.upper() for level in parameters.getlist("level_filter" if old else "level")}
        after = _moment("after", parameters.get("after"))
        before = _moment("before", parameters.get("before"))
        search = _pattern(parameters.get("search", ""))
        instance = None if old else parameters.get("instance_id")

        def wanted(line: LogLine) -> bool:
            return (
                (run is None or line.run == run)
                and (not levels or line.level in levels)
                and (after is None or line.moment > after)
                and (before is None or line.moment < before)
                and search.search(line.message) is not None
                and instance in (None, self._runs.instance(line.run))
            )

        return wanted

    def _shown(self, export: StoredExport, line: LogLine) -> dict[str, Any]:
        entry = {"timestamp": iso(line.moment), "level": line.level, "message": line.message}
        if not self._world.dialect.real:
            place = {
                "team_id": export.project,
                "batch_export_id": export.id,
                "run_id": line.run,
            }
            return {**place, **entry}
        return {
            "log_source_id": export.id,
            "instance_id": self._runs.instance(line.run),
            **entry,
        }


def _limit(text: str | None, *, old: bool) -> int | None:
    """Return how many lines to read, None for all. Raise Refusal."""
    if old:
        if text is not None:
            integer()("limit", text)
        return None
    return _DEFAULT_LIMIT if text is None else int(integer(least=1, most=_MOST)("limit", text))


def _moment(name: str, text: str | None) -> datetime | None:
    """Return the moment of a parameter. Raise Refusal for anything but ISO 8601."""
    return None if text is None else parsed(moment(name, text))


def _pattern(search: str) -> re.Pattern[str]:
    """Return the pattern of a substring in any case; % and _ are wild."""
    wild = re.escape(search).replace("%", ".*").replace("_", ".")
    return re.compile(wild, re.IGNORECASE | re.DOTALL)
