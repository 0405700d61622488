"""What is sent, repeated and reported, over real HTTP with virtual pauses."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from reconciler.errors import (
    AmbiguousOutcome,
    Invalid,
    ReconcilerError,
    ServiceError,
    Throttled,
    Unavailable,
)
from reconciler.model.request import Answer, Repeat, Request
from tests.support.emulator import RunningEmulator
from tests.support.transport import VirtualClock, connected, mocked

PROJECT = {"name": "Web"}


def read(emulator: RunningEmulator) -> Request:
    return Request("GET", f"/api/organizations/{emulator.organization}/projects/", Repeat.SAFE)


def create(emulator: RunningEmulator, **details: Any) -> Request:
    path = f"/api/organizations/{emulator.organization}/projects/"
    return Request("POST", path, Repeat.AFTER_LOOKING, body=PROJECT, **details)


def send(
    emulator: RunningEmulator, request: Request, clock: VirtualClock | None = None, **changes: Any
) -> Answer:
    async def run() -> Answer:
        async with connected(emulator, clock, **changes) as transport:
            return await transport.send(request)

    return asyncio.run(run())


def fail(emulator: RunningEmulator, times: int = 99, **fault: Any) -> VirtualClock:
    """Let the next calls fail; return a clock."""
    emulator.admin("PUT", "faults", [{"match": {"times": times}, **fault}])
    emulator.clear_requests()
    return VirtualClock()


def attempts(emulator: RunningEmulator) -> int:
    return len(emulator.requests())


def projects(emulator: RunningEmulator) -> list[str]:
    return [project["name"] for project in emulator.state()["projects"]]


@pytest.mark.parametrize("make", [read, create])
def test_after_a_429_the_request_is_repeated_when_retry_after_ends(
    emulator: RunningEmulator, make: Any
) -> None:
    clock = fail(emulator, times=2, fault="throttle", retry_after=40)
    assert send(emulator, make(emulator), clock).status in (200, 201)
    assert clock.pauses == [40, 40]
    assert attempts(emulator) == 3
    assert projects(emulator).count("Web") == (1 if make is create else 0)


def test_a_read_is_repeated_four_times_with_growing_pauses(emulator: RunningEmulator) -> None:
    clock = fail(emulator, fault="error", status=503)
    with pytest.raises(Unavailable, match=r"GET .*/projects/: 503"):
        send(emulator, read(emulator), clock)
    assert clock.pauses == [0.25, 0.5, 1.0, 2.0]
    assert attempts(emulator) == 5


def test_a_read_survives_a_lost_connection(emulator: RunningEmulator) -> None:
    clock = fail(emulator, times=1, fault="drop")
    assert send(emulator, read(emulator), clock).status == 200
    assert clock.pauses == [0.25]


@pytest.mark.parametrize(
    "fault", [{"fault": "error", "status": 503}, {"fault": "drop"}, {"fault": "body", "text": "?"}]
)
def test_a_create_with_an_unknown_outcome_is_not_repeated(
    emulator: RunningEmulator, fault: dict[str, Any]
) -> None:
    clock = fail(emulator, when="after", **fault)
    with pytest.raises(AmbiguousOutcome, match="outcome unknown"):
        send(emulator, create(emulator), clock)
    assert (clock.pauses, attempts(emulator)) == ([], 1)
    assert projects(emulator).count("Web") == 1


def test_a_refusal_is_not_repeated(emulator: RunningEmulator) -> None:
    clock = fail(emulator, fault="error", status=400, detail="No.")
    with pytest.raises(Invalid, match=r"400: No\."):
        send(emulator, create(emulator), clock)
    assert (clock.pauses, attempts(emulator)) == ([], 1)


def test_the_request_says_after_which_code_of_a_429_it_is_not_repeated(
    emulator: RunningEmulator,
) -> None:
    clock = fail(emulator, fault="error", status=429, code="too_many")
    with pytest.raises(Throttled):
        send(emulator, create(emulator, final_codes=frozenset({"too_many"})), clock)
    assert (clock.pauses, attempts(emulator)) == ([], 1)
    with pytest.raises(Throttled):
        send(emulator, create(emulator), clock)
    assert attempts(emulator) == 6


def test_a_request_that_was_not_sent_is_repeated_and_its_outcome_is_known(
    emulator: RunningEmulator,
) -> None:
    clock = VirtualClock()
    with pytest.raises(Unavailable, match="can't connect to http://127") as raised:
        send(emulator, create(emulator), clock, base_url="http://127.0.0.1:1")
    assert len(clock.pauses) == 4
    assert (raised.value.sent, raised.value.code) == (False, None)


def test_a_server_can_not_claim_that_a_request_was_not_sent(emulator: RunningEmulator) -> None:
    clock = fail(emulator, fault="error", status=503, when="after", code="not_sent")
    with pytest.raises(AmbiguousOutcome):
        send(emulator, create(emulator), clock)
    assert projects(emulator).count("Web") == 1


def test_a_body_that_is_not_json_is_reported(emulator: RunningEmulator) -> None:
    clock = fail(emulator, fault="body", text="<html>", status=200)
    with pytest.raises(Unavailable, match="200 with a body that is not JSON"):
        send(emulator, read(emulator), clock)


def test_an_invalid_base_url_is_reported(emulator: RunningEmulator) -> None:
    with pytest.raises(ServiceError, match="'http://x:y' is not a URL"):
        send(emulator, read(emulator), base_url="http://x:y")


def test_a_missing_key_is_reported_before_a_request(emulator: RunningEmulator) -> None:
    emulator.clear_requests()
    from reconciler.model.values import SecretRef

    async def run() -> None:
        async with connected(emulator) as transport:
            body = {"name": SecretRef.of("env", "NOT_SET")}
            await transport.send(Request("POST", "/x/", Repeat.AFTER_LOOKING, body=body))

    with pytest.raises(ReconcilerError, match="NOT_SET"):
        asyncio.run(run())
    assert attempts(emulator) == 0


def test_calls_are_counted_with_repeats(emulator: RunningEmulator) -> None:
    clock = fail(emulator, times=2, fault="error", status=502)

    async def run() -> int:
        async with connected(emulator, clock) as transport:
            await transport.send(read(emulator))
            return transport.calls

    assert asyncio.run(run()) == 3


def test_plain_http_reads_no_certificate_authorities(
    emulator: RunningEmulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Reading them takes longer than a short command. A missing file shows whether they are."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    assert send(emulator, read(emulator)).status == 200
    with pytest.raises(FileNotFoundError):
        send(emulator, read(emulator), base_url="https://127.0.0.1:1")


def test_a_redirect_is_not_followed() -> None:
    """The embedded service sends no redirects."""
    asked: list[str] = []

    def redirect(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(302, headers={"Location": "https://elsewhere.example/"})

    async def run() -> None:
        async with mocked(redirect) as transport:
            await transport.send(Request("GET", "/x/", Repeat.SAFE))

    with pytest.raises(ServiceError, match="302 redirect, not followed"):
        asyncio.run(run())
    assert asked == ["https://service.example/x/"]


def test_a_timeout_of_a_read_is_repeated() -> None:
    """The embedded service can only cause one in real time."""
    clock = VirtualClock()
    calls = 0

    def late_once(request: httpx.Request) -> httpx.Response:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise httpx.ReadTimeout("late", request=request)
        return httpx.Response(200, json={})

    async def run() -> Answer:
        async with mocked(late_once, clock=clock) as transport:
            return await transport.send(Request("GET", "/x/", Repeat.SAFE))

    assert asyncio.run(run()).body == {}
    assert clock.pauses == [0.25]
