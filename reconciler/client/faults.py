"""An answer that is no success, or no answer at all, to our exceptions.

Decided by status and then by code: `type` is not reliable (409, 402 and one of the 429s call
themselves server_error; service-facts 5). A body that is not the service's own error shape may
hold anything and is never shown.
"""

from __future__ import annotations

from collections.abc import Mapping

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
from reconciler.model.request import Request
from reconciler.model.wording import printable

LONGEST_DETAIL = 256

_BY_STATUS: Mapping[int, type[ServiceError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: Throttled,
}


def refusal(
    request: Request, status: int, content: bytes, headers: Mapping[str, str]
) -> ServiceError:
    """The exception for an answer with a status of 400 or more."""
    body = _error_body(content)
    code, attr = _word(body.get("code")), _word(body.get("attr"))
    detail = _sentence(body.get("detail"))
    known = _BY_STATUS.get(status) or (Invalid if status < 500 else Unavailable)
    what = f"{request.label}: {status}"
    where = f" ({attr})" if attr else ""
    said = f": {detail}" if detail else ""
    return known(
        f"{what}{where}{said}",
        hint=_way_out(status, code, detail),
        status=status,
        code=code,
        attr=attr,
        retry_after=_seconds(headers.get("retry-after")),
    )


def _error_body(content: bytes) -> Mapping[str, object]:
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    shape = isinstance(body, dict) and isinstance(body.get("detail"), str) and "code" in body
    return body if shape else {}


def _word(value: object) -> str | None:
    return printable(value[:LONGEST_DETAIL]) if isinstance(value, str) else None


def _sentence(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    folded = " ".join("".join(each if each.isprintable() else " " for each in value).split())
    return folded if len(folded) <= LONGEST_DETAIL else f"{folded[:LONGEST_DETAIL]}…"


def _seconds(value: str | None) -> float | None:
    try:
        return max(0.0, float(value)) if value is not None else None
    except ValueError:
        return None


_SAYINGS = (
    (403, "missing required scope", "give the API key that scope (a :write scope includes :read)"),
    (403, "does not support personal API key", "this is for browser sessions only: no scope helps"),
    (404, "rganization", "check `organization`, and that the key's user is a member of it"),
)

_WAYS_OUT: Mapping[int, str] = {
    401: "the API key is missing, unknown or revoked: check `api_key` of this environment",
    403: "the key's user, its limits or a feature of the plan do not allow this",
    409: "the name is taken by another object, perhaps one that differs in case only",
}


def _way_out(status: int, code: str | None, detail: str | None) -> str | None:
    if status == 429 and code == "too_many_concurrent_backfills":
        return "wait for running backfills to finish"
    for of_status, words, way in _SAYINGS:
        if status == of_status and words in (detail or ""):
            return way
    return _WAYS_OUT.get(status)
