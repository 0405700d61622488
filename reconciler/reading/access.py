"""Read what the API key may do and see. Nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from reconciler.client import Transport
from reconciler.errors import InvalidResponse, NotFound
from reconciler.model.dialect import Dialect
from reconciler.model.kind import Kind
from reconciler.model.request import Repeat, Request
from reconciler.model.routes import Routes
from reconciler.model.values import JSON
from reconciler.reading.key import KEY

_ORGANIZATIONS = "/api/organizations/"


class KeyAccess(Struct, frozen=True):
    """What an API key says about itself (docs/service.md, 12).

    `projects` and `organizations` are its limits, () for none.
    """

    label: str
    scopes: tuple[str, ...]
    projects: tuple[str, ...] = ()
    organizations: tuple[str, ...] = ()


class Visible(Struct, frozen=True):
    """How many objects of a kind the key sees, and the dialect that the first one shows."""

    count: int | None
    dialect: Dialect | None


async def read_key(transport: Transport) -> KeyAccess | None:
    """Return what the key says about itself, None if the server does not have this resource.

    Raises ServiceError.
    """
    try:
        body = (await transport.send(KEY)).body
    except NotFound:
        return None
    if not isinstance(body, Mapping) or not isinstance(body.get("scopes"), list):
        raise InvalidResponse(f"{KEY.label}: the response is not a key")
    return KeyAccess(
        str(body.get("label") or ""),
        _texts(body["scopes"]),
        _texts(body.get("scoped_teams")),
        _texts(body.get("scoped_organizations")),
    )


async def read_organizations(transport: Transport) -> Mapping[str, str]:
    """Return the names of the organizations that the key sees, by id. Raises ServiceError."""
    items, _ = await _page(transport, _ORGANIZATIONS)
    return {str(item.get("id")): str(item.get("name")) for item in items}


async def read_visible(transport: Transport, kind: Kind, organization: str) -> Visible:
    """Return how many objects of a kind an organization has, in one call. Raises ServiceError."""
    items, count = await _page(transport, Routes(kind, organization).collection, limit="1")
    dialect = kind.dialect_of(items[0]) if items else None
    return Visible(count, dialect)


async def _page(
    transport: Transport, path: str, **query: str
) -> tuple[list[Mapping[str, JSON]], int | None]:
    body = (await transport.send(Request("GET", path, Repeat.SAFE, query=query))).body
    results = body.get("results") if isinstance(body, Mapping) else None
    if not isinstance(results, list) or not all(isinstance(item, Mapping) for item in results):
        raise InvalidResponse(f"GET {path}: the response is not a page of objects")
    count = body.get("count") if isinstance(body, Mapping) else None
    return results, count if isinstance(count, int) else None


def _texts(value: JSON) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()
