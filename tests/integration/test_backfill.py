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


def workspace(folder: Path, client: str = "{}", **fields: object) -> Path:
    files = {"batch_exports": {"lake": {"project": {"id": 1}, **BODY, **fields}}}
    return write(
        folder, {"reconciler.yaml": f"version: 1\nclient: {client}\n", "a.yaml": json.dumps(files)}
    )


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
    match = re.search(r"reconciler (backfill\s+\S+\s+--from\s+\S+Z)\s+--to\s+\S+Z", plan)
    assert match is not None, plan
    command = f"{match[1]} --to 2026-01-01T03:00:00Z --auto-approve".split()
    ran = reconciler(*command, "-C", folder, environ=environ)
    assert ran.code == 0, ran.err
    assert "2026-01-01T00:00:00Z to 2026-01-01T03:00:00Z  3 runs" in ran.out
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
        *("backfill", "batch_export.lake", "--from", "2026-01-01", "--to", "2026-01-03"),
        *("-C", folder, "--auto-approve"),
        environ=environ,
    )
    assert ran.code == 0, ran.err
    assert "2026-01-01T00:00:00Z to 2026-01-03T00:00:00Z  2 runs" in ran.out
    sent = [item["body"] for item in running.requests() if item["path"].endswith("/backfills/")]
    assert {"start_at": "2026-01-01", "end_at": "2026-01-03"} in sent


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "2026-01-02", "--to", "2026-01-01"), "empty time range"),
        (("--from", "2026-01-02", "--to", "2100-01-01"), "in the future"),
        (("--from", "soon", "--to", "2026-01-02"), "invalid time"),
        (("--gaps", "--since", "soon"), "invalid duration"),
        (("--since", "7d"), "--since needs --gaps"),
        ((), "what to backfill is not clear"),
    ],
)
def test_invalid_options_are_reported(
    emulator: RunningEmulator, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    folder = workspace(tmp_path)
    environ = emulator.environ()
    assert reconciler("apply", "-C", folder, "--auto-approve", environ=environ).code == 0
    emulator.clear_requests()
    command = ("backfill", "lake", *arguments, "--auto-approve", "-C", folder)
    ran = reconciler(*command, environ=environ)
    assert (ran.code, emulator.writes()) == (64, [])
    assert message in ran.err


def test_too_many_running_backfills_are_waited_for_and_then_reported(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    folder = workspace(tmp_path, "{max_wait: 0}")
    environ = emulator.environ()
    assert reconciler("apply", "-C", folder, "--auto-approve", environ=environ).code == 0
    rule = {"match": {"path": "*/backfill/"}, "fault": "error", "status": 429}
    emulator.admin("PUT", "faults", [{**rule, "code": "too_many_concurrent_backfills"}])
    emulator.clear_requests()
    ran = reconciler(
        *("backfill", "batch_export.lake", "--from", "2026-01-01", "--to", "2026-01-02"),
        *("-C", folder, "--auto-approve"),
        environ=environ,
    )
    assert ran.code == 3
    assert "hint: wait until running backfills of this project finish" in ran.out
    assert [name for _, name in emulator.writes()].count("backfill") == 1


def test_without_a_terminal_an_approval_is_needed(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    folder, environ = workspace(tmp_path), emulator.environ()
    assert reconciler("apply", "-y", "-C", folder, environ=environ).code == 0
    words = ("backfill", "lake", "--from", "2026-01-01", "--to", "2026-01-02", "-C", folder)
    ran = reconciler(*words, environ=environ)
    assert ran.code == 64
    assert "24 runs" in ran.out
    assert "pass --auto-approve" in ran.err


def test_backfills_that_were_cancelled_before_an_error_are_named(
    service_of: StartService, tmp_path: Path
) -> None:
    folder = workspace(tmp_path)
    running = service_of(None, "--dialect", "2026")
    environ = running.environ()
    assert reconciler("apply", "-C", folder, "--auto-approve", environ=environ).code == 0
    for month in ("01", "02"):
        times = ("--from", f"2026-{month}-01", "--to", f"2026-{month}-02")
        filled = reconciler(
            "backfill", "lake", *times, "-C", folder, "--auto-approve", environ=environ
        )
        assert filled.code == 0
    match = {"method": "POST", "path": "*/cancel/", "from": 2}
    running.admin("PUT", "faults", [{"match": match, "fault": "error", "status": 400}])
    log = tmp_path / "log.jsonl"
    cancel = ("backfill", "lake", "--cancel", "-C", folder)
    refused = reconciler(*cancel, "--log-file", log, environ=environ)
    assert (refused.code, refused.err.splitlines()[0]) == (
        64,
        "error: --log-file is not written by --cancel",
    )
    running.clear_requests()
    ran = reconciler(*cancel, environ=environ)
    first = next(
        call["path"].split("/")[-3] for call in running.requests() if call["method"] == "POST"
    )
    assert (ran.code, f"cancelled backfill {first}\n" in ran.err) == (3, True), ran.err


def test_apply_p1_gaps_of_many_exports_are_closed_with_one_approval(
    service_of: StartService, tmp_path: Path
) -> None:
    write(tmp_path, {"reconciler.yaml": "version: 1\n", "a.yaml": "batch_exports: {}\n"})
    running = service_of(None, "--dialect", "2026")
    running.admin("POST", "clock", {"set": "2026-10-20T10:30:00Z"})
    for name in ("A", "B", "C"):
        body = {**BODY, "name": name}
        running.call("POST", "/api/projects/1/batch_exports/", body).raise_for_status()
    failing = [{"match": {"name": name, "times": 2}, "status": "Failed"} for name in ("A", "B")]
    running.admin("PUT", "outcomes", [*failing, {"match": {}, "status": "Completed"}])
    running.advance(hours=4)
    running.clear_requests()
    many = ("backfill", "*", "--gaps", "-C", tmp_path)
    ran = reconciler(*many, "--auto-approve", environ=running.environ())
    assert (ran.code, running.writes()) == (0, [("POST", "backfills")] * 2), (ran.out, ran.err)
    assert "Plan: 2 backfills of 2 exports, " in ran.out
    # What was started is not started again.
    again = reconciler(*many, "--auto-approve", environ=running.environ())
    assert (again.code, len(running.writes())) == (0, 2)


@pytest.mark.parametrize(
    ("selection", "code", "count"),
    [
        (("A", "C"), 0, 2),
        (("--project", "Default*"), 0, 3),
        (("*", "--project", "1"), 0, 3),
        ((), 64, 0),
        (("A", "nothing"), 64, 0),
    ],
)
def test_apply_p1_a_range_of_several_exports(
    service_of: StartService,
    tmp_path: Path,
    selection: tuple[str, ...],
    code: int,
    count: int,
) -> None:
    write(tmp_path, {"reconciler.yaml": "version: 1\n", "a.yaml": "batch_exports: {}\n"})
    running = service_of(None, "--dialect", "2026")
    for name in ("A", "B", "C"):
        body = {**BODY, "name": name}
        running.call("POST", "/api/projects/1/batch_exports/", body).raise_for_status()
    running.clear_requests()
    times = ("--from", "2026-01-01", "--to", "2026-01-02", "--auto-approve")
    ran = reconciler("backfill", *selection, *times, "-C", tmp_path, environ=running.environ())
    assert (ran.code, len(running.writes())) == (code, count), (ran.out, ran.err)
