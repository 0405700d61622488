"""What is sent, repeated and reported, over real HTTP with virtual pauses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from reconciler.errors import (
    AmbiguousOutcome,
    Invalid,
    ReconcilerError,
    ServiceError,
    Unavailable,
)
from reconciler.model.live import Answer, Repeat, Request
from reconciler.model.settings import Connection
from reconciler.service import http as network
from reconciler.service.pace import ClientSettings
from reconciler.service.transport import open_transport
from tests.support.emulator import RunningEmulator
from tests.support.limits import TIMEOUT
from tests.support.transport import (
    KEY,
    VirtualClock,
    client_settings,
    connected,
    mocked,
    resolver,
)

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


def test_f11_retry_after_may_be_a_date(emulator: RunningEmulator) -> None:
    clock = fail(emulator, times=1, fault="throttle", retry_after={"date_in": 7})
    assert send(emulator, read(emulator), clock).attempts == 2
    (pause,) = clock.pauses
    assert 6 <= pause <= 8  # dates have whole seconds


def test_a_read_is_repeated_with_growing_pauses_for_five_minutes(
    emulator: RunningEmulator,
) -> None:
    clock = fail(emulator, fault="error", status=503)
    with pytest.raises(
        Unavailable, match=r"GET .*: 503.* \(after 25 attempts in 286 s\)"
    ) as raised:
        send(emulator, read(emulator), clock)
    assert clock.pauses[:7] == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0]
    assert attempts(emulator) == raised.value.attempts == 25


@pytest.mark.parametrize(
    "fault",
    [
        # A server can not claim that a request was not sent.
        {"fault": "error", "status": 503, "code": "not_sent"},
        {"fault": "drop"},
        {"fault": "body", "text": "?"},
    ],
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


def test_a_request_that_was_not_sent_is_repeated_and_its_outcome_is_known(
    emulator: RunningEmulator,
) -> None:
    clock = VirtualClock()
    with pytest.raises(Unavailable, match="can't connect to http://127") as raised:
        send(emulator, create(emulator), clock, base_url="http://127.0.0.1:1")
    assert len(clock.pauses) == 4
    assert (raised.value.sent, raised.value.code) == (False, None)


@pytest.mark.parametrize("address", ["http://x:y", "https://xn--.example", "https://xn--a.com"])
def test_an_invalid_base_url_is_reported(emulator: RunningEmulator, address: str) -> None:
    with pytest.raises(ServiceError, match=f"'{address}' is not a URL"):
        send(emulator, read(emulator), base_url=address)


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


def test_plain_http_reads_no_certificate_authorities(
    emulator: RunningEmulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Reading them takes longer than a short command. A missing file shows whether they are."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    assert send(emulator, read(emulator)).status == 200
    with pytest.raises(ReconcilerError, match="certificate authorities can't be read"):
        send(emulator, read(emulator), base_url="https://127.0.0.1:1")


def test_a_create_with_a_redirect_to_no_address_has_an_unknown_outcome() -> None:
    """The embedded service sends no redirects. tests/security has those that are refused."""

    def redirect(_: httpx.Request) -> httpx.Response:
        return httpx.Response(302, headers={"Location": "https:elsewhere"})

    async def run() -> None:
        async with mocked(redirect) as transport:
            await transport.send(Request("POST", "/x/", Repeat.AFTER_LOOKING, body={}))

    with pytest.raises(AmbiguousOutcome, match="the headers of the response can't be read"):
        asyncio.run(run())


def test_a_timeout_of_a_read_is_repeated_and_counted() -> None:
    """The embedded service can only cause one in real time."""
    clock = VirtualClock()
    answers: Iterator[Any] = iter([httpx.ReadTimeout("late"), httpx.Response(200, json={})])

    def late_once(_: httpx.Request) -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def run() -> tuple[Answer, int]:
        async with mocked(late_once, clock=clock) as transport:
            return await transport.send(Request("GET", "/x/", Repeat.SAFE)), transport.calls

    answer, calls = asyncio.run(run())
    assert (answer.body, calls, clock.pauses) == ({}, 2, [0.25])


def sent_once(emulator: RunningEmulator, request: Request, timeout: float = TIMEOUT) -> Answer:
    """Send a request in real time, without repeats."""

    async def run() -> Answer:
        async with open_transport(
            Connection("test", emulator.base_url, emulator.organization, KEY),
            secrets=resolver(**emulator.environ()),
            settings=ClientSettings(retry_for=0.0, timeout=timeout),
        ) as transport:
            return await transport.send(request)

    return asyncio.run(run())


@pytest.mark.parametrize(
    "fault", [{"fault": "slow", "seconds": 3600, "pieces": 3600}, {"fault": "hang"}]
)
def test_f5_a_response_that_does_not_end_ends_at_the_timeout(
    emulator: RunningEmulator, fault: dict[str, Any]
) -> None:
    """Every piece comes in time; only the whole response does not."""
    fail(emulator, **fault)
    with pytest.raises(Unavailable, match=r"no complete response from http\S+ in 1 s"):
        sent_once(emulator, read(emulator), timeout=1.0)
    with pytest.raises(AmbiguousOutcome, match="outcome unknown"):
        sent_once(emulator, create(emulator), timeout=1.0)


def test_f5_a_response_may_be_compressed_but_not_too_large_after_decompression(
    emulator: RunningEmulator,
) -> None:
    fail(emulator, fault="gzip", megabytes=1)
    assert sent_once(emulator, read(emulator)).status == 200
    fail(emulator, fault="gzip", megabytes=200)
    with pytest.raises(Unavailable, match="200 with a body of more than 32 MB"):
        sent_once(emulator, read(emulator))
    with pytest.raises(AmbiguousOutcome, match="201 with a body of more than 32 MB"):
        sent_once(emulator, create(emulator))


@pytest.mark.parametrize(("idle_seconds", "connections"), [(60.0, 1), (-1.0, 3)])
def test_a_connection_that_was_idle_too_long_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch, idle_seconds: float, connections: int
) -> None:
    """The embedded service does not show its connections."""
    assert network.IDLE_SECONDS == 2.0
    monkeypatch.setattr(network, "IDLE_SECONDS", idle_seconds)
    accepted: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            async with open_transport(
                Connection("test", f"http://127.0.0.1:{port}", "org", KEY),
                secrets=resolver(RECONCILER_API_KEY="phx_key"),
                settings=client_settings(VirtualClock()),
            ) as transport:
                for _ in range(3):
                    await transport.send(Request("GET", "/x/", Repeat.SAFE))
            for writer in accepted:
                writer.close()
                await writer.wait_closed()

    asyncio.run(run())
    assert len(accepted) == connections
