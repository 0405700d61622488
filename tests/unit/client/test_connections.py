"""Connections that end, stall or answer oddly, over real sockets: the embedded service has none."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from reconciler.client.connections import DirectTransport

CERTIFICATE = Path(__file__).parents[2] / "security" / "certificate.pem"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Answer = Callable[[int, asyncio.StreamWriter], Awaitable[None]]


class Service:
    """Answers requests with a function of the number of the request. Counts connections."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.connections = self.requests = 0
        self.closed = asyncio.Event()
        self.tasks: list[asyncio.Task[None] | None] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.tasks.append(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length or 0))
                self.requests += 1
                await self.answer(self.requests, writer)
                await writer.drain()
        self.closed.set()
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def running(
    service: Service, *, most_idle: int = 8, idle_seconds: float = 60.0, encrypted: bool = False
) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of a service."""
    theirs = ours = None
    if encrypted:
        theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        theirs.load_cert_chain(CERTIFICATE)
        ours = ssl.create_default_context(cafile=str(CERTIFICATE))
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0, ssl=theirs)
    scheme, port = "https" if encrypted else "http", server.sockets[0].getsockname()[1]
    transport = DirectTransport(ours, most_idle=most_idle, idle_seconds=idle_seconds)
    timeout = httpx.Timeout(30, connect=0.3)
    address = f"{scheme}://127.0.0.1:{port}"
    async with server:
        async with httpx.AsyncClient(
            transport=transport, base_url=address, timeout=timeout
        ) as client:
            yield client
        await asyncio.gather(*filter(None, service.tasks))


def answering(*pieces: bytes, close: bool = False) -> Answer:
    async def answer(_: int, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if close:
            writer.close()

    return answer


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_connection_is_used_again(encrypted: bool) -> None:
    async def run() -> tuple[int, int]:
        service = Service(answering(OK))
        async with running(service, encrypted=encrypted) as client:
            for size in (0, 5_000_000):
                assert (await client.post("/", content=b"x" * size)).json() == {}
        return service.connections, service.requests

    assert asyncio.run(run()) == (1, 2)


def test_requests_at_the_same_time_have_connections_of_their_own() -> None:
    async def run() -> int:
        service = Service(answering(OK))
        async with running(service, most_idle=2) as client:
            for _ in range(2):
                await asyncio.gather(*(client.get("/") for _ in range(4)))
        return service.connections

    # Two are kept of the first four.
    assert asyncio.run(run()) == 6


@pytest.mark.parametrize(
    "answer",
    [
        answering(OK, close=True),
        answering(OK + b'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n["no"]'),
        answering(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")),
        answering(b"HTTP/1.0 200 OK\r\n\r\n{}", close=True),
    ],
    ids=["closed", "more than one answer", "to close", "until the end"],
)
def test_a_connection_that_is_not_clean_is_not_used_again(answer: Answer) -> None:
    async def run() -> int:
        service = Service(answer)
        async with running(service) as client:
            for _ in range(3):
                assert (await client.get("/")).json() == {}
        return service.connections

    assert asyncio.run(run()) == 3


def test_what_arrives_on_an_idle_connection_is_no_answer() -> None:
    async def run() -> int:
        late: list[asyncio.StreamWriter] = []

        async def answer(_: int, writer: asyncio.StreamWriter) -> None:
            writer.write(OK)
            late.append(writer)

        service = Service(answer)
        async with running(service) as client:
            await client.get("/")
            late[0].write(b'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n["no"]')
            assert (await client.get("/")).json() == {}
        return service.connections

    assert asyncio.run(run()) == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (answering(close=True), httpx.RemoteProtocolError),
        (answering(b"HTTP/1.1 200 OK\r\nContent-Le", close=True), httpx.RemoteProtocolError),
        (answering(OK[:-1], close=True), httpx.RemoteProtocolError),
        (answering(b"no HTTP\r\n\r\n"), httpx.RemoteProtocolError),
        (answering(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000), httpx.RemoteProtocolError),
        (
            answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
            httpx.RemoteProtocolError,
        ),
    ],
    ids=["none", "part of the head", "part of the body", "no HTTP", "long head", "chunks"],
)
def test_an_odd_answer_is_an_error_and_its_connection_is_closed(
    answer: Answer, error: type[httpx.HTTPError]
) -> None:
    async def run() -> None:
        service = Service(answer)
        async with running(service) as client:
            with pytest.raises(error):
                await client.post("/", content=b"{}")
            await asyncio.wait_for(service.closed.wait(), 30)

    asyncio.run(run())


def test_a_reset_connection_is_an_error() -> None:
    async def reset(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(OK[:-1])
        await writer.drain()
        writer.transport.abort()

    async def run() -> None:
        async with running(Service(reset)) as client:
            with pytest.raises(httpx.TransportError):
                await client.get("/")

    asyncio.run(run())


def test_an_answer_in_pieces_after_an_interim_one_is_read() -> None:
    pieces = [bytes([byte]) for byte in b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK]

    async def run() -> None:
        async with running(Service(answering(*pieces))) as client:
            assert (await client.get("/")).json() == {}

    asyncio.run(run())


def test_a_cancelled_request_closes_its_connection() -> None:
    async def run() -> None:
        service = Service(answering())
        async with running(service) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await client.get("/")
            await asyncio.wait_for(service.closed.wait(), 30)

    asyncio.run(run())


def test_a_response_that_is_not_read_to_its_end_closes_its_connection() -> None:
    async def run() -> None:
        service = Service(answering(OK[:-1]))
        async with running(service) as client:
            async with client.stream("GET", "/") as response:
                assert response.status_code == 200
            await asyncio.wait_for(service.closed.wait(), 30)

    asyncio.run(run())


def test_a_check_that_raises_sends_nothing() -> None:
    async def refuse(*_: object) -> None:
        raise LookupError

    async def run() -> int:
        service = Service(answering(OK))
        async with running(service) as client:
            with pytest.raises(LookupError):
                await client.get("/", extensions={"trace": refuse})
        return service.requests

    assert asyncio.run(run()) == 0


def test_a_handshake_that_does_not_end_is_a_timeout_of_the_connection() -> None:
    async def run() -> None:
        # It waits for the end of the head of a request, and never answers the handshake.
        service = Service(answering(OK))
        async with running(service) as client:
            other = DirectTransport(ssl.create_default_context(), most_idle=1, idle_seconds=1.0)
            async with httpx.AsyncClient(transport=other, timeout=client.timeout) as encrypted:
                with pytest.raises(httpx.ConnectTimeout):
                    await encrypted.get(str(client.base_url).replace("http:", "https:"))

    asyncio.run(run())


def test_a_certificate_that_is_not_trusted_is_refused() -> None:
    async def run() -> None:
        service = Service(answering(OK))
        async with running(service, encrypted=True) as client:
            other = DirectTransport(ssl.create_default_context(), most_idle=1, idle_seconds=1.0)
            async with httpx.AsyncClient(transport=other, timeout=client.timeout) as careful:
                with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                    await careful.get(client.base_url)
        assert service.requests == 0

    asyncio.run(run())


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.example"])
def test_a_name_that_cannot_be_encoded_is_an_error_of_the_connection(host: str) -> None:
    async def run() -> None:
        transport = DirectTransport(None, most_idle=1, idle_seconds=1.0)
        async with httpx.AsyncClient(transport=transport) as client:
            with pytest.raises(httpx.ConnectError):
                await client.get(f"http://{host}/")

    asyncio.run(run())


@pytest.mark.parametrize("encrypted", [False, True])
def test_what_arrives_on_an_idle_connection_closes_it(encrypted: bool) -> None:
    async def run() -> None:
        async def answer(_: int, writer: asyncio.StreamWriter) -> None:
            writer.write(OK)
            await asyncio.sleep(0.1)
            writer.write(b"x" * 1_000_000)

        service = Service(answer)
        async with running(service, encrypted=encrypted) as client:
            await client.get("/")
            await asyncio.wait_for(service.closed.wait(), 30)

    asyncio.run(run())
