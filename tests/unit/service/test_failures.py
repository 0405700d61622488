"""What a failed request means: its exception, whether it is repeated, and after which pause."""

from __future__ import annotations

import json
import socket
from math import inf
from typing import Any

import httpx
import pytest

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
from reconciler.service.failures import Attempts, Failure, after, pause, service_error
from reconciler.service.http import no_response

READ = Request("GET", "/api/x/", Repeat.SAFE)
PATCH = Request("PATCH", "/x/1/", Repeat.SAFE, body={})
DELETE = Request("DELETE", "/x/1/", Repeat.SAFE)
STEPS = Request("DELETE", "/x/1/", Repeat.IN_STEPS)
CREATE = Request("POST", "/x/", Repeat.AFTER_LOOKING, body={})
URL = "https://eu.example"
AT = "Wed, 21 Oct 2026 07:28:30 GMT"


def converted(status: int, body: object = None, **headers: str) -> ServiceError:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return service_error(READ, status, content, sent)


def body(detail: str, code: str = "error", attr: str | None = None) -> dict[str, object]:
    return {"type": "server_error", "code": code, "detail": detail, "attr": attr}


def failed(status: int | None, **details: Any) -> Unavailable:
    return Unavailable("GET /x/: failed", status=status, **details)


def unsent() -> Unavailable:
    error = Unavailable("can't connect")
    error.sent = False
    return error


# Errors


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *((400, Invalid), (401, Unauthorized), (402, Invalid), (403, Forbidden), (404, NotFound)),
        *((408, Unavailable), (409, Conflict), (415, Invalid), (429, Throttled)),
        *((500, Unavailable), (503, Unavailable)),
    ],
)
def test_the_status_decides_and_not_the_type(status: int, expected: type[ServiceError]) -> None:
    error = converted(status, body("no", "required", "name"))
    assert (type(error), error.status) == (expected, status)
    assert (error.code, error.attr) == ("required", "name")


BAD_NAME = body("This field is required.", "required", "name")
HOSTILE = body("a\n b\x1b[2J\u202e" + "c" * 500)


@pytest.mark.parametrize(
    ("status", "content", "message"),
    [
        (400, BAD_NAME, ": 400 (name): This field is required."),
        *(
            # A body of another shape is not shown.
            pytest.param(502, content, ": 502", id=str(content))
            for content in (b"<html>token=abc</html>", b"", b"[]", {"detail": "a"}, {"code": "a"})
        ),
        # A long or hostile text is one printable line of limited length.
        pytest.param(400, HOSTILE, f": 400: a b\\x1b[2J\\u202e{'c' * 240}…", id="hostile"),
    ],
)
def test_the_message_has_the_request_the_status_the_field_and_the_reason(
    status: int, content: object, message: str
) -> None:
    assert converted(status, content).message == f"GET /api/x/{message}"


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        *(("7", "", 7.0), ("0.5", "", 0.5), ("-3", "", None), ("9e9", "", None)),
        *(("soon", "", None), ("", "", None)),
        # A date counts from the date of the response.
        (AT, "Wed, 21 Oct 2026 07:28:00 GMT", 30.0),
        (AT, "Wed, 21 Oct 2026 07:29:00 GMT", 0.0),
        *((AT, "", None), (AT, "today", None), (AT, "Wed, 21 Oct 2026 07:28:00 -0000", None)),
        ("Wed, 21 Oct 2026 07:28:30 +99999999999999", AT, None),
        (f"Wed, 21 Oct {'9' * 23} 07:28:30 GMT", AT, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, date: str, seconds: float | None) -> None:
    headers = {"retry_after": value} | ({"date": date} if date else {})
    assert converted(429, body("slow"), **headers).retry_after == seconds


@pytest.mark.parametrize(
    ("status", "detail", "hint"),
    [
        (401, "Invalid key.", "check `api_key`"),
        pytest.param(400, "The Data Pipelines addon is required.", "add the addon", id="f3"),
        (403, "API key missing required scope 'project:write'", "give the API key this scope"),
        (403, "This action does not support personal API key access", "login session"),
        (403, "You don't have access.", "check the role"),
        (404, "Organization not found.", "check `organization`"),
        (404, "Not found.", None),
        (409, "Name taken.", "choose another name"),
        *(pytest.param(status, None, "proxy", id=f"apply_a8-{status}") for status in (407, 502)),
    ],
)
def test_a_hint_names_the_fix(status: int, detail: str | None, hint: str | None) -> None:
    shown = converted(status, b"<html>" if detail is None else body(detail)).hint
    assert (shown is None) if hint is None else hint in (shown or "")


def connect_error(cause: Exception) -> httpx.ConnectError:
    """Return an error as httpx raises it: the cause is two levels below."""
    inner, error = OSError("All attempts failed"), httpx.ConnectError("All attempts failed")
    inner.__cause__, error.__cause__ = cause, inner
    return error


NO_NAME = "the name eu.example can't be resolved", "the name of the proxy can't be resolved"


@pytest.mark.parametrize(
    ("cause", "reasons"),
    [
        (socket.gaierror(-2, "unknown"), NO_NAME),
        (UnicodeError("label too long"), NO_NAME),
        (ConnectionRefusedError(111, "refused"), ("connection refused", "connection refused")),
    ],
)
def test_apply_a8_the_reason_of_a_failed_connection_is_shown(
    monkeypatch: pytest.MonkeyPatch, cause: Exception, reasons: tuple[str, str]
) -> None:
    direct, through = f"GET /x: can't connect to {URL}", " through the proxy of the environment"
    for name, message in (
        ("", f"{direct}: {reasons[0]}"),
        ("HTTPS_PROXY", f"{direct}{through}: {reasons[1]}"),
        ("NO_PROXY", f"{direct}: {reasons[0]}"),
    ):
        if name:
            monkeypatch.setenv(name, "eu.example")
        assert no_response("GET /x", URL, connect_error(cause)).message == message


