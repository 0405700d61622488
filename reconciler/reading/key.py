"""Read what the API key may do, and what its form says about the server."""

from __future__ import annotations

from reconciler.client import Transport
from reconciler.errors import ServiceError
from reconciler.model.dialect import Dialect
from reconciler.model.request import Repeat, Request
from reconciler.model.values import JSON

KEY = Request("GET", "/api/personal_api_keys/@current/", Repeat.SAFE)
_ALL, _WRITE = "*", ":write"
_SINCE_2026 = frozenset({"description", "is_legacy_hashing"})
"""Fields that only servers of autumn 2026 show (docs/service.md, 12)."""


async def key_may_write(transport: Transport) -> bool | None:
    """Return whether the API key may change anything, None if the service does not say."""
    body = await _key(transport)
    scopes = body.get("scopes") if isinstance(body, dict) else None
    if not isinstance(scopes, list):
        return None
    return any(scope == _ALL or str(scope).endswith(_WRITE) for scope in scopes)


async def dialect_of_key(transport: Transport) -> Dialect | None:
    """Return the dialect that the API key shows, None if it does not show one.

    Every key may read itself, so this works in an organization without exports.
    """
    body = await _key(transport)
    is_newest = isinstance(body, dict) and body.keys() >= _SINCE_2026
    return Dialect.V2026 if is_newest else None


async def _key(transport: Transport) -> JSON:
    try:
        return (await transport.send(KEY)).body
    except ServiceError:
        # Older versions do not have this resource.
        return None
