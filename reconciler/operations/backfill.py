"""Backfill a past time range of one live object (docs/service.md, 1.8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from reconciler.client import Transport
from reconciler.errors import AmbiguousOutcome, BadUsage, NotFound, Throttled
from reconciler.model.field_types import Instant
from reconciler.model.live import Dialect, LiveObject
from reconciler.model.request import Repeat
from reconciler.model.routes import Routes

_TOO_MANY = "too_many_concurrent_backfills"
"""A 429 that lasts as long as the backfills that run."""


@dataclass(frozen=True, slots=True)
class Backfilled:
    """The range as it was sent, and the id of the backfill if the server returns one."""

    start: str
    end: str
    backfill_id: str | None


def past_range(start: str, end: str, *, now: datetime) -> tuple[datetime, datetime]:
    """Return the instants of two ISO 8601 texts, UTC where they have no offset.

    Raises BadUsage for an invalid text, an empty range, and one that ends in the future.
    """
    first, last = _instant(start, option="--start"), _instant(end, option="--end")
    if first >= last:
        raise BadUsage("empty time range", hint="set --start to a time before --end")
    if last > now:
        raise BadUsage(
            f"the time range ends in the future: --end {end}",
            hint="set --end to a time in the past",
        )
    return first, last


async def start_backfill(
    transport: Transport,
    routes: Routes,
    target: LiveObject,
    times: tuple[datetime, datetime],
    *,
    dialect: Dialect | None,
) -> Backfilled:
    """Send the request once, to the first of the backfill's paths that exists.

    Raises:
        AmbiguousOutcome: no answer; a repeat could start a second one (docs/service.md, 15.28).
        ServiceError: the service refused.

    """
    backfill = routes.kind.backfill
    if backfill is None:
        raise BadUsage(f"a {routes.kind.name} can't be backfilled")
    start, end = _bounds(times, dates=backfill.by_date(target.body, dialect))
    body = {"start_at": start, "end_at": end}
    for path in backfill.paths:
        request = routes.action(target.id, path, body=body, repeat=Repeat.AFTER_LOOKING)
        try:
            answer = await transport.send(replace(request, final_codes=frozenset({_TOO_MANY})))
        except NotFound:
            continue
        except Throttled as error:
            if error.code == _TOO_MANY:
                error.hint = "wait until running backfills finish"
            raise
        except AmbiguousOutcome as error:
            error.hint = f"check the runs of {routes.kind.name} {target.id} before you try again"
            raise
        backfill_id = answer.body.get("backfill_id") if isinstance(answer.body, Mapping) else None
        return Backfilled(start, end, str(backfill_id) if backfill_id is not None else None)
    raise NotFound(
        f"this server does not support backfills of a {routes.kind.name} "
        f"(404 for {', '.join(backfill.paths)})",
        status=404,
    )


def _instant(text: str, *, option: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise BadUsage(
            f"invalid time '{text}' in {option}", hint="write it like 2026-01-31T00:00:00Z"
        ) from None
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant


def _bounds(times: tuple[datetime, datetime], *, dates: bool) -> tuple[str, str]:
    if dates:
        return times[0].date().isoformat(), times[1].date().isoformat()
    instant = Instant()
    return str(instant.canonical(times[0])), str(instant.canonical(times[1]))
