"""`backfill`: export a past range, once, on every server."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator

BODY = {"name": "Lake", "interval": "hour", "destination": {"type": "NoOp", "config": {}}}


def workspace(folder: Path, **fields: object) -> Path:
    files = {"batch_exports": {"lake": {"project": {"id": 1}, **BODY, **fields}}}
    return write(folder, {"reconciler.yaml": "version: 1\n", "a.yaml": json.dumps(files)})


@pytest.mark.parametrize("dialect", ["interface", "2025", "2026"])
def test_the_command_that_a_plan_names_works_as_printed(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    folder = workspace(tmp_path, paused=False)
    running = service_of(None, "--dialect", dialect)
    environ = running.environ()
    assert reconciler("apply", "-C", folder, "--auto-approve", environ=environ).code == 0
    export = running.exports()["Lake"]
    path = f"/api/projects/1/batch_exports/{export['id']}"
    running.call("POST", f"{path}/pause/", {})
    body = {"last_paused_at": "2026-01-01T00:00:00Z"}
    running.call("PATCH", f"{path}/", body).raise_for_status()
    plan = reconciler("plan", "-C", folder, environ=environ).out
    match = re.search(r"reconciler (backfill[^\n]*(?:\n +\S[^\n]*)*?Z)\s+--end\s+(\S+Z)", plan)
    assert match is not None, plan
    command = f"{match[1]} --end 2026-01-01T03:00:00Z".split()
    ran = reconciler(*command, "-C", folder, environ=environ)
    assert ran.code == 0, ran.err
    assert "from 2026-01-01T00:00:00Z to 2026-01-01T03:00:00Z" in ran.out
    running.advance(hours=1)
    runs = running.call("GET", f"{path}/runs/?after=-90d").json()["results"]
    assert len([run for run in runs if run["data_interval_start"] < "2026-01-02"]) == 3


def test_days_are_sent_as_dates_where_the_server_requires_it(
    service_of: StartService, tmp_path: Path
) -> None:
    folder = workspace(tmp_path, interval="day")
    running = service_of(None, "--dialect", "2026")
    environ = running.environ()
    assert reconciler("apply", "-C", folder, "--auto-approve", environ=environ).code == 0
    ran = reconciler(
        *("backfill", "batch_export.lake", "--start", "2026-01-01", "--end", "2026-01-03"),
        *("-C", folder),
        environ=environ,
    )
    assert ran.code == 0, ran.err
    assert "from 2026-01-01 to 2026-01-03" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("batch_export.lake", "--start", "2026-01-02", "--end", "2026-01-01"), "empty time range"),
        (("batch_export.lake", "--start", "2026-01-02", "--end", "2100-01-01"), "in the future"),
        (("batch_export.nope", "--start", "2026-01-01", "--end", "2026-01-02"), "nothing matches"),
        (("batch_export.lake", "--start", "soon", "--end", "2026-01-02"), "invalid time"),
    ],
)
def test_an_invalid_range_is_reported(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    ran = reconciler("backfill", *arguments, "-C", workspace(tmp_path))
    assert ran.code == 64
    assert message in ran.err


def test_a_lost_answer_is_reported_and_not_repeated(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    folder = workspace(tmp_path)
    environ = emulator.environ()
    assert reconciler("apply", "-C", folder, "--auto-approve", environ=environ).code == 0
    rule = {"match": {"path": "*/backfill/"}, "fault": "drop", "when": "after"}
    emulator.admin("PUT", "faults", [rule])
    emulator.clear_requests()
    ran = reconciler(
        *("backfill", "batch_export.lake", "--start", "2026-01-01", "--end", "2026-01-02"),
        *("-C", folder),
        environ=environ,
    )
    assert ran.code == 1
    assert "outcome unknown" in ran.err
    assert [name for _, name in emulator.writes()].count("backfill") == 1


def test_too_many_running_backfills_are_reported_and_not_repeated(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    folder = workspace(tmp_path)
    environ = emulator.environ()
    assert reconciler("apply", "-C", folder, "--auto-approve", environ=environ).code == 0
    rule = {"match": {"path": "*/backfill/"}, "fault": "error", "status": 429}
    emulator.admin("PUT", "faults", [{**rule, "code": "too_many_concurrent_backfills"}])
    emulator.clear_requests()
    ran = reconciler(
        *("backfill", "batch_export.lake", "--start", "2026-01-01", "--end", "2026-01-02"),
        *("-C", folder),
        environ=environ,
    )
    assert ran.code == 1
    assert "hint: wait until running backfills finish" in ran.err
    assert [name for _, name in emulator.writes()].count("backfill") == 1
