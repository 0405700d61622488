from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.recipes.command_server import CLIENT


@pytest.fixture(scope="session")
def program() -> Iterator[str]:
    """Return the text of a program `reconciler` that starts fast."""
    # The path of a socket has about 100 characters at most, so not in the folder of the tests.
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "socket"))
        server = subprocess.Popen(
            [sys.executable, "-P", ROOT / "tests/recipes/command_server.py", path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={},
            start_new_session=True,
        )
        with server:
            assert server.stdout
            assert server.stdout.readline() == b"ready\n"
            yield CLIENT.replace("PATH", path)
            # With a command that hangs.
            os.killpg(server.pid, signal.SIGKILL)
