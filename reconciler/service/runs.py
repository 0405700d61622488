"""Read the runs and the backfills of a live object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

from reconciler.errors import BadUsage, Forbidden, InvalidResponse, NotFound
from reconciler.model.field_types import time_text
from reconciler.model.live import LiveObject, id_text
from reconciler.model.run import BackfillRow, InvalidRun, Run
from reconciler.model.text import printable, quoted
from reconciler.model.values import JSON
from reconciler.service.calls import NotOffered, ObjectCalls

_Value = TypeVar("_Value")
BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
"""Before every run. Without a window servers show the last seven days (service.md, 15.26)."""
ALL_TIME = {"after": time_text(BEGINNING)}
"""The window of all runs, which also the requests for a single run need."""


async def read_runs(calls: ObjectCalls, since: datetime) -> tuple[Run, ...]:
    """Return the runs that were created since a moment, newest first.

    They are read by creation, which shows every run of an interval that ends after that moment:
    the order by intervals drops runs without a start (service.md 2).

    Raises NotOffered, ServiceError.
    """
    window = {"after": time_text(since)}
    bodies = [body async for body in calls.listed("runs", query=window)]
    return valid(Run.of, bodies, f"runs of {calls.live.id}")


async def read_run(calls: ObjectCalls, run: str) -> Run:
    """Return one run, however old it is. Raises BadUsage, NotFound, ServiceError."""
    if id_text(run) is None:
        raise BadUsage(f"invalid id of a run: {quoted(run)}")
    try:
        body = await calls.send("run", query=ALL_TIME, run=run)
    except NotFound as error:
        error.message = f"{calls.live.kind} {quoted(calls.live.name)} has no run {printable(run)}"
        error.hint = f"list its runs with: {calls.command('runs')}"
        raise
    return valid(Run.of, [body], f"run {printable(run)}")[0]


async def read_backfills(
    calls: ObjectCalls, since: datetime | None = None
) -> tuple[BackfillRow, ...] | None:
    """Return the backfills that may concern intervals after a moment, newest first.

    All without a moment. None if the server does not offer them. Raises ServiceError.
    """
    if not calls.offered("backfills"):
        return None
    try:
        rows = [body async for body in calls.listed("backfills")]
    except (NotFound, NotOffered, Forbidden):
        return None
    parsed = valid(BackfillRow.of, rows, f"backfills of {calls.live.id}")
    return tuple(row for row in parsed if since is None or row.end is None or row.end > since)


def latest_runs(live: LiveObject) -> tuple[Run, ...]:
    """Return the runs that a live body carries, newest first. Raises InvalidResponse."""
    bodies = live.body.get("latest_runs")
    if not isinstance(bodies, list):
        return ()
    return valid(Run.of, bodies, f"latest_runs of {live.id}")


async def runs_since(calls: ObjectCalls, since: datetime) -> tuple[Run, ...]:
    """Return the runs since a moment, newest first: the latest if they reach back so far.

    Raises NotOffered, ServiceError, InvalidResponse.
    """
    latest = latest_runs(calls.live)
    oldest = latest[-1].created_at if latest else None
    return latest if oldest is not None and oldest < since else await read_runs(calls, since)


def valid(read: Callable[[JSON], _Value], bodies: Iterable[JSON], label: str) -> tuple[_Value, ...]:
    """Return typed values of bodies. Raises InvalidResponse."""
    try:
        return tuple(read(body) for body in bodies)
    except InvalidRun as error:
        raise InvalidResponse(f"{label}: {error}") from None


def backfill_id(body: JSON) -> str | None:
    """Return the id in the answer of a backfill: of a row, or of a workflow."""
    value = body.get("backfill_id") if isinstance(body, Mapping) else None
    return value if isinstance(value, str) else None
