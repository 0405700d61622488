"""The embedded service of a command never outlives it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

_PROGRAM = """
import time
from reconciler.commands.embedded_service import embedded_service
with embedded_service() as service:
    print(service["base_url"], flush=True)
    time.sleep(60)
"""


def test_it_ends_if_the_command_is_killed() -> None:
    process = subprocess.Popen([sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        address = urlsplit(process.stdout.readline().strip())
        process.kill()
        process.wait()
    for _ in range(100):
        try:
            socket.create_connection((address.hostname, address.port), timeout=1).close()
        except OSError:
            return
        time.sleep(0.1)
    raise AssertionError("the embedded service still listens")
