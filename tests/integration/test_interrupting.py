"""Ctrl-C and SIGTERM: running requests finish, no new one starts, and a report is printed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.cli import reconciler, time_limit, write
from tests.support.emulator import RunningEmulator

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
    again = reconciler("apply", "-C", tmp_path, "--auto-approve", environ=emulator.environ())
    assert again.code == 0, again.err
    names = [
        export["name"]
        for project in emulator.state()["projects"]
        for export in project["batch_exports"]
    ]
    assert sorted(names) == sorted(f"E{n}" for n in range(150))


def test_a_closed_output_causes_no_traceback(tmp_path: Path, emulator: RunningEmulator) -> None:
    with (
        subprocess.Popen(
            [sys.executable, "-m", "reconciler", "schema", "batch_export"],
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
        again.process.send_signal(signal.SIGTERM)
        assert again.process.wait(timeout=20) == 0
