"""Send the operations of one live object, and read its runs and backfills."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from reconciler.errors import BadUsage, Forbidden, InvalidResponse, NotFound, ReconcilerError
from reconciler.kinds import behaviour_of
from reconciler.model.kind import Dialect, Kind
from reconciler.model.live import LiveObject, Operation, Paging, Query, Request, Routes, id_text
from reconciler.model.run import BackfillRow, InvalidRun, Run
from reconciler.model.schemas import time_text
from reconciler.model.text import IMPLICIT_ENVIRONMENT, command_text, printable, quoted
from reconciler.model.values import JSON, JSONObject
from reconciler.service.pages import page_of
from reconciler.service.transport import Transport

_Value = TypeVar("_Value")
BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
"""Before every run. Without a window servers show the last seven days (service.md, 15.26)."""
ALL_TIME = {"after": time_text(BEGINNING)}
"""The window of all runs, which also the requests for a single run need."""
MOST_PAGES = 2_000
"""A list with more pages is an error: it may not end."""


class NotOffered(ReconcilerError):
    """The server does not offer an operation, or not to API keys."""


class ObjectCalls(Struct, frozen=True):
    """The operations of one live object."""

    transport: Transport
    kind: Kind
    organization: str
    live: LiveObject
    dialect: Dialect | None = None
    """That of the server, None if unknown: then every operation is tried."""
    below_organization: bool = False
    """Whether operations that the path of the organization has use it."""
    environment: str = IMPLICIT_ENVIRONMENT
    """For commands in messages."""

    def offered(self, name: str) -> bool:
        """Return whether the server offers an operation to API keys."""
        return behaviour_of(self.kind).operation(name).offered_by(self.dialect)

    def command(self, *words: str) -> str:
        """Return a command to paste into a shell that ends with the object."""
        return command_text(*words, self.live.id, environment=self.environment)

    def check(self, name: str) -> None:
        """Raise NotOffered if the server does not offer an operation to API keys."""
        self._check_offered(behaviour_of(self.kind).operation(name))

    async def send(
        self,
        name: str,
        *,
        body: JSONObject | None = None,
        query: Query | None = None,
        **names: str,
    ) -> JSON:
        """Send an operation once and return the body of the answer.

        Raises NotOffered, ServiceError.
        """
        request = self._request(name, body=body, query=query, **names)
        return (await self.transport.send(request)).body

    async def listed(
        self, name: str, *, query: Query | None = None, **names: str
    ) -> AsyncIterator[JSONObject]:
        """Yield the objects of a list, page by page, as they are needed.

        Raises NotOffered, ServiceError, and InvalidResponse for an answer that is no page.
        """
        request = self._request(name, query=query, **names)
        paging = behaviour_of(self.kind).operation(name).paging
        yielded, seen = 0, set[str]()
        for _ in range(MOST_PAGES):
            body = (await self.transport.send(request)).body
            _, items, following = page_of(body, request.label)
            for item in items:
                yield item
            yielded += len(items)
            if following is None or not items or following in seen:
                return
            seen.add(following)
            request = _next(request, following, paging, yielded)
        raise InvalidResponse(f"{request.label}: the list does not end")

    def _request(self, name: str, **parts: object) -> Request:
        operation = behaviour_of(self.kind).operation(name)
        self._check_offered(operation)
        below_parent = operation.below_parent or not self.below_organization
        parent_id = self.live.parent_id if below_parent else None
        routes = Routes(self.kind, self.organization, parent_id)
        return routes.operation(operation, self.live.id, **parts)  # type: ignore[arg-type]

    def _check_offered(self, operation: Operation) -> None:
        if operation.below_parent and self.live.parent_id is None:
            raise NotOffered(
                f"{operation.name} of {self.live.kind} {self.live.id}: the service does not say "
                f"which {self.kind.parent} it is in"
            )
        if not operation.offered_by(self.dialect):
            name = operation.name.replace("_", " ")
            reason = (
                "refuses it to API keys"
                if self.dialect in operation.refused_to_keys
                else "does not offer it"
            )
            raise NotOffered(f"{name}: a server of dialect {self.dialect} {reason}")


def _next(request: Request, following: str, paging: Paging, yielded: int) -> Request:
    """Return the request of the next page.

    Only the parameters of its address are used: the key goes to the host that was configured.
    """
    query = dict(request.query)
    if paging is Paging.PAGES:
        query["offset"] = str(yielded)
    else:
        query["cursor"] = dict(parse_qsl(urlsplit(following).query)).get("cursor", "")
    return Request(request.method, request.path, request.repeat, query=query)


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