def test_a_lost_connection_is_explained_without_names_of_classes() -> None:
    error = no_response("GET /x", URL, httpx.RemoteProtocolError("illegal status line"))
    reason = "closed early, or the response is not HTTP"
    assert error.message == f"GET /x: connection to {URL} lost ({reason})"


# Repeats and pauses


@pytest.mark.parametrize(
    ("error", "others", "steps", "create", "all_wait"),
    [
        (Throttled("429", status=429, code="throttled"), inf, inf, inf, True),
        (Throttled("429", status=429, code="too_many_concurrent_backfills"), inf, inf, inf, False),
        (unsent(), inf, inf, inf, True),
        (failed(None), inf, inf, 1, True),
        (failed(503), inf, inf, 1, True),
        (failed(503, code="not_sent"), inf, inf, 1, True),
        *(
            (failed(status), inf, inf, 1, False)
            for status in (408, 502, 504, 520, 521, 522, 523, 524)
        ),
        (failed(500), inf, 60, 1, False),
        (failed(201), 3, 3, 1, False),
        (failed(501), 1, 1, 1, False),
    ],
)
def test_the_table_of_what_is_repeated(
    error: Failure, others: float, steps: float, create: float, all_wait: bool
) -> None:
    table = [(READ, others), (PATCH, others), (DELETE, others), (STEPS, steps), (CREATE, create)]
    for request, most in table:
        following = after(request, error)
        assert (following.most, following.all_wait) == (most, all_wait)
        assert following.at_once is (request is STEPS and error.status == 500)


@pytest.mark.parametrize(
    ("error", "jitter", "counts", "pauses"),
    [
        (failed(503), 1.0, range(1, 9), [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]),
        (failed(503), 0.0, range(1, 9), [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0]),
        (failed(503), 1.0, [10_000], [30.0]),
        (Throttled("429", retry_after=120.0), 0.0, [1], [120.0]),
        (Throttled("429", retry_after=120.0), 0.5, [4], [120.5]),
        # F11: a service that asks for no time again and again is asked less and less.
        (Throttled("429", retry_after=0.0), 0.0, [1, 2, 3, 9], [0.25, 0.5, 1.0, 15.0]),
        (Throttled("429"), 0.0, [1, 2, 3], [30, 60, 120]),
    ],
)
def test_pauses_double_and_retry_after_is_honoured_in_full(
    error: Failure, jitter: float, counts: list[int], pauses: list[float]
) -> None:
    assert [pause(count, error, jitter=lambda: jitter) for count in counts] == pauses


def attempted(request: Request, *errors: Failure) -> Attempts:
    """Return the state after attempts that failed, one each second."""
    attempts = Attempts(request)
    for number, error in enumerate(errors):
        attempts.begin(float(number))
        attempts.failed(error)
    return attempts


@pytest.mark.parametrize(
    ("request_", "errors", "unknown"),
    [
        *((CREATE, [failed(status)], True) for status in (None, 500, 201)),
        (CREATE, [unsent()], False),
        (CREATE, [Throttled("429", status=429)], False),
        (READ, [failed(None)], False),
        (PATCH, [failed(None)], True),
        (PATCH, [unsent(), unsent()], False),
        (PATCH, [failed(504), unsent()], True),
        (PATCH, [failed(504), Throttled("429", status=429)], True),
    ],
)
def test_the_outcome_is_unknown_if_an_attempt_of_a_write_may_have_taken_effect(
    request_: Request, errors: list[Failure], unknown: bool
) -> None:
    final = attempted(request_, *errors).final(errors[-1], now=48.0)
    assert isinstance(final, AmbiguousOutcome) is unknown
    assert ("outcome unknown" in final.message) is unknown
    assert (type(final) is type(errors[-1])) is not unknown
    assert (final.attempts, final.unclear) == (len(errors), unknown)


def test_the_final_error_says_the_attempts_and_the_time() -> None:
    final = attempted(READ, *[failed(503)] * 6).final(failed(503), now=48.4)
    assert final.message == "GET /x/: failed (after 6 attempts in 48 s)"


def test_retries_end_after_retry_for_and_waits_after_max_wait() -> None:
    error, asked = failed(503), failed(503, retry_after=100.0)
    attempts = attempted(READ, error)
    assert attempts.accepts_pause(error, 10.0, max_wait=1.0)
    assert attempts.in_time(error, now=290.0, retry_for=300.0)
    assert not attempts.in_time(error, now=291.0, retry_for=300.0)
    assert not attempts.accepts_pause(asked, 100.0, max_wait=99.0)
    assert attempts.accepts_pause(asked, 100.0, max_wait=100.0)
    assert attempts.in_time(asked, now=300.0, retry_for=300.0)


def test_the_waits_for_a_rate_limit_are_added_up_and_do_not_count_as_retries() -> None:
    error = Throttled("429", status=429)
    attempts = attempted(READ, error)
    assert [attempts.accepts_pause(error, 30.0, max_wait=89.0) for _ in range(3)] == [
        True,
        True,
        False,
    ]
    assert attempts.in_time(error, now=9_999.0, retry_for=1.0)
