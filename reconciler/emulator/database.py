"""The database that all parts of the store share: JSON bodies in SQLite."""

from __future__ import annotations

import sqlite3
from typing import Any

import orjson


class Database:
    """One connection, used from one thread."""

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
