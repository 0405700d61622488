"""Read the log of an object backwards, since offsets do not reach older entries (15.27)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from reconciler.errors import Forbidden, InvalidResponse
from reconciler.model.field_types import Instant
from reconciler.model.kind import Dialect
from reconciler.model.request import Query
from reconciler.model.run import LogEntry
from reconciler.operations.run_history import valid
from reconciler.reading.calls import NotOffered, ObjectCalls

MOST = 500
"""Entries of a page (docs/service.md, 3)."""
_LEAST = timedelta(microseconds=1)


class LogFilter(Struct, frozen=True):
    """Which entries to read: after and before moments, of some levels, with a text."""

    first: datetime | None = None
    last: datetime | None = None
    levels: tuple[str, ...] = ()
    search: str | None = None

    def query(self, dialect: Dialect | None) -> dict[str, str | tuple[str, ...]]:
        """Return the parameters of a request."""
        query: dict[str, str | tuple[str, ...]] = {}
        if self.first is not None:
            query["after"] = _text(self.first)
        if self.last is not None:
            query["before"] = _text(self.last)
        if self.levels:
            # Up to 2024 the parameter has another name. Servers ignore the one they don't know.
            is_new = dialect is not None and dialect.is_since(Dialect.V2025)
            names = ("level",) if is_new else ("level", "level_filter")
            query |= dict.fromkeys(names, self.levels)
        if self.search:
            query["search"] = self.search
        return query

    def keeps(self, entry: LogEntry) -> bool:
        """Return whether an entry has one of the levels, for servers that ignore them."""
        return not self.levels or entry.level in self.levels

    def matches(self, entry: LogEntry) -> bool:
        """Return whether an entry is wanted, as the service decides it."""
        return (
            self.keeps(entry)
            and (self.first is None or entry.timestamp > self.first)
            and (self.last is None or entry.timestamp < self.last)
            and _pattern(self.search or "").search(entry.message) is not None
        )


async def read_logs(
    calls: ObjectCalls, wanted: LogFilter, *, page: int = MOST, run: str | None = None
) -> AsyncIterator[LogEntry]:
    """Yield log entries, of one run if it is given, the newest first, as they are needed.

    Raises NotOffered, ServiceError, InvalidResponse.
    """
    query = wanted.query(calls.dialect) | {"limit": str(page)}
    known = Counter[LogEntry]()
    oldest: datetime | None = None
    while True:
        entries = await _page(calls, query, run)
        fresh = list((Counter(entries) - known).elements())
        fresh.sort(key=lambda entry: entry.timestamp, reverse=True)
        for entry in fresh:
            if wanted.keeps(entry):
                yield entry
        if len(entries) < page:
            return
        before = min(entry.timestamp for entry in entries)
        # `before` is exclusive, and further entries may have the time of the last one.
        is_stuck = oldest is not None and before >= oldest
        query["before"] = _text(before if is_stuck else before + _LEAST)
        known = Counter(entry for entry in entries if entry.timestamp <= before)
        oldest = before


async def _page(calls: ObjectCalls, query: Query, run: str | None) -> list[LogEntry]:
    label = f"logs of {calls.live.id}"
    try:
        if run is None:
            body = await calls.send("logs", query=query)
        else:
            body = await calls.send("run_logs", query=query, run=run)
    except Forbidden as error:
        # Servers from 2025 to spring 2026 refuse them whatever the scopes of the key.
        raise NotOffered(f"this server refuses logs to the API key: {error.message}") from None
    results = body.get("results") if isinstance(body, Mapping) else None
    if not isinstance(results, list):
        raise InvalidResponse(f"{label}: the response is not a page of objects")
    return list(valid(LogEntry.of, results, label))


def _pattern(search: str) -> re.Pattern[str]:
    """Return the pattern of a substring in any case, in which % and _ are wildcards."""
    wild = re.escape(search).replace("%", ".*").replace("_", ".")
    return re.compile(wild, re.IGNORECASE | re.DOTALL)


def _text(moment: datetime) -> str:
    return str(Instant().canonical(moment))
