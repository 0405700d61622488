"""Signals at every moment: exit code 130, a message, and a report once something was sent."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cli import reconciler, without_progress, write
from tests.support.emulator import RunningEmulator
from tests.support.limits import TIMEOUT, time_limit

EXPORT = "{project: web, name: E%d, interval: hour, destination: {type: NoOp, config: {}}}"


def test_an_interrupted_apply_is_reported_and_converges_when_repeated(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    exports = "\n".join(f"  e{n}: {EXPORT % n}" for n in range(150))
    write(
        tmp_path,
        {
            "reconciler.yaml": "version: 1\n",
            "a.yaml": f"projects:\n  web: {{name: Web}}\nbatch_exports:\n{exports}\n",
        },
    )
    # The run can't end before the signal arrives.
    throttled = {"match": {"method": "POST", "from": 20}, "fault": "throttle", "retry_after": 800}
    emulator.admin("PUT", "faults", [throttled])
    environ = {**os.environ, **emulator.environ()}
    with (
        subprocess.Popen(
            [sys.executable, "-m", "reconciler", "apply", "-C", str(tmp_path), "--auto-approve"],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        time_limit(process),
    ):
        assert process.stderr is not None
        for line in process.stderr:
            if "created batch_export" in line:
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()
        out = process.stdout.read() if process.stdout is not None else ""
    assert process.returncode == 130, rest
    assert "Stopping: waiting for running changes" in rest
    assert "Interrupted: " in out
    assert "skipped: the run was interrupted" in rest
    emulator.admin("PUT", "faults", [])
    again = reconciler("apply", "-C", tmp_path, "--auto-approve", environ=emulator.environ())
    assert again.code == 0, again.err
    names = [
        export["name"]
        for project in emulator.state()["projects"]
        for export in project["batch_exports"]
    ]
    assert sorted(names) == sorted(f"E{n}" for n in range(150))


WORKSPACE = {"reconciler.yaml": "version: 1\n", "a.yaml": "projects:\n  web: {name: Web}\n"}


def until(process: subprocess.Popen[bytes], seen: Callable[[bytes], bool]) -> bytes:
    """Read standard error until a condition holds; return what was read."""
    assert process.stderr is not None
    text = b""
    while not seen(text) and (part := os.read(process.stderr.fileno(), 4096)):
        text += part
    return text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_at_the_prompt_ends_the_command_at_once(
    emulator: RunningEmulator, tmp_path: Path, number: signal.Signals
) -> None:
    write(tmp_path, WORKSPACE)
    terminal, stdin = pty.openpty()
    with (
        subprocess.Popen(
            [sys.executable, "-m", "reconciler", "apply", "-C", str(tmp_path)],
            env={**os.environ, **emulator.environ()},
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process,
        time_limit(process),
    ):
        until(process, lambda text: b"[y/N]" in text)
        process.send_signal(number)
        assert process.stderr is not None
        assert b"interrupted" in process.stderr.read()
    os.close(terminal)
    os.close(stdin)
    assert process.returncode == 130
    assert emulator.writes() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_f5_a_signal_while_planning_ends_the_command_at_once(
    tmp_path: Path, number: signal.Signals
) -> None:
    write(tmp_path, WORKSPACE)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(TIMEOUT)
        environ = {
            **os.environ,
            "RECONCILER_BASE_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "RECONCILER_ORGANIZATION": "org",
            "RECONCILER_API_KEY": "phx_key",
        }
        with (
            subprocess.Popen(
                [sys.executable, "-m", "reconciler", "plan", "-C", str(tmp_path)],
                env=environ,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            ) as process,
            time_limit(process),
        ):
            connection, _ = silent.accept()
            with connection:
                process.send_signal(number)
                assert process.stderr is not None
                err = without_progress(process.stderr.read().decode())
                assert err.strip() == "interrupted"
    assert process.returncode == 130


def test_ctrl_c_while_the_program_is_imported_prints_no_traceback(tmp_path: Path) -> None:
    slow = "import os, time; os.write(2, b'importing'); time.sleep(60)"
    write(tmp_path, {"click.py": slow})
    with (
        subprocess.Popen(
            [sys.executable, "-c", "from reconciler.commands import main; main()"],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            stderr=subprocess.PIPE,
        ) as process,
        time_limit(process),
    ):
        err = until(process, lambda text: b"importing" in text)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert (err + process.stderr.read()).decode() == "importing"
    assert process.returncode == -signal.SIGINT


def test_a_closed_output_causes_no_traceback(tmp_path: Path, emulator: RunningEmulator) -> None:
    with (
        subprocess.Popen(
            [sys.executable, "-m", "reconciler", "explain", "batch_export"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process,
        time_limit(process),
    ):
        assert process.stdout is not None
        process.stdout.close()
        err = process.stderr.read() if process.stderr is not None else b""
    assert b"Traceback" not in err


def test_the_embedded_service_stops_cleanly_and_keeps_its_data(tmp_path: Path) -> None:
    from tests.support.emulator import start_emulator

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
