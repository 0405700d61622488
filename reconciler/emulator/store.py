"""The data of the service in SQLite, in a file or in memory.

Bodies are stored whole as JSON beside the columns that lists filter and sort by, so that a page
needs one query and no validation. Every write is committed before it is answered.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from reconciler.emulator.run_store import RUN_SCHEMA, RUN_TABLES, RunStore

_SCHEMA = """
CREATE TABLE IF NOT EXISTS organizations (id TEXT PRIMARY KEY, position INTEGER, body BLOB);
CREATE TABLE IF NOT EXISTS projects (
    id INTEGER PRIMARY KEY AUTOINCREMENT, organization TEXT NOT NULL, body BLOB NOT NULL,
    gone INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS exports (
    position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
    project INTEGER NOT NULL, body BLOB NOT NULL, gone INTEGER NOT NULL DEFAULT 0,
    seen TEXT, due REAL);
CREATE TABLE IF NOT EXISTS integrations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS exports_by_due ON exports (gone, due);
CREATE INDEX IF NOT EXISTS exports_by_project ON exports (project, gone, position);
CREATE INDEX IF NOT EXISTS projects_by_organization ON projects (organization, gone, id);
CREATE TABLE IF NOT EXISTS keys (value TEXT PRIMARY KEY, position INTEGER, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS activity (
    position INTEGER PRIMARY KEY AUTOINCREMENT, organization TEXT NOT NULL,
    project INTEGER NOT NULL, item TEXT NOT NULL, body BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS activity_by_item ON activity (item, position);
CREATE INDEX IF NOT EXISTS activity_by_project ON activity (project, position);
"""
_HISTORY = """
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
"""What records the past of projects and exports, for lists that lag behind writes."""
_OF_PROJECTS = "project IN (SELECT value FROM json_each(?)) AND gone = 0"
_LISTED = (
    f"{_OF_PROJECTS} AND json_extract(CAST(body AS TEXT), '$.destination.type') IS NOT 'Workflows'"
)
"""The exports that lists show."""
_LARGEST = 2**63 - 1
_ERASED = 2
"""A value of `exports.gone`: 1 is a deleted export, whose row stays, and 0 one that is shown."""

_TABLES = (
    *("organizations", "projects", "exports", "keys", "integrations", *RUN_TABLES),
    *("users", "activity"),
)


@dataclass(frozen=True, slots=True)
class StoredExport:
    """A stored export; its `body` has every secret that was sent."""

    id: str
    project: int
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredProject:
    """A stored project."""

    id: int
    organization: str
    body: dict[str, Any]


class Store(RunStore):
    """One connection, used from one thread."""

    def __init__(self, path: str = ":memory:") -> None:
        if path != ":memory:":
            _make_private(path)
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        # An acknowledged write survives kill -9 and a power cut.
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(_SCHEMA + RUN_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all writes inside, or none. An inner transaction is part of the outer one."""
        if self._db.in_transaction:
            yield
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def keep_history(self, now: Callable[[], float]) -> None:
        """Record what each later write replaces, and delete what was recorded so far.

        `now` returns seconds since the epoch.
        """
        self._db.create_function("service_time", 0, now)
        self._db.executescript(_HISTORY)
        self._db.execute("DELETE FROM history")

    @contextmanager
    def as_of(self, moment: float) -> Iterator[None]:
        """Show projects and exports as they were at a moment (seconds since the epoch).

        Writes inside are rolled back. Needs `keep_history`.
        """
        self._db.execute("BEGIN IMMEDIATE")
        try:
            replaced = self._db.execute(
                "SELECT kind, id, body, gone FROM history WHERE at > ? ORDER BY sequence DESC",
                (moment,),
            ).fetchall()
            for kind, identity, body, gone in replaced:
                self._db.execute(
                    f"UPDATE {kind} SET body = coalesce(?, body), gone = ? WHERE id = ?",  # noqa: S608 - our own names
                    (body, gone, identity),
                )
            yield
        finally:
            self._db.execute("ROLLBACK")

    def set_gone(self, identity: int | str, *, gone: bool) -> None:
        """Hide a project (a number) or an export (text) from every answer, or show it again."""
        table = "projects" if isinstance(identity, int) else "exports"
        self._db.execute(
            f"UPDATE {table} SET gone = ? WHERE id = ?",  # noqa: S608 - our own names
            (gone, identity),
        )

    def clear(self) -> None:
        """Delete everything, and restart the ids of projects."""
        with self.transaction():
            for table in _TABLES:
                self._db.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
            self._db.execute("DELETE FROM sqlite_sequence")

    @property
    def empty(self) -> bool:
        """Return whether nothing has been stored yet."""
        return self._db.execute("SELECT 1 FROM organizations LIMIT 1").fetchone() is None

    # Organizations and keys

    def add_organization(self, identity: str, body: dict[str, Any]) -> None:
        """Store an organization."""
        self._db.execute(
            "INSERT INTO organizations VALUES (?, (SELECT COUNT(*) FROM organizations), ?)",
            (identity, orjson.dumps(body)),
        )

    def organization(self, identity: str) -> dict[str, Any] | None:
        """Return the body of an organization."""
        return self._body("SELECT body FROM organizations WHERE id = ?", identity)

    def organizations(self) -> list[str]:
        """Return the ids of all organizations, in the order they were added."""
        rows = self._db.execute("SELECT id FROM organizations ORDER BY position")
        return [row[0] for row in rows]

    def add_key(self, value: str, body: dict[str, Any]) -> None:
        """Store an API key and its permissions."""
        self._db.execute(
            "INSERT INTO keys VALUES (?, (SELECT COUNT(*) FROM keys), ?)",
            (value, orjson.dumps(body)),
        )

    def key(self, value: str) -> dict[str, Any] | None:
        """Return the permissions of a key."""
        return self._body("SELECT body FROM keys WHERE value = ?", value)

    def key_values(self) -> list[str]:
        """Return all keys, in the order they were added."""
        return [row[0] for row in self._db.execute("SELECT value FROM keys ORDER BY position")]

    # Projects

    def add_project(
        self, organization: str, body: dict[str, Any], *, identity: int | None = None
    ) -> int:
        """Store a project, with a new id unless `identity` is given. Return the id."""
        cursor = self._db.execute(
            "INSERT INTO projects (id, organization, body) VALUES (?, ?, ?)",
            (identity, organization, orjson.dumps(body)),
        )
        return int(cursor.lastrowid or 0)

    def project(self, identity: int) -> StoredProject | None:
        """Return a project that is not deleted."""
        matching = self._projects("id = ? AND gone = 0", identity) if identity <= _LARGEST else []
        return matching[0] if matching else None

    def projects(
        self, organization: str, *, limit: int = -1, offset: int = 0
    ) -> list[StoredProject]:
        """Return the projects of an organization, oldest first."""
        which = "organization = ? AND gone = 0 ORDER BY id LIMIT ? OFFSET ?"
        return self._projects(which, organization, limit, offset)

    def _projects(self, which: str, *values: Any) -> list[StoredProject]:
        query = f"SELECT id, organization, body FROM projects WHERE {which}"  # noqa: S608 - ours
        rows = self._db.execute(query, values)
        return [StoredProject(row[0], row[1], orjson.loads(row[2])) for row in rows]

    def project_ids(self, organization: str) -> list[int]:
        """Return the ids of the projects of an organization, oldest first."""
        rows = self._db.execute(
            "SELECT id FROM projects WHERE organization = ? AND gone = 0 ORDER BY id",
            (organization,),
        )
        return [row[0] for row in rows]

    def project_names(self, organization: str) -> list[tuple[int, str]]:
        """Return ids and names of the projects of an organization that are not pending deletion."""
        rows = self._db.execute(
            "SELECT id, json_extract(text, '$.name') FROM "
            "(SELECT id, CAST(body AS TEXT) AS text FROM projects "
            "WHERE organization = ? AND gone = 0) "
            "WHERE NOT COALESCE(json_extract(text, '$.is_pending_deletion'), 0)",
            (organization,),
        )
        return [(identity, str(name)) for identity, name in rows]

    def count_projects(self, organization: str) -> int:
        """Return the number of projects of an organization."""
        return self._number(
            "SELECT COUNT(*) FROM projects WHERE organization = ? AND gone = 0", organization
        )

    def count_all_projects(self) -> int:
        """Return the number of all projects, deleted ones included."""
        return self._number("SELECT COUNT(*) FROM projects")

    def write_project(self, identity: int, body: dict[str, Any]) -> None:
        """Replace a project's body."""
        self._db.execute(
            "UPDATE projects SET body = ? WHERE id = ?", (orjson.dumps(body), identity)
        )

    def remove_project(self, identity: int) -> None:
        """Delete a project with its exports."""
        with self.transaction():
            self._db.execute("UPDATE exports SET gone = 1 WHERE project = ?", (identity,))
            self._db.execute("UPDATE projects SET gone = 1 WHERE id = ?", (identity,))

    def erase_exports(self, project: int) -> bool:
        """Erase the rows of a project's exports, oldest first, up to one that was deleted before.

        Return whether there was one; it is erased as well.
        """
        rows = self._db.execute(
            "SELECT id, gone FROM exports WHERE project = ? AND gone != ? ORDER BY position",
            (project, _ERASED),
        ).fetchall()
        for identity, gone in rows:
            self._db.execute("UPDATE exports SET gone = ? WHERE id = ?", (_ERASED, identity))
            if gone:
                return True
        return False

    # Integrations

    def add_integration(self, identity: int | None, body: dict[str, Any]) -> int:
        """Store an integration, {project, kind, keyless, config, created_at}, and return its id.

        Without an id it gets the next one, which no integration had.
        """
        row = (identity, orjson.dumps(body))
        return int(self._db.execute("INSERT INTO integrations VALUES (?, ?)", row).lastrowid or 0)

    def write_integration(self, identity: int, body: dict[str, Any]) -> None:
        """Replace an integration's body."""
        row = (orjson.dumps(body), identity)
        self._db.execute("UPDATE integrations SET body = ? WHERE id = ?", row)

    def remove_integration(self, identity: int) -> None:
        """Delete an integration."""
        self._db.execute("DELETE FROM integrations WHERE id = ?", (identity,))

    def integrations(self, project: int) -> list[tuple[int, dict[str, Any]]]:
        """Return the integrations of a project with their ids, oldest first."""
        rows = self._db.execute("SELECT id, body FROM integrations ORDER BY id")
        items = ((row[0], orjson.loads(row[1])) for row in rows)
        return [(identity, body) for identity, body in items if body["project"] == project]

    def integration(self, identity: int) -> dict[str, Any] | None:
        """Return an integration."""
        if abs(identity) > _LARGEST:
            return None
        return self._body("SELECT body FROM integrations WHERE id = ?", identity)

    # Batch exports

    def add_exports(self, exports: Iterable[StoredExport]) -> None:
        """Store exports, the oldest first."""
        with self.transaction():
            self._db.executemany(
                "INSERT INTO exports (id, project, body) VALUES (?, ?, ?)",
                ((export.id, export.project, orjson.dumps(export.body)) for export in exports),
            )

    def export(self, identity: str, *, deleted: bool = False) -> StoredExport | None:
        """Return an export; one that is deleted only if `deleted`."""
        matching = self._exports("id = ? AND gone <= ?", identity, deleted)
        return matching[0] if matching else None

    def exports(self, projects: list[int], *, limit: int = -1) -> list[StoredExport]:
        """Return the exports of some projects, newest first."""
        which = f"{_OF_PROJECTS} ORDER BY position DESC LIMIT ?"
        return self._exports(which, orjson.dumps(projects).decode(), limit)

    def listed_exports(self, projects: list[int], *, limit: int, offset: int) -> list[StoredExport]:
        """Return a page of the exports that lists show, newest first (service.md, 1.10)."""
        which = f"{_LISTED} ORDER BY position DESC LIMIT ? OFFSET ?"
        return self._exports(which, orjson.dumps(projects).decode(), limit, offset)

    def count_listed_exports(self, projects: list[int]) -> int:
        """Return the number of exports that lists show."""
        query = f"SELECT COUNT(*) FROM exports WHERE {_LISTED}"  # noqa: S608 - our own names
        return self._number(query, orjson.dumps(projects).decode())

    def _exports(self, which: str, *values: Any) -> list[StoredExport]:
        query = f"SELECT id, project, body FROM exports WHERE {which}"  # noqa: S608 - ours
        rows = self._db.execute(query, values)
        return [StoredExport(row[0], row[1], orjson.loads(row[2])) for row in rows]

    def write_export(self, identity: str, body: dict[str, Any]) -> None:
        """Replace an export's body."""
        self._db.execute("UPDATE exports SET body = ? WHERE id = ?", (orjson.dumps(body), identity))

    def remove_export(self, identity: str) -> None:
        """Delete an export softly, as the service does: the row stays and is never shown again."""
        self._db.execute("UPDATE exports SET gone = 1 WHERE id = ?", (identity,))

    # Users and their activity

    def add_user(self, identity: int, body: dict[str, Any]) -> None:
        """Store a user."""
        self._db.execute("INSERT INTO users VALUES (?, ?)", (identity, orjson.dumps(body)))

    def user(self, identity: int) -> dict[str, Any] | None:
        """Return a user with its `id`."""
        body = self._body("SELECT body FROM users WHERE id = ?", identity)
        return {"id": identity, **body} if body is not None else None

    def add_activity(self, organization: str, project: int, body: dict[str, Any]) -> None:
        """Store an activity entry; `body` has its `item_id`."""
        self._db.execute(
            "INSERT INTO activity (organization, project, item, body) VALUES (?, ?, ?, ?)",
            (organization, project, body["item_id"], orjson.dumps(body)),
        )

    def activity(self, project: int, items: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return the entries of a project, in the order of their writes.

        `items` limits them to objects with these ids.
        """
        if not items:
            query = "SELECT body FROM activity WHERE project = ? ORDER BY position"
            return self._bodies(query, project)
        # The unary plus disables the index of the project; that of the items reads fewer rows.
        return self._bodies(
            "SELECT body FROM activity WHERE +project = ? "
            "AND item IN (SELECT value FROM json_each(?)) ORDER BY position",
            *(project, orjson.dumps(list(items)).decode()),
        )


def _make_private(path: str) -> None:
    """Make the file, which holds secrets and keys, readable by its owner only.

    SQLite gives its journal files the permissions of the database. Raise sqlite3.OperationalError.
    """
    try:
        # A link could name any file.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise sqlite3.OperationalError(f"{path}: {error.strerror}") from None
