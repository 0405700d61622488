"""Abort a connection from inside the application; ASGI has no message for it."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

_TRANSPORTS: dict[tuple[str, int], asyncio.Transport] = {}


class Connection(H11Protocol):
    """uvicorn's protocol, whose transports can be found by the client's address."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the transport."""
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        if peer:
            _TRANSPORTS[peer[0], peer[1]] = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Unregister the transport."""
        for peer, transport in list(_TRANSPORTS.items()):
            if transport is self.transport:
                del _TRANSPORTS[peer]
        super().connection_lost(exc)


def abort(request: Request) -> None:
    """End the connection of a request at once, without an answer."""
    if request.client is not None:
        transport = _TRANSPORTS.get((request.client.host, request.client.port))
        if transport is not None:
            transport.abort()
