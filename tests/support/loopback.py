"""A server on loopback whose requests a function answers."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class Received(BaseHTTPRequestHandler):
    """A request, with the bytes of its body."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    body: bytes

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def send(self, status: int, body: bytes, **headers: str) -> None:
        """Answer it."""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):  # A failed command closes its other connections.
            self.wfile.write(body)

    def send_json(self, status: int, value: Any) -> None:
        """Answer it with a document."""
        self.send(status, json.dumps(value).encode(), **{"Content-Type": "application/json"})


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignore clients that refuse the certificate, or do not read the response."""


@contextmanager
def serving(
    answer: Callable[[Received], None], context: ssl.SSLContext | None = None
) -> Iterator[int]:
    """Run the server, encrypted if there is a context. Yield its port."""

    class Handler(Received):
        def do_GET(self) -> None:
            self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer(self)

        do_POST = do_PATCH = do_PUT = do_DELETE = do_CONNECT = do_GET  # noqa: N815

    with _Server(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
