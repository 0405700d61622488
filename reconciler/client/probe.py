"""Look at the way to a service without the API key: names, encryption, proxies, and its clock."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

from msgspec import Struct, field

from reconciler.client.exchange import no_response, open_http
from reconciler.client.failures import date_of
from reconciler.client.limits import ClientSettings
from reconciler.client.waits import together
from reconciler.errors import ServiceError
from reconciler.model.connection import is_loopback

if TYPE_CHECKING:
    # Imported where a request is made: commands that make none start in two thirds of the time.
    import httpx

PROXY_VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
_PORTS = {"http": 80, "https": 443}
_LIMIT_HEADERS = ("ratelimit", "x-ratelimit")


class Probed(Struct, frozen=True):
    """What a service answered without a key.

    `expires` and `issuer` are those of its certificate, None without one. `limits` are headers
    about rate limits.
    """

    status: int
    date: datetime | None = None
    expires: datetime | None = None
    issuer: str | None = None
    limits: Mapping[str, str] = field(default_factory=dict)


def proxy_for(base_url: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the variable and `host:port` of the proxy of an address, without credentials."""
    parts = urlsplit(base_url)
    variables = {name.upper(): value for name, value in environ.items() if value}
    exceptions = {"no": variables.get("NO_PROXY", "")}
    host = parts.hostname or ""
    if is_loopback(host) or proxy_bypass_environment(host, exceptions):
        return None
    for name in (f"{parts.scheme.upper()}_PROXY", "ALL_PROXY"):
        if name in variables:
            written = variables[name]
            proxy = urlsplit(written if "://" in written else f"http://{written}")
            # Without the part before @, which may be a password.
            return name, proxy.netloc.rpartition("@")[2]
    return None


async def addresses_of(base_url: str, seconds: float) -> tuple[str, ...]:
    """Return the addresses of a host that accept connections to its port.

    Raises ServiceError if its name or all of its addresses can't be reached in a time.
    """
    parts = urlsplit(base_url)
    host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 443)
    try:
        async with asyncio.timeout(seconds):
            known = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )
    except (OSError, TimeoutError):
        raise ServiceError(
            f"the name {host} cannot be resolved",
            hint="check `base_url` and the DNS server of this machine",
        ) from None
    addresses = tuple(dict.fromkeys(str(item[4][0]) for item in known))
    accepted = await together(_accepts(address, port, seconds) for address in addresses)
    reached = [address for address, is_open in zip(addresses, accepted, strict=True) if is_open]
    if not reached:
        raise ServiceError(
            f"{host} port {port} does not accept connections ({', '.join(addresses)})",
            hint="check `base_url`, the firewall, and whether a proxy is needed",
        )
    return tuple(reached)


async def _accepts(address: str, port: int, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(address, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(seconds):
            await writer.wait_closed()
    return True


async def probe(base_url: str, path: str, settings: ClientSettings) -> Probed:
    """Send one GET without the key and return what the headers and the certificate say.

    Raises ReconcilerError if there is no answer.
    """
    import httpx

    try:
        async with (
            asyncio.timeout(settings.timeout),
            open_http(base_url, settings) as client,
            client.stream("GET", base_url + path) as response,
        ):
            certificate = _certificate(response)
            return Probed(
                response.status_code,
                date_of(response.headers.get("date")),
                _expiry(certificate),
                _issuer(certificate),
                {
                    name: value
                    for name, value in response.headers.items()
                    if name.lower().startswith(_LIMIT_HEADERS)
                },
            )
    except TimeoutError:
        message = f"no answer from {base_url} in {settings.timeout:g} s"
        raise ServiceError(message, hint="check the network and any proxy") from None
    except httpx.HTTPError as error:
        raise no_response(f"GET {path}", base_url, error) from None


def _certificate(response: httpx.Response) -> Mapping[str, object]:
    """Return the certificate of the service, empty for a connection without encryption."""
    stream = response.extensions.get("network_stream")
    connection = stream.get_extra_info("ssl_object") if stream is not None else None
    return (connection.getpeercert() or {}) if connection is not None else {}


def _expiry(certificate: Mapping[str, object]) -> datetime | None:
    text = certificate.get("notAfter")
    if not isinstance(text, str):
        return None
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), tz=UTC)


def _issuer(certificate: Mapping[str, object]) -> str | None:
    issuer = certificate.get("issuer")
    parts = issuer if isinstance(issuer, tuple) else ()
    names = dict(item for part in parts for item in part)
    return names.get("organizationName") or names.get("commonName")
