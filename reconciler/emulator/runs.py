"""Simulated time: runs appear as the clock moves, with statuses, counters, errors and logs.

Everything about a run follows from the seed, the export and the interval, so that the same
history appears again. A run is stored with the end that is meant for it; how far it is when
somebody looks is worked out from the clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid5

from reconciler.emulator.clock import iso, parsed
from reconciler.emulator.intervals import ends_between, first_end_after
from reconciler.emulator.store import StoredExport
from reconciler.emulator.world import World

_NAMESPACE = UUID("3f1c6b1e-58a5-4f0b-9f6b-6a4b8c8f0d11")
_ERRORS = (
    "The destination refused the connection.",
    "Access denied: the credentials do not allow writing.",
    "The destination did not answer in time.",
)
MOST_AT_ONCE = 2_000
"""Runs made at most when the clock jumps far: the newest ones."""

SHOWN = 10
"""Runs that an export carries in its answers."""


class Runs:
    """Makes runs when they are due, and shows them as they stand now."""

    def __init__(self, world: World) -> None:
        self._world = world

    def zone_of(self, export: StoredExport) -> str:
        """Where days are cut: the export's zone in 2026, the project's before (1.1)."""
        if self._world.dialect.integrations:
            return str(export.body.get("timezone") or "UTC")
        project = self._world.store.project(export.project)
        return str(project.body.get("timezone") or "UTC") if project is not None else "UTC"

    def due_after(self, export: StoredExport, moment: datetime) -> float:
        """When the next run is due, in seconds since the epoch."""
        return first_end_after(export.body, moment, self.zone_of(export)).timestamp()

    def catch_up(self, export: StoredExport) -> None:
        """Make the runs that came due since the last look. Called before anything changes."""
        now = self._world.clock.now()
        since = self._world.store.caught_up(export.id)
        if since is None or now.timestamp() < since.due:
            return
        body = export.body
        if not body.get("paused", False):
            start = _moment(body.get("start_at"))
            end = _moment(body.get("end_at"))
            due = [
                (first, last)
                for first, last in ends_between(body, parsed(since.at), now, self.zone_of(export))
                if (start is None or first >= start) and (end is None or last <= end)
            ]
            self._world.store.add_runs(
                [self._run(export, first, last, last) for first, last in due[-MOST_AT_ONCE:]]
            )
        self._world.store.set_caught_up(export.id, iso(now), self.due_after(export, now))

    def backfilled(
        self, export: StoredExport, backfill: str, start: datetime, end: datetime
    ) -> list[dict[str, Any]]:
        """The runs of a backfill, one after another from now on."""
        now = self._world.clock.now()
        found = [
            self._run(export, first, last, now + timedelta(seconds=30 * position), backfill)
            for position, (first, last) in enumerate(
                ends_between(export.body, start, end, self.zone_of(export))
            )
        ]
        return found[:MOST_AT_ONCE]

    def _run(
        self,
        export: StoredExport,
        first: datetime,
        last: datetime,
        begun: datetime,
        backfill: str | None = None,
    ) -> dict[str, Any]:
        key = f"{self._world.seed}/{export.id}/{iso(last)}/{backfill or ''}"
        dice = int.from_bytes(sha256(key.encode()).digest()[:8], "big")
        created = begun + timedelta(seconds=2 + dice % 20)
        status = "Failed" if dice % 29 == 0 else "Completed"
        records = dice // 7 % 50_000
        return {
            "id": str(uuid5(_NAMESPACE, key)),
            "batch_export": export.id,
            "status": status,
            "records": records,
            "error": _ERRORS[dice // 11 % len(_ERRORS)] if status == "Failed" else None,
            "start": iso(first),
            "end": iso(last),
            "created": iso(created),
            "finished": iso(created + timedelta(seconds=5 + dice // 3 % 90)),
            "backfill": backfill,
            "cancelled": None,
        }

    def shown(self, run: Mapping[str, Any]) -> dict[str, Any]:
        """A run as it stands now."""
        now = self._world.clock.now()
        created, finished = parsed(run["created"]), parsed(run["finished"])
        status, done = run["status"], True
        if run["cancelled"] is not None:
            status, finished = "Cancelled", parsed(run["cancelled"])
        elif now < finished:
            status, done = ("Running" if now >= created else "Starting"), False
        records = run["records"] if status == "Completed" else 0
        answer: dict[str, Any] = {
            "id": run["id"],
            "status": status,
            "records_completed": records if done else None,
            "latest_error": run["error"] if status == "Failed" else None,
            "data_interval_start": run["start"],
            "data_interval_end": run["end"],
            "cursor": None,
            "created_at": run["created"],
            "finished_at": iso(finished) if done else None,
            "last_updated_at": iso(finished) if done else run["created"],
            "records_total_count": records if done else None,
            "batch_export": run["batch_export"],
        }
        if self._world.dialect.name != "interface":
            answer |= {
                "backfill": run["backfill"],
                "bytes_exported": records * 100 if done else None,
            }
        if self._world.dialect.integrations:
            answer |= {"records_failed": 0 if done else None, "batch_export_on_demand": None}
        return answer

    def logs(self, run: Mapping[str, Any], project: int) -> Iterator[dict[str, Any]]:
        """The log entries of a run so far, oldest first."""
        now = self._world.clock.now()
        stands = self.shown(run)
        created, finished = parsed(run["created"]), parsed(run["finished"])
        lines = [
            (created, "DEBUG", f"Run {run['id']} picked up"),
            (created + timedelta(seconds=1), "INFO", f"Exporting {run['start']} to {run['end']}"),
        ]
        if stands["status"] == "Failed":
            lines.append((finished, "ERROR", str(run["error"])))
        elif stands["status"] == "Completed":
            lines.append((finished, "INFO", f"Exported {run['records']} records"))
        elif stands["status"] == "Cancelled":
            lines.append((parsed(run["cancelled"]), "WARNING", "Run was cancelled"))
        for moment, level, message in lines:
            if moment <= now:
                yield self._entry(run, project, iso(moment), level, message)

    def _entry(
        self, run: Mapping[str, Any], project: int, moment: str, level: str, message: str
    ) -> dict[str, Any]:
        line = {"timestamp": moment, "level": level, "message": message}
        if self._world.dialect.log_style == "old":
            return {
                "team_id": project,
                "batch_export_id": run["batch_export"],
                "run_id": run["id"],
                **line,
            }
        return {"log_source_id": run["batch_export"], "instance_id": run["id"], **line}


def _moment(value: str | None) -> datetime | None:
    return parsed(value) if value is not None else None
