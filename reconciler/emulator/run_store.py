"""Runs, backfills and snapshots in the same database: the part of the store that time fills."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Until when an export's runs were made, and when the next is due (seconds)."""

    at: str
    due: float


class RunStore:
    """What the clock brings about. Shares the connection of the store it belongs to."""

    _db: sqlite3.Connection

    def caught_up(self, export: str) -> CaughtUp | None:
        """Until when an export's runs were made; None for one that is gone or never scheduled."""
        row = self._db.execute(
            "SELECT seen, due FROM exports WHERE id = ? AND gone = 0", (export,)
        ).fetchone()
        return CaughtUp(row[0], row[1]) if row and row[0] is not None else None

    def set_caught_up(self, export: str, at: str, due: float) -> None:
        """Remember until when an export's runs were made."""
        self._db.execute("UPDATE exports SET seen = ?, due = ? WHERE id = ?", (at, due, export))

    def begin_schedules(self, project: int, at: str, moment: float) -> None:
        """Time begins for a project's exports: the next full hour is looked at first."""
        due = moment - moment % 300 + 300
        self._db.execute(
            "UPDATE exports SET seen = ?, due = ? WHERE project = ?", (at, due, project)
        )

    def due_exports(self, moment: float) -> list[str]:
        """Exports with a run that is due."""
        rows = self._db.execute(
            "SELECT id FROM exports WHERE gone = 0 AND due <= ? ORDER BY position", (moment,)
        )
        return [row[0] for row in rows]

    def add_runs(self, runs: Sequence[dict[str, Any]]) -> None:
        """Keep runs."""
        self._db.executemany(
            "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)",
            [
                (
                    each["id"],
                    each["batch_export"],
                    each["created"],
                    each["start"],
                    each["backfill"],
                    orjson.dumps(each),
                )
                for each in runs
            ],
        )

    def run(self, export: str, identity: str) -> dict[str, Any] | None:
        """One run of an export."""
        row = self._db.execute(
            "SELECT body FROM runs WHERE export = ? AND id = ?", (export, identity)
        ).fetchone()
        return orjson.loads(row[0]) if row else None

    def runs(self, export: str, *, newest: int = -1) -> list[dict[str, Any]]:
        """The runs of an export, newest created first."""
        rows = self._db.execute(
            "SELECT body FROM runs WHERE export = ? ORDER BY created DESC, id LIMIT ?",
            (export, newest),
        )
        return [orjson.loads(row[0]) for row in rows]

    def add_backfill(self, body: dict[str, Any]) -> None:
        """Keep a backfill."""
        self._db.execute(
            "INSERT OR REPLACE INTO backfills VALUES (?, ?, ?, ?)",
            (body["id"], body["export"], body["created"], orjson.dumps(body)),
        )

    def backfills(self, export: str) -> list[dict[str, Any]]:
        """The backfills of an export, newest first."""
        rows = self._db.execute(
            "SELECT body FROM backfills WHERE export = ? ORDER BY created DESC, id", (export,)
        )
        return [orjson.loads(row[0]) for row in rows]

    def snapshot(self) -> sqlite3.Connection:
        """A copy of everything, in memory."""
        copy = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.backup(copy)
        return copy

    def restore(self, copy: sqlite3.Connection) -> None:
        """Everything as it was when the copy was made."""
        copy.backup(self._db)
