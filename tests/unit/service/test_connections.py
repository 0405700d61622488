"""Connections that end, stall or answer oddly, over real sockets: the embedded service has none."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest

from reconciler.service.http import open_http
from reconciler.service.pace import ClientSettings

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
async def running(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of a service."""
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        async with open_http(address, ClientSettings()) as client:
            client.base_url = httpx.URL(address)
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


def test_a_connection_is_used_again() -> None:
    async def run() -> tuple[int, int]:
        service = Service(answering(OK))
        async with running(service) as client:
            for size in (0, 5_000_000):
                assert (await client.post("/", content=b"x" * size)).json() == {}
        return service.connections, service.requests

    assert asyncio.run(run()) == (1, 2)


@pytest.mark.parametrize(
    "answer",
    [
        answering(OK, close=True),
        answering(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")),
        answering(b"HTTP/1.0 200 OK\r\n\r\n{}", close=True),
    ],
    ids=["closed", "to close", "until the end"],
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
