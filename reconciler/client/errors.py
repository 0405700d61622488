"""Convert error responses into exceptions, by status and then by `code`.

`type` is not reliable: 409, 402 and one of the 429s are `server_error` (docs/service.md, 5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import orjson

from reconciler.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    ServiceError,
    Throttled,
    Unauthorized,
    Unavailable,
)
from reconciler.model.redaction import Mask
from reconciler.model.request import Request
from reconciler.model.wording import printable

_SECONDS = re.compile(r"\d{1,9}(\.\d*)?")
_LONGEST = 256
"""Characters of a server's text in a message: longer ones are cut."""

_BY_STATUS: Mapping[int, type[ServiceError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    408: Unavailable,
    429: Throttled,
}

_HINTS: Mapping[int, Mapping[str, str]] = {
    401: {"": "check `api_key` of this environment: the key is missing, unknown or revoked"},
    403: {
        "missing required scope": "give the API key this scope (a :write scope includes :read)",
        "does not support personal API key": "no scope allows this: it requires a login session",
        "": "check the role of the key's user, the limits of the key and the features of the plan",
    },
    404: {"rganization": "check `organization`, and that the key's user is a member of it"},
    407: {"": "the proxy requires authentication: check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY"},
    502: {"": "a proxy answered, not the service: check its status page, or try again later"},
    409: {
        "": "choose another name: this one is taken, perhaps with different upper and lower case"
    },
}
"""By status and words of the detail. The first one that fits counts."""


def service_error(
    request: Request,
    status: int,
    content: bytes,
    headers: Mapping[str, str],
    *,
    mask: Mask = str,
) -> ServiceError:
    """Return the exception for a response with a status of 400 or more.

    `mask` masks secrets in texts of the service, before they are folded or cut.
    """
    body = _error_body(content)
    attr = _text(body.get("attr"), mask)
    detail = _text(body.get("detail"), mask)
    place = f" ({attr})" if attr else ""
    reason = f": {detail}" if detail else ""
    error_type = _BY_STATUS.get(status) or (Invalid if status < 500 else Unavailable)
    return error_type(
        f"{request.label}: {status}{place}{reason}",
        hint=_hint(status, str(body.get("detail"))),
        status=status,
        code=_text(body.get("code"), str),
        attr=attr,
        retry_after=_retry_after(headers),
    )


def note_path(error: ServiceError, base_url: str) -> None:
    """Add the path of the base URL to an error without a hint that it may have caused."""
    path = urlsplit(base_url).path
    if path and isinstance(error, NotFound) and error.hint is None:
        error.hint = (
            f"`base_url` is {base_url}: remove {path} if the service is not below that path"
        )


def _error_body(content: bytes) -> Mapping[str, object]:
    """Return the body, empty unless it has the service's error shape: a proxy may say anything."""
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    valid = isinstance(body, dict) and isinstance(body.get("detail"), str) and "code" in body
    return body if valid else {}


def _text(value: object, mask: Mask) -> str | None:
    """Return a server's text as one printable line of limited length, without secrets."""
    if not isinstance(value, str):
        return None
    line = printable(" ".join(mask(value).split()))
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `Retry-After`, None without a valid one.

    A date counts from the `Date` of the same response, so that no clock has to be right.
    """
    value = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    try:
        until = parsedate_to_datetime(value)
        wait = until - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0.0, wait.total_seconds())


def date_of(text: str | None) -> datetime | None:
    """Return the time of a `Date` header, None without a valid one."""
    try:
        return parsedate_to_datetime(text).astimezone(UTC) if text else None
    except (ValueError, OverflowError):
        return None


def _hint(status: int, detail: str) -> str | None:
    hints = (hint for words, hint in _HINTS.get(status, {}).items() if words in detail)
    return next(hints, None)
