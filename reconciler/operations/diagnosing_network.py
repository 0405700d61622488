"""The checks of `doctor` about the way to the service. None of them sends the API key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from msgspec.structs import replace

from reconciler.client import ClientSettings
from reconciler.client.probe import PROXY_VARIABLES, Probed, addresses_of, probe, proxy_for
from reconciler.commands.session import Session
from reconciler.errors import ReconcilerError
from reconciler.model.health import Check
from reconciler.model.text import listed
from reconciler.reading.access import KEY

_SECONDS = 5.0
_MOST = 4
_SOON = timedelta(days=14)
_MOST_SKEW = timedelta(seconds=60)
_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


async def network_checks(session: Session, base_url: str) -> list[Check]:
    """Return the checks of proxy, address, encryption, clock and rate limits."""
    environ = session.runtime.environ
    settings = session.runtime.client.changed_by(session.options.client.over(session.loaded.client))
    settings = replace(settings, timeout=_SECONDS, insecure_http=True)
    proxy = proxy_for(base_url, environ)
    checks = [_proxy(proxy, environ)]
    if proxy is None:
        checks.append(await _address(base_url))
    try:
        probed = await probe(base_url, KEY.path, settings)
    except ReconcilerError as error:
        return [*checks, Check.failed("answer", error.message, error.hint or "")]
    checks += _answer(base_url, probed, settings, environ, session.runtime.now())
    return checks


def _proxy(proxy: tuple[str, str] | None, environ: Mapping[str, str]) -> Check:
    if proxy is not None:
        return Check.fine("proxy", f"{proxy[1]} ({proxy[0]})")
    is_set = any(environ.get(name) or environ.get(name.lower()) for name in PROXY_VARIABLES)
    return Check.fine("proxy", "not used for this address" if is_set else "none")


async def _address(base_url: str) -> Check:
    try:
        reached = await addresses_of(base_url, _SECONDS)
    except ReconcilerError as error:
        return Check.failed("address", error.message, error.hint or "")
    return Check.fine("address", f"{base_url} accepts connections ({listed(reached, _MOST)})")


def _answer(
    base_url: str,
    probed: Probed,
    settings: ClientSettings,
    environ: Mapping[str, str],
    now: datetime,
) -> Iterator[Check]:
    yield _encryption(base_url, probed, environ, now)
    if probed.date is not None:
        skew = abs(now - probed.date)
        text = f"{skew.total_seconds():.0f} s from that of the service"
        if skew > _MOST_SKEW:
            yield Check.warning("clock", text, "correct the clock of this machine (NTP)")
        else:
            yield Check.fine("clock", text)
    yield Check.fine("rate limit", _limits(base_url, probed, settings))


def _encryption(base_url: str, probed: Probed, environ: Mapping[str, str], now: datetime) -> Check:
    name = "TLS"
    if urlsplit(base_url).scheme != "https":
        return Check.fine(name, "not used: the address begins with http://")
    used = [variable for variable in _AUTHORITIES if environ.get(variable)]
    text = f"issued by {probed.issuer}" if probed.issuer else "accepted"
    text += f", authorities from {', '.join(used)}" if used else ""
    if probed.expires is None:
        return Check.fine(name, text)
    text = f"valid until {probed.expires:%Y-%m-%d}, {text}"
    if probed.expires - now < _SOON:
        return Check.warning(name, text, "renew the certificate of the service")
    return Check.fine(name, text)


def _limits(base_url: str, probed: Probed, settings: ClientSettings) -> str:
    windows = " and ".join(map(str, settings.windows(base_url))) or "no limit"
    sent = ", ".join(f"{name}: {value}" for name, value in probed.limits.items())
    return f"{windows} (own); the service sends {sent or 'no headers about it'}"
