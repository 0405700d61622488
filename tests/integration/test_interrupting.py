"""Signals and closed outputs; tests/reliability has signals in every state of an apply."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.limits import TIMEOUT, time_limit

EXPORT = "{project: web, name: E%d, interval: hour, destination: {type: NoOp, config: {}}}"


@contextmanager
def started(
    *words: str | Path, environ: dict[str, str] | None = None, until: bytes = b""
) -> Iterator[subprocess.Popen[bytes]]:
    """Run Python with some words. The block begins once standard error has a text."""
    command, environ = [sys.executable, *map(str, words)], {**os.environ, **(environ or {})}
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, env=environ, stdout=pipe, stderr=pipe) as process,
        time_limit(process),
    ):
        assert process.stderr is not None
        text = b""
        while until not in text and (part := os.read(process.stderr.fileno(), 4096)):
            text += part
        yield process


def test_an_interrupted_apply_is_reported_and_converges_when_repeated(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    exports = "\n".join(f"  e{n}: {EXPORT % n}" for n in range(40))
    text = f"projects:\n  web: {{name: Web}}\nbatch_exports:\n{exports}\n"
    write(tmp_path, {"reconciler.yaml": "version: 1\n", "a.yaml": text})
    # The run can't end before the signal arrives.
    throttled = {"match": {"method": "POST", "from": 20}, "fault": "throttle", "retry_after": 800}
    emulator.admin("PUT", "faults", [throttled])
    words = ("apply", "-C", tmp_path, "--auto-approve")
    environ, begun = emulator.environ(), b"created batch_export"
    with started("-m", "reconciler", *words, environ=environ, until=begun) as process:
        process.send_signal(signal.SIGINT)
        out, err = (part.decode() for part in process.communicate())
    assert process.returncode == 130, err
    assert "Stopping: waiting for running changes" in err
    assert "Interrupted: " in out
    assert "skipped: the run was interrupted" in err
    emulator.admin("PUT", "faults", [])
    again = reconciler(*words, environ=emulator.environ())
    assert again.code == 0, again.err
    assert sorted(emulator.exports()) == sorted(f"E{n}" for n in range(40))


def test_ctrl_c_while_the_program_is_imported_prints_no_traceback(tmp_path: Path) -> None:
    write(tmp_path, {"click.py": "import os, time; os.write(2, b'importing'); time.sleep(60)"})
    words = ("-c", "from reconciler.commands import main; main()")
    environ = {"PYTHONPATH": str(tmp_path)}
    with started(*words, environ=environ, until=b"importing") as process:
        process.send_signal(signal.SIGINT)
        assert process.communicate() == (b"", b"")
    assert process.returncode == -signal.SIGINT


def test_a_closed_output_causes_no_traceback() -> None:
    with started("-m", "reconciler", "explain", "batch_export") as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        assert b"Traceback" not in process.communicate()[1]


_SERVING = """
import signal
from reconciler.commands.demo import embedded_service
with embedded_service() as service:
    print(service["base_url"], flush=True)
    signal.pause()
"""


def test_the_embedded_service_of_a_command_ends_if_the_command_is_killed() -> None:
    with started("-c", _SERVING) as process:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().decode().strip())
        process.kill()
    # A service that still listens accepts the connection and does not close it: a time-out.
    with suppress(ConnectionError):
        while True:
            ours = socket.create_connection((address.hostname, address.port), timeout=TIMEOUT)
            with ours:
                ours.recv(1)
