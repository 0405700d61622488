"""Send HTTP over connections of asyncio, with h11: a quarter of the CPU of httpx's own transport.

Only for direct connections to one host: through a proxy, httpx's own transport is used.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from time import monotonic

import h11
import httpx

_MOST_BYTES_OF_HEADERS = 100 * 1024
_ATTEMPT_SECONDS = 0.25
"""After so much time the next address of a name is tried, too."""


class DirectTransport(httpx.AsyncBaseTransport):
    """Sends the requests to one host, one at a time on each connection.

    context
        How to encrypt, None for plain HTTP.
    most_idle, idle_seconds
        How many idle connections are kept, and for how long.
    """

    def __init__(
        self, context: ssl.SSLContext | None, *, most_idle: int, idle_seconds: float
    ) -> None:
        self._context = context
        self._most_idle = most_idle
        self._idle_seconds = idle_seconds
        self._idle: list[_Connection] = []
        if context is not None:
            context.set_alpn_protocols(["http/1.1"])

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response as soon as its headers are read. Raises httpx.HTTPError."""
        connection = self._reusable() or await self._connected(request)
        try:
            if (trace := request.extensions.get("trace")) is not None:
                await trace("http11.send_request_headers.started", {"request": request})
            with _errors_of_httpx(request):
                head = await connection.exchange(request, await request.aread())
        except BaseException:
            connection.close()
            raise
        return httpx.Response(
            head.status_code,
            headers=head.headers.raw_items(),
            stream=_Body(self, connection, request),
            extensions={"network_stream": connection.transport},
        )

    async def aclose(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()
        # The loop releases their sockets in its next round.
        await asyncio.sleep(0)

    def release(self, connection: _Connection) -> None:
        """Keep a connection for another request if it can take one, else close it."""
        if len(self._idle) < self._most_idle and connection.start_next(self._idle_seconds):
            self._idle.append(connection)
        else:
            connection.close()

    def _reusable(self) -> _Connection | None:
        """Return the connection that was used last, if it is still open."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
            connection.close()
        return None

    async def _connected(self, request: httpx.Request) -> _Connection:
        host = request.url.raw_host.decode("ascii")
        port = request.url.port or (80 if self._context is None else 443)
        connecting = asyncio.get_running_loop().create_connection(
            _Connection, host, port, ssl=self._context, happy_eyeballs_delay=_ATTEMPT_SECONDS
        )
        try:
            async with asyncio.timeout(request.extensions["timeout"]["connect"]):
                _, connection = await connecting
        except TimeoutError as error:
            raise httpx.ConnectTimeout("timed out", request=request) from error
        except (OSError, UnicodeError) as error:
            # Python does not even ask for a name with an empty or a long label.
            raise httpx.ConnectError(str(error), request=request) from error
        return connection


class _Connection(asyncio.Protocol):
    """A connection, what arrived on it, and the state of HTTP."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, _MOST_BYTES_OF_HEADERS)
        self._arrived = bytearray()
        self._ended = False
        self._error: Exception | None = None
        self._news = asyncio.Event()
        self._is_idle = False
        self._idle_until = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what writes."""
        if isinstance(transport, asyncio.Transport):
            self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Keep what arrived until it is read. Nothing may arrive while the connection is idle."""
        if self._is_idle:
            self.close()
            return
        self._arrived += data
        self._news.set()

    def eof_received(self) -> None:
        """Note that nothing more arrives."""
        self._ended = True
        self._news.set()

    def connection_lost(self, error: Exception | None) -> None:
        """Note that nothing more arrives, and why."""
        self._ended, self._error = True, error
        self._news.set()

    @property
    def is_open(self) -> bool:
        """Whether an idle connection may be used: the other end neither closed it nor sent more."""
        if self._ended or self.transport.is_closing() or monotonic() > self._idle_until:
            return False
        # What happened while the loop did not run.
        socket = self.transport.get_extra_info("socket")
        if not hasattr(select, "poll"):  # pragma: no cover - Windows
            return not select.select([socket], [], [], 0)[0]
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        return not poll.poll(0)

    async def exchange(self, request: httpx.Request, content: bytes) -> h11.Response:
        """Send a request and return the head of its response."""
        head = h11.Request(
            method=request.method, target=request.url.raw_path, headers=request.headers.raw
        )
        events = (head, h11.Data(data=content), h11.EndOfMessage())
        self._is_idle = False
        # If the other end does not read it all, its answer counts, or the end of the connection.
        self.transport.write(b"".join(self._http.send(event) or b"" for event in events))
        while isinstance(event := await self._event(), h11.InformationalResponse):
            pass
        if not isinstance(event, h11.Response):
            raise h11.RemoteProtocolError("the server sent no response")
        return event

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body of a response."""
        while isinstance(event := await self._event(), h11.Data):
            yield bytes(event.data)

    def start_next(self, idle_seconds: float) -> bool:
        """Prepare for another request. Return False if none may follow."""
        http = self._http
        is_complete = http.our_state is http.their_state is h11.DONE
        # What follows a response would be taken for the next one.
        if not is_complete or self._arrived or http.trailing_data != (b"", False):
            return False
        http.start_next_cycle()
        self._is_idle = True
        self._idle_until = monotonic() + idle_seconds
        return True

    def close(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    async def _event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            while not (self._arrived or self._ended):
                self._news.clear()
                await self._news.wait()
            if not self._arrived and self._error is not None:
                raise self._error
            self._http.receive_data(bytes(self._arrived))
            self._arrived.clear()
        return event


class _Body(httpx.AsyncByteStream):
    """The body of a response, whose connection is released when it is closed."""

    def __init__(
        self, transport: DirectTransport, connection: _Connection, request: httpx.Request
    ) -> None:
        self._transport = transport
        self._connection = connection
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _errors_of_httpx(self._request):
            async for piece in self._connection.body():
                yield piece

    async def aclose(self) -> None:
        self._transport.release(self._connection)


@contextmanager
def _errors_of_httpx(request: httpx.Request) -> Iterator[None]:
    """Raise the errors of a connection as httpx does."""
    try:
        yield
    except h11.RemoteProtocolError as error:
        raise httpx.RemoteProtocolError(str(error), request=request) from error
    except h11.LocalProtocolError as error:
        raise httpx.LocalProtocolError(str(error), request=request) from error
    except OSError as error:
        raise httpx.ReadError(str(error), request=request) from error
