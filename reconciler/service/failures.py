"""What a failed request means: its exception, whether it is repeated, when to give up. No I/O.

The `type` of an error response is not reliable: 409, 402 and one of the 429s are `server_error`
(service.md, 5).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import inf
from typing import TypeAlias
from urllib.parse import urlsplit

import orjson
from msgspec import Struct

from reconciler.errors import (
    AmbiguousOutcome,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    ServiceError,
    Throttled,
    Unauthorized,
    Unavailable,
)
from reconciler.model.live import Repeat, Request
from reconciler.model.redaction import Mask
from reconciler.model.text import printable

_SECONDS = re.compile(r"\d{1,9}(\.\d*)?")
ADDON = (
    "add the addon in the billing settings of the organization; a self-hosted server needs a "
    "licence for it"
)
"""What to do where the organization lacks the paid feature of batch exports."""
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
    400: {"Data Pipelines addon": ADDON},
    401: {"": "check `api_key` of this environment: the key is missing, unknown or revoked"},
    403: {
        "missing required scope": "give the API key this scope (a :write scope includes :read)",
        "requested organization": "use a key of this organization, or correct `organization`; "
        "`reconciler doctor` shows which ones the key reaches",
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
_BY_PROXY = "a proxy or firewall probably answered, not the service: check `base_url` and its rules"
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds before the second attempt, and the limit up to which they double."""
THROTTLED_PAUSE = 30.0
"""Seconds after the first 429 without `Retry-After`; they double, too."""
UNREACHED_FOR = 5.0
"""Seconds for which a service is tried that has not answered any request of this run yet."""

OUTAGE = frozenset({None, 502, 503, 504, *range(520, 525)})
"""Statuses of a service that does not answer, None for no response."""
_TRANSIENT = OUTAGE | {408, 500}
LONGEST_CHAIN = 60
"""How often a request that does its work in steps is sent after a 500."""
_READINGS = 3
"""How often a response is read that is no JSON, such as the page of a proxy."""

Failure: TypeAlias = Throttled | Unavailable
EQUAL_FAILURES = 10
"""After so many equal failures in a row the next request would fail as well."""


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
    hint = _hint(status, str(body.get("detail")))
    if content and not body and error_type in (Unauthorized, Forbidden):
        # Nothing follows about the key: the service says in JSON why it refuses one.
        error_type, reason, hint = ServiceError, ": not the service's form of an error", _BY_PROXY
    return error_type(
        f"{request.label}: {status}{place}{reason}",
        hint=hint,
        status=status,
        code=_text(body.get("code"), str),
        attr=attr,
        retry_after=_retry_after(headers),
    )


