"""What is sent, repeated and reported, over real HTTP with virtual pauses."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import (
    AmbiguousOutcome,
    ReconcilerError,
    ServiceError,
    Unavailable,
)
from reconciler.model.live import Answer, Repeat, Request
from reconciler.model.settings import Connection
from reconciler.service import http as network
from reconciler.service.transport import open_transport
from tests.support.emulator import RunningEmulator
from tests.support.transport import (
    KEY,
    VirtualClock,
    client_settings,
    connected,
    resolver,
)

PROJECT = {"name": "Web"}
LOST = {"fault": "error", "status": 503, "when": "after"}


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


@pytest.mark.parametrize(
    ("make", "fault", "error", "pauses"),
    [
        # A server can not claim that a request was not sent.
        (create, {**LOST, "code": "not_sent"}, "outcome unknown", []),
        (create, {"fault": "gzip", "megabytes": 40}, "a body of more than 32 MB.* unkno", []),
        (create, {"fault": "error", "status": 400, "detail": "No."}, r"400: No\.", []),
        (
            read,
            {"fault": "error", "status": 503},
            r"503.* \(after 25 attempts in 286 s\)",
            [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, *[15.0] * 18],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_is_not_repeated_and_for_how_long_a_read_is(
    emulator: RunningEmulator, make: Any, fault: dict[str, Any], error: str, pauses: list[float]
) -> None:
    clock = VirtualClock()
    emulator.admin("PUT", "faults", [fault])
    emulator.clear_requests()
    with pytest.raises(ServiceError, match=error) as raised:
        send(emulator, make(emulator), clock)
    assert isinstance(raised.value, AmbiguousOutcome) is ("unkno" in error)
    assert clock.pauses == pauses
    assert len(emulator.requests()) == raised.value.attempts == len(pauses) + 1
    names = [project["name"] for project in emulator.state()["projects"]]
    assert names.count("Web") == isinstance(raised.value, AmbiguousOutcome)


def test_a_response_may_be_compressed(emulator: RunningEmulator) -> None:
    emulator.admin("PUT", "faults", [{"fault": "gzip", "megabytes": 1}])
    assert send(emulator, read(emulator)).status == 200


def test_a_request_that_was_not_sent_is_repeated_and_its_outcome_is_known(
    emulator: RunningEmulator,
) -> None:
    with pytest.raises(
        Unavailable, match=r"to http://127\S+: .*\(after 5 attempts in 4 s"
    ) as raised:
        send(emulator, create(emulator), base_url="http://127.0.0.1:1")
    assert (raised.value.sent, raised.value.code) == (False, None)


@pytest.mark.parametrize(
    "fault", [{"fault": "slow", "seconds": 3600, "pieces": 3600}, {"fault": "hang"}]
)
def test_f5_a_response_that_does_not_end_ends_at_the_timeout(
    emulator: RunningEmulator, fault: dict[str, Any]
) -> None:
    """In real time. Every piece comes in time; only the whole response does not."""
    emulator.admin("PUT", "faults", [fault])
    settings = {"retry_for": 0.0, "timeout": 1.0}
    with pytest.raises(Unavailable, match=r"no complete response from http\S+ in 1 s"):
        send(emulator, read(emulator), settings=settings)
    with pytest.raises(AmbiguousOutcome, match="outcome unknown"):
        send(emulator, create(emulator), settings=settings)


@pytest.mark.parametrize("address", ["http://x:y", "https://xn--.example", "https://xn--a.com"])
def test_an_invalid_base_url_is_reported(emulator: RunningEmulator, address: str) -> None:
    with pytest.raises(ServiceError, match=f"'{address}' is not a URL"):
        send(emulator, read(emulator), base_url=address)


def test_plain_http_reads_no_certificate_authorities(
    emulator: RunningEmulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Reading them takes longer than a short command. A missing file shows whether they are."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    assert send(emulator, read(emulator)).status == 200
    with pytest.raises(ReconcilerError, match="certificate authorities can't be read"):
        send(emulator, read(emulator), base_url="https://127.0.0.1:1")


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
