"""How the service pauses an export by itself (service.md, 14)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from reconciler.emulator.activity import Activity, pause_change
from reconciler.emulator.backfills import Backfills
from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.run_store import LogLine
from reconciler.emulator.runs import Runs
from reconciler.emulator.store import StoredExport
from reconciler.emulator.world import World

_WINDOWS = {"hour": 24, "day": 7, "week": 4, "every 5 minutes": 12, "every 15 minutes": 4}
_MARGIN = 50
_PAUSED = (
    "Batch export was automatically paused due to exceeding failure threshold and exhausting all "
    "automated retries.The batch export can be unpaused after addressing any errors."
)
_CANCELLED = "{count} ongoing batch export backfill(s) were cancelled due to the automatic pause"


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
        runs = self._store.runs_created(export.id, None, at, newest=window + _MARGIN)
        runs.sort(key=lambda run: self._updated(run, at), reverse=True)
        return sum(
            run["by_rule"] and self._runs.state(run, at)[0] == "Failed" for run in runs[:window]
        )

    def _updated(self, run: dict[str, Any], at: datetime) -> datetime:
        return parsed(self._runs.state(run, at)[1] or run["created"])
