"""Exchange one request for its response over HTTP: with secrets, encrypted, within bounds.

A reference that can't be resolved, or has a value that no secret can be, is an error before any
request: servers store an empty or a placeholder secret (service.md, 1.5).
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TypeVar
from urllib.request import getproxies, proxy_bypass

import httpx
import orjson
from msgspec import Struct
from msgspec.structs import replace

from reconciler.errors import ReconcilerError, SecretUnavailable, ServiceError, Unavailable
from reconciler.model.live import Request
from reconciler.model.redaction import Mask, Redactor
from reconciler.model.settings import SecretSettings, is_loopback
from reconciler.model.text import printable
from reconciler.model.values import CLEARED, JSON, SecretRef, SecretSource, SecretValue, map_leaves
from reconciler.providers import providers
from reconciler.providers.provider import Flaw, SecretContext, flaw_of
from reconciler.service.failures import service_error
from reconciler.service.pace import ClientSettings, Waits
from reconciler.version import __version__

MOST_BYTES = 32 * 2**20
"""The largest response body, after decompression."""
MOST_VALUES = 1_000_000
"""The most values in a response body: each needs memory, however short its text is."""
MOST_LEVELS = 100
"""The deepest nesting of a response body: what walks through it must not run out of stack."""
_ENCODINGS = ("", "identity", "gzip")
_CONTAINERS: frozenset[type] = frozenset({dict, list})
_Error = TypeVar("_Error", bound=BaseException)
IDLE_SECONDS = 2.0
"""After so much idle time a connection is not used again: the other end may just close it, and
then it would be unknown whether a request took effect."""
_CONNECT_SECONDS = 10.0
_LONGEST_REASON = 200
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
"""The codes of OpenSSL for a certificate whose authority is not known or incomplete."""


class SecretResolver:
    """Resolves each secret once in a run. `plain` returns the plain texts of the configuration."""

    def __init__(
        self,
        settings: SecretSettings,
        environ: Mapping[str, str],
        *,
        plain: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._context = SecretContext(settings, environ)
        self._values: dict[tuple[SecretSource, bool], SecretValue] = {}
        self._plain = plain
        self._redactor: Redactor | None = None

    def resolve(self, ref: SecretRef, *, for_api_key: bool = False) -> SecretValue:
        """Return the value. Raises SecretUnavailable, which names the reference, with a hint."""
        parts = [
            part if isinstance(part, str) else self._value(part, for_api_key=for_api_key).reveal()
            for part in ref.parts
        ]
        value = "".join(parts)
        if len(parts) > 1 and (flaw := flaw_of(value)) is not None:
            raise _unusable(", ".join(map(str, ref.sources)), flaw)
        return SecretValue(value)

    def fill(self, body: JSON) -> JSON:
        """Return the body of a request with every reference replaced by its value."""
        return map_leaves(
            body,
            lambda leaf: self._sent(leaf) if isinstance(leaf, SecretRef) else leaf,
        )

    def _sent(self, ref: SecretRef) -> str | None:
        return None if ref == CLEARED else self.resolve(ref).reveal()

    def resolve_effortless(self, ref: SecretRef, *, for_api_key: bool = False) -> None:
        """Resolve a secret, so that it is masked, if that has no effect and takes no time."""
        used = [providers().get(source.source) for source in ref.sources]
        if all(provider is not None and provider.effortless for provider in used):
            with suppress(SecretUnavailable):
                self.resolve(ref, for_api_key=for_api_key)

    def check(self, needed: Iterable[tuple[str, SecretRef]]) -> None:
        """Resolve all references, each given with what needs it.

        Raises SecretUnavailable that lists every missing secret.
        """
        missing: dict[tuple[str, str | None], list[str]] = {}
        for user, ref in needed:
            try:
                self.resolve(ref)
            except SecretUnavailable as error:
                missing.setdefault((error.message, error.hint), []).append(user)
        if missing:
            raise SecretUnavailable(
                "\n".join(
                    f"{message}\n    needed by {', '.join(users)}"
                    for (message, _), users in missing.items()
                ),
                hint="\n".join(dict.fromkeys(hint for _, hint in missing if hint)) or None,
            )

    @property
    def redactor(self) -> Redactor:
        """What masks the secrets that are resolved so far."""
        if self._redactor is None:
            self._redactor = Redactor(self._values.values(), self._plain)
        return self._redactor

    def mask(self, text: str) -> str:
        """Return the text with resolved secrets masked, in every form."""
        return self.redactor.mask(text)

    def _value(self, source: SecretSource, *, for_api_key: bool) -> SecretValue:
        # The API key may come from where no other secret may come from.
        wanted = (source, for_api_key)
        if wanted not in self._values:
            provider = providers().get(source.source)
            if provider is None or provider.look_up is None:
                raise SecretUnavailable(f"unknown provider in {source}")
            value = provider.look_up(source, replace(self._context, for_api_key=for_api_key))
            if (flaw := flaw_of(value, self._context.settings.folder)) is not None:
                raise _unusable(str(source), flaw)
            self._values[wanted] = SecretValue(value)
            self._redactor = None
        return self._values[wanted]


def _unusable(sources: str, flaw: Flaw) -> SecretUnavailable:
    what, fix = flaw
    return SecretUnavailable(f"secret {sources} {what}", hint=f"{fix}; it is not sent")


class Received(Struct, frozen=True):
    """A response."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    """Empty if there is a `problem`."""
    problem: str | None = None
    """What about its body is not accepted."""

    def body(self, request: Request, *, mask: Mask = str) -> JSON:
        """Return the decoded body, None without one. Raises ServiceError for an error response.

        `mask` masks secrets in texts of the service.
        """
        if self.status >= 400:
            raise service_error(request, self.status, self.content, self.headers, mask=mask)
        if 300 <= self.status < 400:
            raise ServiceError(
                f"{request.label}: {self.status} redirect, not followed with the API key",
                hint="set `base_url` to the address it redirects to, if you trust that address",
                status=self.status,
            )
        if self.problem is not None:
            raise self._unusable(request, self.problem)
        if not self.content:
            return None
        try:
            decoded: JSON = orjson.loads(self.content)
        except orjson.JSONDecodeError:
            raise self._unusable(request, "that is not JSON") from None
        if _too_deep(decoded):
            raise self._unusable(request, f"nested more than {MOST_LEVELS} levels deep")
        return decoded

    def _unusable(self, request: Request, problem: str) -> Unavailable:
        return Unavailable(
            f"{request.label}: {self.status} with a body {problem}",
            hint="check that `base_url` is the address of the API",
            status=self.status,
        )


class Exchange(Struct, frozen=True):
    """Sends requests of one service once."""

    client: httpx.AsyncClient
    base_url: str
    timeout: float
    """For the whole exchange, in seconds."""
    waits: Waits

    async def run(
        self,
        request: Request,
        *,
        headers: Mapping[str, str],
        content: bytes | None,
    ) -> Received:
        """Send a request and return its response.

        Raises ServiceError.
        """
        try:
            built = self.client.build_request(
                request.method,
                self.base_url + request.path,
                params=dict(request.query) or None,
                content=content,
                headers=dict(headers),
            )
        except (httpx.InvalidURL, ValueError):
            raise not_a_url(self.base_url) from None
        try:
            async with self.waits.deadline(self.timeout):
                return await self._received(built)
        except TimeoutError:
            raise self._too_late(request) from None
        except httpx.HTTPError as error:
            waiting = isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout)
            late = self._too_late(request) if waiting else None
            raise late or no_response(request.label, self.base_url, error) from None
        except (httpx.InvalidURL, ValueError):
            # The address of a redirect, which httpx reads although it does not follow it.
            raise Unavailable(
                f"{request.label}: the headers of the response can't be read",
                hint="check that `base_url` is the address of the API",
            ) from None

    async def _received(self, built: httpx.Request) -> Received:
        async with aclosing(await self.client.send(built, stream=True)) as response:
            content, problem = await _content_of(response)
        return Received(response.status_code, response.headers, content, problem)

    def _too_late(self, request: Request) -> Unavailable:
        if self.waits.stopped:
            return Unavailable(f"{request.label}: stopped while waiting for the response")
        return Unavailable(
            f"{request.label}: no complete response from {self.base_url} in {self.timeout:g} s"
        )


async def _content_of(response: httpx.Response) -> tuple[bytes, str | None]:
    """Return the decompressed body, or an empty one and why it is not accepted."""
    if response.headers.get("content-encoding", "").strip().lower() not in _ENCODINGS:
        return b"", "in an encoding that was not requested"
    body = bytearray()
    try:
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > MOST_BYTES:
                return b"", f"of more than {MOST_BYTES >> 20} MB"
    except httpx.DecodingError:
        return b"", "that is not valid gzip"
    if sum(body.count(mark) for mark in (b"{", b"[", b",")) > MOST_VALUES:
        return b"", f"of more than {MOST_VALUES:,} values"
    return bytes(body), None


def _too_deep(value: JSON) -> bool:
    """Return whether a value is nested deeper than MOST_LEVELS."""
    level: list[JSON] = [value] if value.__class__ in _CONTAINERS else []
    for _ in range(MOST_LEVELS):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if outer.__class__ is dict else outer)
            if inner.__class__ in _CONTAINERS
        ]
        if not level:
            return False
    return True


def open_http(base_url: str, settings: ClientSettings) -> httpx.AsyncClient:
    """Return an HTTP client, whose connections are closed at the end of its context.

    Raises ReconcilerError if the address, its proxies or the certificate authorities can't be used.
    """
    address = _address(base_url)
    local = is_loopback(address.host)
    encrypted = address.scheme == "https"
    if not (encrypted or local or settings.insecure_http):
        raise ReconcilerError(
            f"{base_url}: the API key is not sent over unencrypted http",
            hint="set `base_url` to an https:// address, or set `client.insecure_http: true`",
        )
    # Calls wait for their turn before they get here, so the pool need not limit them.
    limits = httpx.Limits(
        max_connections=None,
        max_keepalive_connections=settings.parallelism,
        keepalive_expiry=IDLE_SECONDS,
    )
    connect = min(_CONNECT_SECONDS, settings.timeout / 2)
    # Reading the certificate authorities takes 60 ms, and plain HTTP needs none.
    verify = _authorities() if encrypted else None
    try:
        return httpx.AsyncClient(
            timeout=httpx.Timeout(settings.timeout, connect=connect),
            limits=limits,
            verify=verify or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            # A proxy would receive what is sent to a service of this machine, with the key.
            trust_env=not local,
            follow_redirects=False,
            # Cookies of answers are not kept: one with odd bytes would break every later request.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            headers={
                "User-Agent": f"reconciler/{__version__}",
                "Accept": "application/json",
                "Accept-Encoding": "gzip",
            },
        )
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise _bad_proxy(error) from None


def _is_proxied(host: str) -> bool:
    """Return whether requests to a host go through a proxy, as httpx looks for one."""
    named = not getproxies().keys().isdisjoint(("http", "https", "all"))
    return named and not (is_loopback(host) or proxy_bypass(host))


def no_response(label: str, base_url: str, error: httpx.HTTPError) -> ServiceError:
    """Convert an exception of httpx, which no other module sees."""
    unsent = (
        httpx.ConnectError,
        httpx.ConnectTimeout,
        httpx.PoolTimeout,
        httpx.ProxyError,
        httpx.UnsupportedProtocol,
    )
    if not isinstance(error, unsent):
        reason = type(error).__name__
        if isinstance(error, httpx.RemoteProtocolError):
            reason = "closed early, or the response is not HTTP"
        return Unavailable(f"{label}: connection to {base_url} lost ({reason})")
    problem = _cause(error, ssl.SSLError)
    if isinstance(problem, ssl.SSLCertVerificationError):
        return _not_trusted(label, base_url, problem)
    host, reason = _address(base_url).host, ""
    proxy = " through the proxy of the environment" if _is_proxied(host) else ""
    if isinstance(error, httpx.ProxyError):
        reason = f": the proxy answered {_shown(error)}"
    elif problem is not None:
        reason = f": TLS failed: {_shown(problem)}"
    elif _cause(error, socket.gaierror) or _cause(error, UnicodeError):
        reason = f": the name {'of the proxy' if proxy else host} can't be resolved"
    elif _cause(error, ConnectionRefusedError) is not None:
        reason = ": connection refused"
    unreachable = Unavailable(
        f"{label}: can't connect to {base_url}{proxy}{reason}",
        hint="check `base_url` of this environment, the network and any proxy",
    )
    unreachable.sent = False
    return unreachable


def _address(base_url: str) -> httpx.URL:
    try:
        address = httpx.URL(base_url)
        _ = address.host  # Raises ValueError for a name that no punycode decodes to.
    except (httpx.InvalidURL, ValueError):
        raise not_a_url(base_url) from None
    return address


def not_a_url(base_url: str) -> ServiceError:
    """Return the error for an address that cannot be used."""
    return ServiceError(f"'{base_url}' is not a URL", hint="check `base_url` of this environment")


def _authorities() -> ssl.SSLContext:
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
