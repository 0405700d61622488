"""`backfill --since-pause` of several exports: a stop ends it, and no backfill is forgotten."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.support.cli import write
from tests.support.emulator import RunningEmulator
from tests.support.limits import time_limit, until

WORKSPACE = {"reconciler.yaml": "version: 1\n", "a.yaml": "batch_exports: {}\n"}


@pytest.fixture
def running(service_of: StartService) -> RunningEmulator:
    return service_of(None, "--dialect", "2026")


def paused(running: RunningEmulator, name: str) -> str:
    """Create an export that is paused since years, and return its id."""
    destination = {"type": "NoOp", "config": {}}
    body = {"name": name, "interval": "day", "destination": destination, "paused": True}
    live_id = str(running.call("POST", "/api/projects/1/batch_exports/", body).json()["id"])
    path = f"/api/projects/1/batch_exports/{live_id}/"
    since = {"last_paused_at": "2026-01-01T00:00:00Z"}
    running.call("PATCH", path, since).raise_for_status()
    return live_id


def test_a_stop_starts_no_further_backfill(running: RunningEmulator, tmp_path: Path) -> None:
    write(tmp_path, WORKSPACE)
    ids = {paused(running, name) for name in ("A", "B")}
    match = {"method": "POST", "path": "*/backfills/", "times": 1}
    running.admin("PUT", "faults", [{"match": match, "fault": "latency", "seconds": 4}])
    running.clear_requests()
    command = ("backfill", "A", "B", "--since-pause", "--auto-approve", "-C", str(tmp_path))
    with (
        subprocess.Popen(
            [sys.executable, "-m", "reconciler", *command],
            env={**os.environ, **running.environ()},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        time_limit(process),
    ):
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Plan: 2 backfills"):
                break
        until(lambda: running.admin("GET", "faults")["faults"][0]["fired"], process)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate()
    assert process.returncode == 130, err
    sent = [request for request in running.requests() if request["path"].endswith("/backfills/")]
    assert [request["method"] for request in sent].count("POST") == 1, out
    (first,) = {request["path"].split("/")[-3] for request in sent}
    (second,) = ids - {first}
    (command,) = (
        line for line in out.splitlines() if line.startswith("      reconciler backfill ")
    )
    assert command.split()[2:4] == [f"batch_export.id:{second}", "--from"]
    assert command.endswith(f"--workspace={tmp_path}")
