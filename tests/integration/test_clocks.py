"""Clocks that differ: commands use the time of the service, and report the difference."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.simulated import no_op_export

AHEAD, BEHIND = 13, -13


class Clocks:
    """A service with an hourly export. In five hours its clock is some hours ahead of this one."""

    def __init__(self, service: RunningEmulator, folder: Path, hours: float) -> None:
        self.service, self.folder = service, folder
        write(folder, {"reconciler.yaml": "version: 1\n", "a.yaml": "batch_exports: {}\n"})
        service.admin("PUT", "settings", {"auto_pause": False})
        service.admin("PUT", "outcomes", [{"match": {}, "status": "Completed", "seconds": 10}])
        now = datetime.fromisoformat(service.admin("GET", "clock")["now"])
        begin = (now + timedelta(hours=hours - 5)).replace(minute=30, second=0)
        service.admin("POST", "clock", {"set": begin.isoformat()})
        self.path = "/api/projects/1/batch_exports/"
        answer = service.call("POST", self.path, no_op_export("Lake"))
        self.path += f"{answer.json()['id']}/"

    def run(self, *words: str) -> Ran:
        return reconciler(*words, "-C", self.folder, environ=self.service.environ())

    def posts(self) -> int:
        calls = self.service.requests()
        return len([it for it in calls if it["path"].endswith("/backfills/") and it["body"]])


@pytest.fixture
def service(service_of: StartService) -> RunningEmulator:
    return service_of(None, "--dialect", "2026")


def test_apply_a3_gaps_are_found_although_this_clock_is_behind(
    service: RunningEmulator, tmp_path: Path
) -> None:
    clocks = Clocks(service, tmp_path, AHEAD)
    service.admin("PUT", "outcomes", [{"match": {}, "status": "Failed"}])
    service.advance(hours=5)
    found = clocks.run("gaps")
    assert (found.code, "Intervals: 5 failed" in found.out) == (2, True), found.out
    note = r"note: the clock of this machine is 1[23] h behind; the time of the service is used\n"
    assert len(re.findall(note, found.err)) == 1, found.err
    filled = clocks.run("backfill", "Lake", "--gaps", "--dry-run")
    assert (filled.code, "5 runs" in filled.out) == (0, True), filled.err
    assert len(re.findall(note, filled.err)) == 1


def test_apply_a3_no_gaps_are_invented_if_this_clock_is_ahead(
    service: RunningEmulator, tmp_path: Path
) -> None:
    clocks = Clocks(service, tmp_path, BEHIND)
    service.advance(hours=5)
    found = clocks.run("gaps")
    assert (found.code, "No gaps." in found.out) == (0, True), found.out
    assert re.search("the clock of this machine is 1[23] h ahead;", found.err)


@pytest.mark.parametrize("hours", [AHEAD, BEHIND])
def test_apply_a3_the_skipped_intervals_of_a_pause_are_made_up_for(
    service: RunningEmulator, tmp_path: Path, hours: int
) -> None:
    clocks = Clocks(service, tmp_path, hours)
    service.call("POST", f"{clocks.path}pause/", {}).raise_for_status()
    service.advance(hours=5)
    assert clocks.run("unpause", "Lake", "--auto-approve").code == 0
    ran = clocks.run("backfill", "Lake", "--since-pause", "--auto-approve")
    assert (ran.code, "5 runs" in ran.out) == (0, True), (ran.out, ran.err)
    assert clocks.posts() == 1


@pytest.mark.parametrize("hours", [AHEAD, BEHIND])
def test_apply_a3_status_and_runs_count_from_the_time_of_the_service(
    service: RunningEmulator, tmp_path: Path, hours: int
) -> None:
    clocks = Clocks(service, tmp_path, hours)
    service.advance(hours=5)
    status = clocks.run("status", "--all")
    assert "1 export: 1 ok" in status.out
    assert " min ago)" in status.out
    assert "the clock of this machine is 1" in status.err
    runs = clocks.run("runs", "Lake", "--since", "140m")
    assert runs.out.count("Completed") == 2, runs.out
    assert "the clock of this machine is 1" in runs.err


def test_apply_a3_seconds_are_no_difference(service: RunningEmulator, tmp_path: Path) -> None:
    clocks = Clocks(service, tmp_path, 0)
    now = datetime.now(UTC) + timedelta(seconds=20)  # noqa: TID251
    service.admin("POST", "clock", {"set": now.isoformat()})
    assert "the clock of this machine" not in clocks.run("status").err