def with_path(error: ServiceError, base_url: str) -> ServiceError:
    """Return an error, with a hint at the path of the base URL that may have caused a 404."""
    path = urlsplit(base_url).path
    if not path or not isinstance(error, NotFound) or error.hint is not None:
        return error
    return error.reworded(
        hint=f"`base_url` is {base_url}: remove {path} if the service is not below that path"
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


class Next(Struct, frozen=True):
    """What follows a failure."""

    most: float
    """How often the request may be sent in all, within `retry_for`: 1 for no repeat."""
    all_wait: bool = False
    """Whether other requests would fail as well, so that all have to wait."""
    at_once: bool = False
    """Whether the failure has done a part of the work, so that there is no pause."""


def after(request: Request, error: Failure) -> Next:
    """Return what follows a failure. Nothing else decides what is repeated.

    | failure                              | read, update, … | in steps    | create | who waits |
    | ------------------------------------ | --------------- | ----------- | ------ | --------- |
    | 429, also `throttled`                | repeat          | repeat      | repeat | all       |
    | 429 of another code                  | repeat          | repeat      | repeat | this one  |
    | not sent: no connection              | repeat          | repeat      | repeat | all       |
    | no response, 503                     | repeat          | repeat      | never  | all       |
    | 408, 502, 504, 520 to 524            | repeat          | repeat      | never  | this one  |
    | 500                                  | repeat          | 60, no wait | never  | this one  |
    | success that is no JSON              | 3 in all        | 3 in all    | never  | this one  |
    | any other                            | never           | never       | never  | -         |
    """
    if isinstance(error, Throttled):
        return Next(inf, all_wait=error.code in (None, "throttled"))
    status, all_wait = error.status, error.status in (None, 503)
    if not error.sent:
        return Next(inf, all_wait=True)
    if request.repeat is Repeat.AFTER_LOOKING:
        return Next(1, all_wait=all_wait)
    if request.repeat is Repeat.IN_STEPS and status == 500:
        return Next(LONGEST_CHAIN, at_once=True)
    if status is not None and status < 400:
        return Next(_READINGS)
    return Next(inf if status in _TRANSIENT else 1, all_wait=all_wait)


def pause(failures: int, error: Failure, *, jitter: Callable[[], float]) -> float:
    """Return the seconds to wait after so many failures in a row, counted from 1.

    `Retry-After` is honoured in full, since requests before its end count against the limit. A
    service that asks for no time again and again gets the pauses of other failures.
    """
    doubled = float(2 ** min(failures - 1, 20))
    growing = min(FIRST_PAUSE * doubled, LONGEST_PAUSE) * (0.5 + jitter() / 2)
    if error.retry_after is not None:
        return max(error.retry_after + jitter(), growing)
    return THROTTLED_PAUSE * doubled + jitter() if isinstance(error, Throttled) else growing


class Attempts(Struct):
    """The attempts of one request so far. Times are monotonic seconds."""

    request: Request
    began: float = 0.0
    """When the first one was sent."""
    sent: float = 0.0
    """When the last one was sent."""
    count: int = 0
    unclear: bool = False
    """Whether one before the last may have taken effect although it failed."""
    pause: float = 0.0
    """The seconds to wait after the last one."""
    _last_unclear: bool = False
    _failing_since: float | None = None
    _throttled: float = 0.0

    def begin(self, now: float) -> None:
        """Note that an attempt begins."""
        self.began = self.began if self.count else now
        self.sent = now
        self.count += 1
        self.unclear = self.may_have_applied

    @property
    def may_have_applied(self) -> bool:
        """Whether the request may have taken effect although it failed."""
        return self.request.method != "GET" and (self.unclear or self._last_unclear)

    def failed(self, error: ServiceError) -> None:
        """Note how the last attempt failed."""
        self._last_unclear = isinstance(error, Unavailable) and error.sent
        if not isinstance(error, Unavailable) or after(self.request, error).at_once:
            self._failing_since = None
        elif self._failing_since is None:
            self._failing_since = self.sent
        error.attempts, error.unclear = self.count, self.unclear

    def accepts_pause(self, error: Failure, seconds: float, *, max_wait: float) -> bool:
        """Note a pause. Return whether it is not longer than the service may ask for."""
        self.pause = seconds
        asked = 0.0
        if isinstance(error, Throttled):
            self._throttled += seconds
            asked = self._throttled
        elif error.retry_after is not None:
            asked = seconds
        return asked <= max_wait

    def in_time(self, error: Failure, *, now: float, retry_for: float) -> bool:
        """Return whether the next attempt would begin early enough."""
        if self._failing_since is None:
            return True
        pause = 0.0 if error.retry_after is not None else self.pause
        return now - self._failing_since + pause <= retry_for

    def final(self, error: Failure, *, now: float) -> ServiceError:
        """Return what the last failure means: an unknown outcome of a write, if one is unclear."""
        message = error.message.rstrip(".")
        if self.count > 1:
            message += f" (after {self.count} attempts in {now - self.began:.0f} s)"
        if not self.may_have_applied:
            return error.reworded(message)
        # An attempt that was interrupted counts, too.
        error.attempts = self.count
        return AmbiguousOutcome.after(
            error, f"{message}; outcome unknown, the request may have taken effect"
        )


class Breaker(Struct):
    """Watches the attempts and the ends of all requests."""

    retry_for: float
    reason: str | None = None
    """Why no more are sent."""
    _answered: bool = False
    _silent_since: float | None = None
    _failure: object = None
    _failures: int = 0

    @property
    def patience(self) -> float:
        """Return the seconds for which failed requests are repeated."""
        return self.retry_for if self._answered else min(self.retry_for, UNREACHED_FOR)

    def attempted(self, error: ServiceError | None, *, began: float, now: float) -> None:
        """Note how an attempt ended, None for a success."""
        if not isinstance(error, Unavailable) or error.status not in OUTAGE:
            self._answered, self._silent_since = True, None
            return
        self._answered = self._answered or error.status is not None
        self._silent_since = began if self._silent_since is None else self._silent_since
        if now - self._silent_since > self.patience:
            self.give_up(f"no usable response for {now - self._silent_since:.0f} s")

    def ended(self, error: ServiceError | None) -> None:
        """Note how a request ended, repeats included; None for a success."""
        failure: object = None
        if error is not None:
            unreached = error.status in OUTAGE
            failure = "no response" if unreached else error.status
        self._failures = self._failures + 1 if failure == self._failure else 1
        self._failure = failure
        equal = failure in (401, 403, "no response")
        if equal and self._failures >= EQUAL_FAILURES:
            self.give_up(f"{self._failures} requests in a row failed ({failure})")

    def give_up(self, reason: str) -> None:
        """Send no more requests."""
        self.reason = self.reason or reason
