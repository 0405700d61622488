"""Signals at every moment: exit code 130, a message, and a report once something was sent."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import reconciler, without_progress, write
from tests.support.emulator import RunningEmulator, start_emulator
from tests.support.limits import TIMEOUT, time_limit

EXPORT = "{project: web, name: E%d, interval: hour, destination: {type: NoOp, config: {}}}"
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@contextmanager
def started(
    *words: str | Path, environ: dict[str, str] | None = None, **streams: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Run Python with some words."""
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **streams}
    command, environ = [sys.executable, *map(str, words)], {**os.environ, **(environ or {})}
    with subprocess.Popen(command, env=environ, **pipes) as process, time_limit(process):
        yield process


def until(process: subprocess.Popen[bytes], seen: Callable[[bytes], bool]) -> bytes:
    """Read standard error until a condition holds; return what was read."""
    assert process.stderr is not None
    text = b""
    while not seen(text) and (part := os.read(process.stderr.fileno(), 4096)):
        text += part
    return text


def rest(process: subprocess.Popen[bytes]) -> str:
    """Return what is left of standard error."""
    assert process.stderr is not None
    return process.stderr.read().decode()


def test_an_interrupted_apply_is_reported_and_converges_when_repeated(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    exports = "\n".join(f"  e{n}: {EXPORT % n}" for n in range(40))
    text = f"projects:\n  web: {{name: Web}}\nbatch_exports:\n{exports}\n"
    write(tmp_path, {"reconciler.yaml": "version: 1\n", "a.yaml": text})
    # The run can't end before the signal arrives.
    throttled = {"match": {"method": "POST", "from": 20}, "fault": "throttle", "retry_after": 800}
    emulator.admin("PUT", "faults", [throttled])
    words = ("-m", "reconciler", "apply", "-C", tmp_path, "--auto-approve")
    with started(*words, environ=emulator.environ(), stdout=subprocess.PIPE) as process:
        until(process, lambda text: b"created batch_export" in text)
        process.send_signal(signal.SIGINT)
        err = rest(process)
        out = process.stdout.read().decode() if process.stdout is not None else ""
    assert process.returncode == 130, err
    assert "Stopping: waiting for running changes" in err
    assert "Interrupted: " in out
    assert "skipped: the run was interrupted" in err
    emulator.admin("PUT", "faults", [])
    again = reconciler("apply", "-C", tmp_path, "--auto-approve", environ=emulator.environ())
    assert again.code == 0, again.err
    projects = emulator.state()["projects"]
    names = [export["name"] for project in projects for export in project["batch_exports"]]
    assert sorted(names) == sorted(f"E{n}" for n in range(40))


WORKSPACE = {"reconciler.yaml": "version: 1\n", "a.yaml": "projects:\n  web: {name: Web}\n"}


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_at_the_prompt_ends_the_command_at_once(
    emulator: RunningEmulator, tmp_path: Path, number: signal.Signals
) -> None:
    write(tmp_path, WORKSPACE)
    terminal, stdin = pty.openpty()
    words = ("-m", "reconciler", "apply", "-C", tmp_path)
    with started(*words, environ=emulator.environ(), stdin=stdin) as process:
        until(process, lambda text: b"[y/N]" in text)
        process.send_signal(number)
        assert "interrupted" in rest(process)
    os.close(terminal)
    os.close(stdin)
    assert process.returncode == 130
    assert emulator.writes() == []


@pytest.mark.parametrize("number", SIGNALS)
def test_f5_a_signal_while_planning_ends_the_command_at_once(
    tmp_path: Path, number: signal.Signals
) -> None:
    write(tmp_path, WORKSPACE)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(TIMEOUT)
        environ = {
            "RECONCILER_BASE_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "RECONCILER_ORGANIZATION": "org",
            "RECONCILER_API_KEY": "phx_key",
        }
        with started("-m", "reconciler", "plan", "-C", tmp_path, environ=environ) as process:
            connection, _ = silent.accept()
            with connection:
                process.send_signal(number)
                assert without_progress(rest(process)).strip() == "interrupted"
    assert process.returncode == 130


def test_ctrl_c_while_the_program_is_imported_prints_no_traceback(tmp_path: Path) -> None:
    write(tmp_path, {"click.py": "import os, time; os.write(2, b'importing'); time.sleep(60)"})
    words = ("-c", "from reconciler.commands import main; main()")
    with started(*words, environ={"PYTHONPATH": str(tmp_path)}) as process:
        err = until(process, lambda text: b"importing" in text)
        process.send_signal(signal.SIGINT)
        assert err.decode() + rest(process) == "importing"
    assert process.returncode == -signal.SIGINT


def test_a_closed_output_causes_no_traceback() -> None:
    words = ("-m", "reconciler", "explain", "batch_export")
    with started(*words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert "Traceback" not in rest(process)


def test_the_embedded_service_stops_cleanly_and_keeps_its_data(tmp_path: Path) -> None:
    db = tmp_path / "service.db"
    with start_emulator(db=db) as running:
        path = f"/api/organizations/{running.organization}/projects/{running.project_id}/"
        first = running.call("GET", path).json()
        key = running.api_key
        running.process.kill()
    with start_emulator(db=db) as again:
        assert again.api_key == key
        assert again.call("GET", path).json() == first
        again.process.terminate()
        assert again.process.wait(timeout=TIMEOUT) == 0
