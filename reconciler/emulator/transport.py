"""What is below the interface: which hosts are served, and how a connection is broken."""

from __future__ import annotations

import asyncio
import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

import orjson
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

SWITCHBOARD = "/_emulator/"
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s/:?#@\[\]]+))(?::\d*)?")
_OWN = ("", "none", "same-origin")
"""Values of Sec-Fetch-Site of requests that no foreign page makes."""


class Guard:
    """ASGI middleware that refuses foreign hosts and origins with 403.

    The Host must be loopback, the bound address or an allowed name (DNS rebinding). The
    switchboard, which needs no key, also refuses requests of other sites.
    """

    def __init__(self, app: ASGIApp, *, bound: str, allowed: tuple[str, ...] = ()) -> None:
        self._app = app
        self._names = {name.lower() for name in (bound, "localhost", *allowed)}
        address = _address(bound)
        self._any_address = address is not None and address.is_unspecified

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            problem = self._problem(
                scope["path"],
                headers.get(b"host", b"").decode("latin-1"),
                headers.get(b"origin", b"").decode("latin-1"),
                headers.get(b"sec-fetch-site", b"").decode("latin-1"),
            )
            if problem is not None:
                await _refuse(problem, send)
                return
        await self._app(scope, receive, send)

    def _problem(self, path: str, host: str, origin: str, site: str) -> str | None:
        if not self._serves(_name_of(host)):
            return f"host {host!r} is not served; allow it with --allow-host"
        if not path.startswith(SWITCHBOARD):
            return None
        if site not in _OWN:
            return f"{site} requests are not allowed here"
        if origin and urlsplit(origin).netloc.lower() != host.lower():
            return f"origin {origin!r} is not allowed here"
        return None

    def _serves(self, name: str) -> bool:
        if name in self._names:
            return True
        address = _address(name)
        return address is not None and (address.is_loopback or self._any_address)


def _name_of(host: str) -> str:
    """Return the name in a Host header, without port and brackets; "" for an invalid one."""
    match = _HOST.fullmatch(host.lower())
    return match[1] or match[2] if match is not None else ""


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name)
    except ValueError:
        return None


async def _refuse(problem: str, send: Send) -> None:
    body = orjson.dumps({"error": problem})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})


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
