"""The past of projects and exports, for lists that lag behind writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_TRIGGERS = """
CREATE TEMP TABLE IF NOT EXISTS history (
    sequence INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, id NOT NULL,
    body BLOB, gone INTEGER NOT NULL);
CREATE TEMP TRIGGER IF NOT EXISTS export_added AFTER INSERT ON exports BEGIN
    INSERT INTO history (at, kind, id, gone) VALUES (service_time(), 'exports', NEW.id, 1); END;
CREATE TEMP TRIGGER IF NOT EXISTS export_changed AFTER UPDATE OF body, gone ON exports BEGIN
    INSERT INTO history (at, kind, id, body, gone)
    VALUES (service_time(), 'exports', OLD.id, OLD.body, OLD.gone); END;
CREATE TEMP TRIGGER IF NOT EXISTS project_added AFTER INSERT ON projects BEGIN
    INSERT INTO history (at, kind, id, gone) VALUES (service_time(), 'projects', NEW.id, 1); END;
CREATE TEMP TRIGGER IF NOT EXISTS project_changed AFTER UPDATE OF body, gone ON projects BEGIN
    INSERT INTO history (at, kind, id, body, gone)
    VALUES (service_time(), 'projects', OLD.id, OLD.body, OLD.gone); END;
"""


def keep_history(db: sqlite3.Connection, now: Callable[[], float]) -> None:
    """Record what each later write replaces, and delete what was recorded so far.

    `now` returns seconds since the epoch.
    """
    db.create_function("service_time", 0, now)
    db.executescript(_TRIGGERS)
    db.execute("DELETE FROM history")


@contextmanager
def as_of(db: sqlite3.Connection, moment: float) -> Iterator[None]:
    """Show projects and exports as they were at a moment (seconds since the epoch).

    Writes inside are rolled back. Needs `keep_history`.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        replaced = db.execute(
            "SELECT kind, id, body, gone FROM history WHERE at > ? ORDER BY sequence DESC",
            (moment,),
        ).fetchall()
        for kind, identity, body, gone in replaced:
            db.execute(
                f"UPDATE {kind} SET body = coalesce(?, body), gone = ? WHERE id = ?",  # noqa: S608
                (body, gone, identity),
            )
        yield
    finally:
        db.execute("ROLLBACK")
