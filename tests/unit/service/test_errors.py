"""Error responses become exceptions with the service's words, cut and printable."""

from __future__ import annotations

import json

import pytest

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
from reconciler.model.live import Repeat, Request
from reconciler.service.failures import service_error

READ = Request("GET", "/api/x/", Repeat.SAFE)


def converted(status: int, body: object = None, **headers: str) -> ServiceError:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return service_error(READ, status, content, headers)


def body(detail: str, code: str = "error", attr: str | None = None) -> dict[str, object]:
    return {"type": "server_error", "code": code, "detail": detail, "attr": attr}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, Invalid),
        (401, Unauthorized),
        (402, Invalid),
        (403, Forbidden),
        (404, NotFound),
        (408, Unavailable),
        (409, Conflict),
        (415, Invalid),
        (429, Throttled),
        (500, Unavailable),
        (503, Unavailable),
    ],
)
def test_the_status_decides_and_not_the_type(status: int, expected: type[ServiceError]) -> None:
    error = converted(status, body("no"))
    assert type(error) is expected
    assert error.status == status


def test_the_message_has_the_request_the_status_the_field_and_the_reason() -> None:
    error = converted(400, body("This field is required.", "required", "name"))
    assert error.message == "GET /api/x/: 400 (name): This field is required."
    assert (error.code, error.attr) == ("required", "name")


@pytest.mark.parametrize(
    "content", [b"<html>token=abc</html>", b"", b"[]", b'{"detail": "abc"}', b'{"code": "abc"}']
)
def test_a_body_of_another_shape_is_not_shown(content: bytes) -> None:
    assert converted(502, content).message == "GET /api/x/: 502"


def test_a_long_or_hostile_text_is_one_printable_line_of_limited_length() -> None:
    error = converted(400, body("a\n b\x1b[2J\u202e" + "c" * 500))
    assert error.message.startswith("GET /api/x/: 400: a b\\x1b[2J\\u202ecc")
    assert error.message.endswith("c…")
    assert len(error.message) < 300


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), ("0.5", 0.5), ("-3", None), ("9e9", None), ("soon", None), ("", None)],
)
def test_retry_after_is_read_in_seconds(value: str, seconds: float | None) -> None:
    assert converted(429, body("slow"), **{"retry-after": value}).retry_after == seconds


def test_retry_after_is_a_date_that_counts_from_the_date_of_the_response() -> None:
    at = {"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}
    assert converted(503, None, **at, date="Wed, 21 Oct 2026 07:28:00 GMT").retry_after == 30.0
    assert converted(503, None, **at, date="Wed, 21 Oct 2026 07:29:00 GMT").retry_after == 0.0
    for date in ({}, {"date": "today"}, {"date": "Wed, 21 Oct 2026 07:28:00 -0000"}):
        assert converted(503, None, **at, **date).retry_after is None


@pytest.mark.parametrize(
    "value", ["Wed, 21 Oct 2026 07:28:30 +99999999999999", f"Wed, 21 Oct {'9' * 23} 07:28:30 GMT"]
)
def test_a_date_that_no_calendar_has_is_ignored(value: str) -> None:
    at = {"retry-after": value, "date": "Wed, 21 Oct 2026 07:28:00 GMT"}
    assert converted(429, None, **at).retry_after is None


@pytest.mark.parametrize(
    ("status", "detail", "hint"),
    [
        (401, "Invalid key.", "check `api_key`"),
        # Finding F3 of fidelity.
        (400, "The Data Pipelines addon is required for batch exports.", "add the addon"),
        (403, "API key missing required scope 'project:write'", "give the API key this scope"),
        (403, "This action does not support personal API key access", "login session"),
        (403, "You don't have access.", "check the role"),
        (404, "Organization not found.", "check `organization`"),
        (409, "Name taken.", "choose another name"),
    ],
)
def test_a_hint_names_the_fix(status: int, detail: str, hint: str) -> None:
    assert hint in (converted(status, body(detail)).hint or "")


def test_a_missing_page_has_no_hint() -> None:
    assert converted(404, body("Not found.")).hint is None
