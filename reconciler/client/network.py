"""Reach a service: encryption, certificate authorities and proxies."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from reconciler.client.settings import ClientSettings
from reconciler.errors import ReconcilerError, ServiceError, Unavailable
from reconciler.model.connection import is_loopback
from reconciler.model.wording import printable
from reconciler.version import __version__

if TYPE_CHECKING:
    # Imported where a request is made: commands that make none start in two thirds of the time.
    import httpx

_Error = TypeVar("_Error", bound=BaseException)

IDLE_SECONDS = 2.0
"""After so much idle time a connection is not used again: the other end may just close it, and
then it would be unknown whether a request took effect."""
_CONNECT_SECONDS = 10.0
_LONGEST_REASON = 200
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
"""The codes of OpenSSL for a certificate whose authority is not known or incomplete."""


@asynccontextmanager
async def open_http(base_url: str, settings: ClientSettings) -> AsyncIterator[httpx.AsyncClient]:
    """Yield an HTTP client whose connections are closed at the end.

    Raises ReconcilerError if the address, its proxies or the certificate authorities can't be used.
    """
    async with _client(base_url, settings) as client:
        yield client


def _client(base_url: str, settings: ClientSettings) -> httpx.AsyncClient:
    import httpx

    address = _address(base_url)
    local = is_loopback(address.host)
    encrypted = address.scheme == "https"
    if not (encrypted or local or settings.insecure_http):
        raise ReconcilerError(
            f"{base_url}: the API key is not sent over unencrypted http",
            hint="set `base_url` to an https:// address. --insecure-http sends the key unencrypted",
        )
    # Calls wait for their turn before they get here, so the pool need not limit them.
    limits = httpx.Limits(
        max_connections=None,
        max_keepalive_connections=settings.parallelism,
        keepalive_expiry=IDLE_SECONDS,
    )
    connect = min(_CONNECT_SECONDS, settings.timeout / 2)
    # Reading the certificate authorities takes 60 ms, and plain HTTP needs none.
    verify = _authorities() if encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return httpx.AsyncClient(
            timeout=httpx.Timeout(settings.timeout, connect=connect),
            limits=limits,
            verify=verify,
            # A proxy would receive what is sent to a service of this machine, with the key.
            trust_env=not local,
            follow_redirects=False,
            headers={
                "User-Agent": f"reconciler/{__version__}",
                "Accept": "application/json",
                "Accept-Encoding": "gzip",
            },
        )
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise _bad_proxy(error) from None


def no_response(label: str, base_url: str, error: httpx.HTTPError) -> ServiceError:
    """Convert an exception of httpx, which no other module sees."""
    import httpx

    unsent = (
        httpx.ConnectError,
        httpx.ConnectTimeout,
        httpx.PoolTimeout,
        httpx.ProxyError,
        httpx.UnsupportedProtocol,
    )
    if not isinstance(error, unsent):
        reason = type(error).__name__
        return Unavailable(f"{label}: connection to {base_url} lost ({reason})")
    problem = _cause(error, ssl.SSLError)
    if isinstance(problem, ssl.SSLCertVerificationError):
        return _not_trusted(label, base_url, problem)
    reason = ""
    if isinstance(error, httpx.ProxyError):
        reason = f": the proxy answered {_shown(error)}"
    elif problem is not None:
        reason = f": TLS failed: {_shown(problem)}"
    elif _cause(error, socket.gaierror) is not None:
        reason = f": the name {_address(base_url).host} can't be resolved"
    elif _cause(error, ConnectionRefusedError) is not None:
        reason = ": connection refused"
    unreachable = Unavailable(
        f"{label}: can't connect to {base_url}{reason}",
        hint="check `base_url` of this environment, the network and any proxy",
    )
    unreachable.sent = False
    return unreachable


def _address(base_url: str) -> httpx.URL:
    import httpx

    try:
        return httpx.URL(base_url)
    except (httpx.InvalidURL, ValueError):
        raise not_a_url(base_url) from None


def not_a_url(base_url: str) -> ServiceError:
    """Return the error for an address that cannot be used."""
    return ServiceError(f"'{base_url}' is not a URL", hint="check `base_url` of this environment")


def _authorities() -> ssl.SSLContext:
    import httpx

    try:
        return httpx.create_ssl_context()
    except OSError as error:
        raise ReconcilerError(
            f"the certificate authorities can't be read: {_shown(error.strerror or error)}",
            hint="check the variables SSL_CERT_FILE and SSL_CERT_DIR: a file of certificates in "
            "PEM format, and a folder of them",
        ) from None


def _bad_proxy(error: Exception) -> ReconcilerError:
    # The text of the error may contain the password of a proxy.
    missing = isinstance(error, ImportError)
    reason = "SOCKS needs the package socksio" if missing else "invalid or unsupported address"
    return ReconcilerError(
        f"the proxy of the environment can't be used: {reason}",
        hint="check the variables HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY; use an http:// "
        "or https:// proxy" + (", or install httpx[socks]" if missing else ""),
    )


def _cause(error: BaseException, kind: type[_Error]) -> _Error | None:
    """Return the error of a kind behind an error, None without one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, kind):
        cause = cause.__cause__ or cause.__context__
    return cause


def _not_trusted(label: str, base_url: str, error: ssl.SSLCertVerificationError) -> ServiceError:
    unknown = error.verify_code in _UNKNOWN_AUTHORITY
    return ServiceError(
        f"{label}: certificate of {_address(base_url).host} is not trusted: "
        f"{_shown(error.verify_message)}",
        hint="if the service uses a private certificate authority, set SSL_CERT_FILE to a file "
        "with its certificate"
        if unknown
        else "check `base_url` of this environment and the clock of this machine",
    )


def _shown(reason: object) -> str:
    return printable(" ".join(str(reason).split()))[:_LONGEST_REASON]
