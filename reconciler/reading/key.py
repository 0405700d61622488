"""Read what the API key may do."""

from __future__ import annotations

from reconciler.client import Transport
from reconciler.errors import ServiceError
from reconciler.model.request import Repeat, Request

_KEY = Request("GET", "/api/personal_api_keys/@current/", Repeat.SAFE)
_ALL, _WRITE = "*", ":write"


async def key_may_write(transport: Transport) -> bool | None:
    """Return whether the API key may change anything, None if the service does not say."""
    try:
        answer = await transport.send(_KEY)
    except ServiceError:
        # Older versions do not have this resource.
        return None
    scopes = answer.body.get("scopes") if isinstance(answer.body, dict) else None
    if not isinstance(scopes, list):
        return None
    return any(scope == _ALL or str(scope).endswith(_WRITE) for scope in scopes)
