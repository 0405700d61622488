"""The embedded service of a command never outlives it."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import suppress
from urllib.parse import urlsplit

from tests.support.limits import TIMEOUT, time_limit

_PROGRAM = """
import sys
from reconciler.commands.demo import embedded_service
with embedded_service() as service:
    print(service["base_url"], flush=True)
    sys.stdin.read()
"""


def test_it_ends_if_the_command_is_killed() -> None:
    with (
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
        time_limit(process),
    ):
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().strip())
        process.kill()
    # A service that still listens accepts the connection and does not close it: a time-out.
    with suppress(ConnectionError):
        while True:
            ours = socket.create_connection((address.hostname, address.port), timeout=TIMEOUT)
            with ours:
                ours.recv(1)
