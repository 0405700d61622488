"""Send the operations of a kind: one object, or a list page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from reconciler.errors import InvalidResponse, ReconcilerError
from reconciler.kinds import behaviour_of
from reconciler.model.kind import Dialect, Kind
from reconciler.model.live import LiveObject
from reconciler.model.request import Operation, Paging, Query, Request, Routes
from reconciler.model.text import IMPLICIT_ENVIRONMENT, command_text
from reconciler.model.values import JSON, JSONObject
from reconciler.service.transport import Transport

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
            items, following = _page(body, request.label)
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


def _page(body: JSON, label: str) -> tuple[list[JSONObject], str | None]:
    results = body.get("results") if isinstance(body, Mapping) else None
    following = body.get("next") if isinstance(body, Mapping) else None
    is_page = isinstance(results, list) and all(isinstance(item, Mapping) for item in results)
    if not is_page or not (following is None or isinstance(following, str)):
        raise InvalidResponse(f"{label}: the response is not a page of objects")
    return results or [], following


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
