"""The lock of one apply at a time on a machine, with real processes, also on Windows."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.cli import environment, write
from tests.support.limits import TIMEOUT


@contextmanager
def applying(folder: Path, server: socket.socket) -> Iterator[subprocess.Popen[str]]:
    """Start an apply to a service that accepts connections and answers nothing."""
    host, port = server.getsockname()
    environ = {
        "RECONCILER_BASE_URL": f"http://{host}:{port}",
        "RECONCILER_ORGANIZATION": "0188aaaa-0000-0000-0000-000000000001",
        "RECONCILER_API_KEY": "phx_0123456789abcdef",
        # Both names: Windows reads the second.
        "TMPDIR": str(folder),
        "TEMP": str(folder),
    }
    command = (sys.executable, "-m", "reconciler", "apply", "--auto-approve", "-C", str(folder))
    with subprocess.Popen(
        command, env=environment(environ), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_m9_an_apply_that_waits_says_for_which_process(tmp_path: Path) -> None:
    """M9: the second apply names the first, and begins when the first is killed."""
    write(tmp_path, {"reconciler.yaml": "version: 1\nclient: {parallelism: 1}\n"})
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(TIMEOUT)
        with applying(tmp_path, server) as first:
            held, _ = server.accept()
            with held, applying(tmp_path, server) as second:
                assert second.stderr is not None
                assert second.stderr.readline() == (
                    "note: waiting for another run on this machine that sends changes "
                    f"(pid {first.pid})\n"
                )
                first.kill()
                begun, _ = server.accept()
                begun.close()


def test_a_folder_that_is_not_of_this_user(tmp_path: Path) -> None:
    user = os.getuid() if hasattr(os, "getuid") else 0
    write(tmp_path, {"reconciler.yaml": "version: 1\n", f"reconciler-{user}": ""})
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        applying(tmp_path, server) as process,
    ):
        _, printed = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1
    assert re.search(r"the lock in .*: File exists; nothing was sent\n  hint: set", printed)
