"""Runs, backfills, logs and coming events in the same database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from reconciler.emulator.clock import parsed, stamp, unstamp

RUN_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, export TEXT NOT NULL, created INTEGER NOT NULL, first INTEGER,
    last INTEGER NOT NULL, backfill TEXT, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS backfills (
    id TEXT PRIMARY KEY, export TEXT NOT NULL, created INTEGER NOT NULL, live INTEGER NOT NULL,
    body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS logs (
    position INTEGER PRIMARY KEY AUTOINCREMENT, export TEXT NOT NULL, run TEXT NOT NULL,
    moment INTEGER NOT NULL, level TEXT NOT NULL, message TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    kind TEXT NOT NULL, subject TEXT NOT NULL, export TEXT NOT NULL, moment INTEGER NOT NULL,
    PRIMARY KEY (kind, subject));
CREATE INDEX IF NOT EXISTS runs_by_export ON runs (export, created);
CREATE INDEX IF NOT EXISTS runs_by_end ON runs (export, last);
CREATE INDEX IF NOT EXISTS runs_by_backfill ON runs (backfill) WHERE backfill IS NOT NULL;
CREATE INDEX IF NOT EXISTS backfills_by_export ON backfills (export, created);
CREATE INDEX IF NOT EXISTS logs_by_export ON logs (export, moment);
CREATE INDEX IF NOT EXISTS events_by_moment ON events (moment);
CREATE INDEX IF NOT EXISTS events_by_export ON events (export, moment);
"""
RUN_TABLES = ("runs", "backfills", "logs", "events")
FAILED = "failed"
"""The event at the end of a run whose failure counts towards an automatic pause."""
STEP = "backfill"
"""The event at which a backfill continues."""


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Until when the runs of an export were made, and when the next is due (seconds)."""

    at: str
    due: float


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens to a run (FAILED) or to a backfill (STEP) by the clock."""

    kind: str
    subject: str
    moment: datetime


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a run logs. Only what does not follow from the run itself is stored."""

    run: str
    moment: datetime
    level: str
    message: str


class RunStore:
    """The tables of runs, backfills, logs and events; part of `Store`.

    One connection, used from one thread. Bodies are JSON.
    """

    _db: sqlite3.Connection

    def _bodies(self, query: str, *values: Any) -> list[dict[str, Any]]:
        """Return the bodies in the first column of all rows."""
        return [orjson.loads(row[0]) for row in self._db.execute(query, values)]

    def _body(self, query: str, *values: Any) -> dict[str, Any] | None:
        """Return the body in the first column of the first row."""
        row = self._db.execute(query, values).fetchone()
        return orjson.loads(row[0]) if row else None

    def _number(self, query: str, *values: Any) -> int:
        """Return the number in the first column of the only row."""
        return int(self._db.execute(query, values).fetchone()[0])

    # Schedules and events

    def caught_up(self, export: str) -> CaughtUp | None:
        """Return how far an export is, None for one that is gone or was never scheduled."""
        row = self._db.execute(
            "SELECT seen, due FROM exports WHERE id = ? AND gone = 0", (export,)
        ).fetchone()
        return CaughtUp(row[0], row[1]) if row and row[0] is not None else None

    def set_caught_up(self, export: str, at: str, due: float) -> None:
        """Store until when the runs of an export were made."""
        self._db.execute("UPDATE exports SET seen = ?, due = ? WHERE id = ?", (at, due, export))

    def begin_schedules(self, project: int, at: str, moment: float) -> None:
        """Begin the schedules of all exports of a project."""
        due = moment - moment % 300 + 300
        self._db.execute(
            "UPDATE exports SET seen = ?, due = ? WHERE project = ?", (at, due, project)
        )

    def recheck_schedules(self) -> None:
        """Mark every export as due, so that its next due time is computed again."""
        self._db.execute("UPDATE exports SET due = 0 WHERE due IS NOT NULL")

    def due_exports(self, moment: float) -> list[str]:
        """Return the exports with a run or an event that is due (seconds since the epoch)."""
        rows = self._db.execute(
            "SELECT id FROM exports WHERE gone = 0 AND due <= ? "
            "UNION SELECT export FROM events JOIN exports ON exports.id = events.export "
            "WHERE gone = 0 AND moment <= ?",
            (moment, int(moment * 1_000_000)),
        )
        return [row[0] for row in rows]

    def add_event(self, export: str, event: Event) -> None:
        """Store an event. It replaces one of the same kind and subject."""
        self._db.execute(
            "INSERT OR REPLACE INTO events VALUES (?, ?, ?, ?)",
            (event.kind, event.subject, export, stamp(event.moment)),
        )

    def next_event(self, export: str, until: datetime) -> Event | None:
        """Return the first event of an export up to a moment."""
        row = self._db.execute(
            "SELECT kind, subject, moment FROM events WHERE export = ? AND moment <= ? "
            "ORDER BY moment, subject LIMIT 1",
            (export, stamp(until)),
        ).fetchone()
        return Event(row[0], row[1], unstamp(row[2])) if row else None

    def drop_event(self, kind: str, subject: str) -> None:
        """Delete an event."""
        self._db.execute("DELETE FROM events WHERE kind = ? AND subject = ?", (kind, subject))

    # Runs

    def add_runs(self, runs: Iterable[dict[str, Any]]) -> None:
        """Store runs, replacing those of the same ids."""
        self._db.executemany(
            "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    run["id"],
                    run["batch_export"],
                    stamp(parsed(run["created"])),
                    stamp(parsed(run["start"])) if run["start"] is not None else None,
                    stamp(parsed(run["end"])),
                    run["backfill"],
                    orjson.dumps(run),
                )
                for run in runs
            ],
        )

    def run(self, export: str, identity: str) -> dict[str, Any] | None:
        """Return a run of an export."""
        return self._body("SELECT body FROM runs WHERE export = ? AND id = ?", export, identity)

    def drop_run(self, identity: str) -> None:
        """Delete a run that was not created yet, with its log lines and events."""
        for table, column in (("runs", "id"), ("logs", "run"), ("events", "subject")):
            self._db.execute(f"DELETE FROM {table} WHERE {column} = ?", (identity,))  # noqa: S608

    def runs_created(
        self, export: str, until: datetime, *, newest: int = -1
    ) -> list[dict[str, Any]]:
        """Return the runs that were created up to a moment, newest first."""
        return self._bodies(
            "SELECT body FROM runs WHERE export = ? AND created <= ? "
            "ORDER BY created DESC, id DESC LIMIT ?",
            *(export, stamp(until), newest),
        )

    def runs_ending(self, export: str, end: datetime) -> list[dict[str, Any]]:
        """Return the runs of the interval with an end."""
        return self._bodies(
            "SELECT body FROM runs WHERE export = ? AND last = ?", export, stamp(end)
        )

    def runs_of_backfill(self, backfill: str) -> list[dict[str, Any]]:
        """Return the runs of a backfill, oldest interval first."""
        return self._bodies(
            "SELECT body FROM runs WHERE backfill = ? ORDER BY last, created", backfill
        )

    def latest_runs(
        self, exports: Sequence[str], until: datetime, newest: int
    ) -> list[dict[str, Any]]:
        """Return the newest runs of each of some exports, newest first, in one query."""
        return self._bodies(
            "SELECT runs.body FROM json_each(?) AS wanted JOIN runs ON runs.id IN ("
            "SELECT id FROM runs WHERE export = wanted.value AND created <= ? "
            "ORDER BY created DESC, id DESC LIMIT ?) ORDER BY runs.created DESC, runs.id DESC",
            *(orjson.dumps(list(exports)).decode(), stamp(until), newest),
        )

    # Logs

    def add_logs(self, export: str, lines: Iterable[LogLine]) -> None:
        """Store log lines. A line of the future is listed once its moment has come."""
        self._db.executemany(
            "INSERT INTO logs (export, run, moment, level, message) VALUES (?, ?, ?, ?, ?)",
            [(export, line.run, stamp(line.moment), line.level, line.message) for line in lines],
        )

    def drop_logs(self, run: str, after: datetime) -> None:
        """Delete the log lines of a run that are later than a moment."""
        self._db.execute("DELETE FROM logs WHERE run = ? AND moment > ?", (run, stamp(after)))

    def logged_between(self, export: str, pattern: str, first: datetime, last: datetime) -> bool:
        """Return whether a message like a pattern is logged in a window."""
        row = self._db.execute(
            "SELECT 1 FROM logs WHERE export = ? AND moment BETWEEN ? AND ? AND message LIKE ?",
            (export, stamp(first), stamp(last), pattern),
        ).fetchone()
        return row is not None

    def logs(self, export: str, until: datetime) -> list[LogLine]:
        """Return the stored log lines of an export up to a moment, newest first."""
        rows = self._db.execute(
            "SELECT run, moment, level, message FROM logs WHERE export = ? AND moment <= ? "
            "ORDER BY moment DESC, position DESC",
            (export, stamp(until)),
        )
        return [LogLine(run, unstamp(at), level, message) for run, at, level, message in rows]

    # Backfills

    def write_backfill(self, body: dict[str, Any], *, live: bool) -> None:
        """Store a backfill, replacing an older state of it."""
        self._db.execute(
            "INSERT OR REPLACE INTO backfills VALUES (?, ?, ?, ?, ?)",
            (body["id"], body["export"], stamp(parsed(body["created"])), live, orjson.dumps(body)),
        )

    def backfill(self, identity: str) -> dict[str, Any] | None:
        """Return a backfill."""
        return self._body("SELECT body FROM backfills WHERE id = ?", identity)

    def backfills(self, export: str, until: datetime) -> list[dict[str, Any]]:
        """Return the backfills of an export that were created up to a moment, newest first."""
        return self._bodies(
            "SELECT body FROM backfills WHERE export = ? AND created <= ? "
            "ORDER BY created DESC, id DESC",
            *(export, stamp(until)),
        )

    def live_backfills(self, export: str) -> list[dict[str, Any]]:
        """Return the backfills of an export that have not ended, listed or not."""
        return self._bodies(
            "SELECT body FROM backfills WHERE export = ? AND live = 1 ORDER BY created", export
        )

    def count_live_backfills(self, project: int, until: datetime) -> int:
        """Return how many listed backfills of a project have not ended."""
        return self._number(
            "SELECT COUNT(*) FROM backfills JOIN exports ON exports.id = backfills.export "
            "WHERE exports.project = ? AND exports.gone = 0 AND live = 1 AND created <= ?",
            *(project, stamp(until)),
        )

    # Snapshots

    def snapshot(self) -> sqlite3.Connection:
        """Return a copy of everything, in memory."""
        copy = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.backup(copy)
        return copy

    def restore(self, copy: sqlite3.Connection) -> None:
        """Restore everything as it was when the copy was made."""
        copy.backup(self._db)
