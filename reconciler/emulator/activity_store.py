"""Users and activity entries in the same database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from reconciler.emulator.database import Database

ACTIVITY_SCHEMA = """
CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS activity (
    position INTEGER PRIMARY KEY AUTOINCREMENT, organization TEXT NOT NULL,
    project INTEGER NOT NULL, item TEXT NOT NULL, body BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS activity_by_item ON activity (item, position);
CREATE INDEX IF NOT EXISTS activity_by_project ON activity (project, position);
CREATE INDEX IF NOT EXISTS activity_by_organization ON activity (organization, position);
"""


class ActivityStore(Database):
    """The tables of users and activity entries; part of `Store`."""

    def add_user(self, identity: int, body: dict[str, Any]) -> None:
        """Store a user."""
        self._db.execute("INSERT INTO users VALUES (?, ?)", (identity, orjson.dumps(body)))

    def users(self) -> list[dict[str, Any]]:
        """Return all users, each with its `id`, in the order of their ids."""
        rows = self._db.execute("SELECT id, body FROM users ORDER BY id")
        return [{"id": identity, **orjson.loads(body)} for identity, body in rows]

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

    def activity(
        self, *, organization: str | None, project: int | None, items: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Return the entries of an organization or a project, in the order of their writes.

        `items` limits them to objects with these ids.
        """
        place = "project = ?" if organization is None else "organization = ?"
        only = ""
        if items:
            # The unary plus disables the index of the place; that of the items reads fewer rows.
            place, only = f"+{place}", "AND item IN (SELECT value FROM json_each(?))"
        values: list[Any] = [project if organization is None else organization]
        values += [orjson.dumps(list(items)).decode()] if items else []
        return self._bodies(
            f"SELECT body FROM activity WHERE {place} {only} ORDER BY position",  # noqa: S608 - ours
            *values,
        )
