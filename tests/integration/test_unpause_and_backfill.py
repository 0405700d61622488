"""`unpause --backfill` of several exports: a stop ends it, and no backfill is forgotten."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.support.cli import reconciler, write
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
    command = ("unpause", "A", "B", "--backfill", "--auto-approve", "-C", str(tmp_path))
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
    words = f"backfill batch_export.id:{second} --since-pause --workspace={tmp_path}"
    assert f"reconciler {words}" in err


def test_a_backfill_that_is_not_started_is_named(running: RunningEmulator, tmp_path: Path) -> None:
    write(tmp_path, WORKSPACE)
    good, bad = paused(running, "A"), paused(running, "B")
    match = {"method": "POST", "path": f"*/{bad}/unpause/"}
    running.admin("PUT", "faults", [{"match": match, "fault": "error", "status": 400}])
    command = ("unpause", "A", "B", "--backfill", "--auto-approve", "-C", tmp_path)
    ran = reconciler(*command, environ=running.environ())
    assert ran.code == 3
    named = f"the backfill of batch_export.id:{good} was not started: "
    words = f"backfill batch_export.id:{good} --since-pause --workspace={tmp_path}"
    assert f"{named}reconciler {words}" in ran.err
    again = (
        "backfill",
        f"batch_export.id:{good}",
        "--since-pause",
        "--auto-approve",
        "-C",
        tmp_path,
    )
    assert reconciler(*again, environ=running.environ()).code == 0


@pytest.mark.parametrize("status", [500, 403])
def test_apply_a2_the_same_command_goes_on_after_a_failed_backfill(
    running: RunningEmulator, tmp_path: Path, status: int
) -> None:
    write(tmp_path, WORKSPACE)
    paused(running, "A")
    match = {"method": "POST", "path": "*/backfills/"}
    running.admin("PUT", "faults", [{"match": match, "fault": "error", "status": status}])
    command = ("unpause", "A", "--backfill", "--auto-approve", "-C", tmp_path)
    assert reconciler(*command, environ=running.environ()).code == 3
    running.admin("PUT", "faults", [])
    running.clear_requests()
    again = reconciler(*command, environ=running.environ())
    sent = [it for it in running.requests() if it["path"].endswith("/backfills/")]
    assert (again.code, [it["method"] for it in sent].count("POST")) == (0, 1), again.out
    running.clear_requests()
    assert reconciler(*command, environ=running.environ()).code == 0
    sent = [it for it in running.requests() if it["path"].endswith("/backfills/")]
    assert [it["method"] for it in sent].count("POST") == 0
