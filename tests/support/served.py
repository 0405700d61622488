"""The program of the processes that serve tests: `tests.support.emulator` starts them."""

from __future__ import annotations

import io
import sys
from multiprocessing.connection import Connection

from reconciler.emulator.server import command


class _Ready(io.TextIOBase):
    """A standard output whose lines go to the process that waits for the service."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def write(self, text: str) -> int:
        self._connection.send(text)
        return len(text)


def serve(options: list[str], connection: Connection) -> None:
    """Be `reconciler emulator` with these options."""
    sys.stdout = _Ready(connection)
    command(options)
