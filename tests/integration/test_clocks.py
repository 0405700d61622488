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


@pytest.fixture
def service(service_of: StartService) -> RunningEmulator:
    return service_of(None, "--dialect", "2026")


@pytest.mark.parametrize(("hours", "way"), [(AHEAD, "behind"), (BEHIND, "ahead")])
def test_apply_a3_commands_use_the_time_of_the_service_and_say_so(
    hours: int, way: str, service: RunningEmulator, tmp_path: Path
) -> None:
    """No gaps are invented, and what failed or was skipped by a pause is found."""
    clocks = Clocks(service, tmp_path, hours)
    service.advance(hours=5)
    words = ("gaps", "status --all", "runs Lake --since 140m")
    gaps, status, runs = ended = [clocks.run(*command.split()) for command in words]
    assert (gaps.code, "No gaps." in gaps.out) == (0, True), gaps.out
    assert "1 export: 1 ok" in status.out
    assert " min ago)" in status.out
    assert runs.out.count("Completed") == 2, runs.out
    service.admin("PUT", "outcomes", [{"match": {}, "status": "Failed"}])
    service.advance(hours=5)
    gaps = clocks.run("gaps")
    assert (gaps.code, "Intervals: 5 failed" in gaps.out) == (2, True), gaps.out
    filled = clocks.run("backfill", "Lake", "--gaps", "--dry-run")
    assert (filled.code, "5 runs" in filled.out) == (0, True), filled.err
    note = rf"note: the clock of this machine is \d+ h( \d+ min)? {way}; the time of the service"
    assert [len(re.findall(note, ran.err)) for ran in (*ended, gaps, filled)] == [1] * 5
    service.admin("PUT", "outcomes", [{"match": {}, "status": "Completed"}])
    service.advance(hours=2)
    service.call("POST", f"{clocks.path}pause/", {}).raise_for_status()
    service.advance(hours=5)
    assert clocks.run("unpause", "Lake", "--auto-approve").code == 0
    ran = clocks.run("backfill", "Lake", "--since-pause", "--auto-approve")
    assert (ran.code, "5 runs" in ran.out) == (0, True), (ran.out, ran.err)
    assert service.writes().count(("POST", "backfills")) == 1


def test_apply_a3_seconds_are_no_difference(service: RunningEmulator, tmp_path: Path) -> None:
    clocks = Clocks(service, tmp_path, 0)
    now = datetime.now(UTC) + timedelta(seconds=20)  # noqa: TID251
    service.admin("POST", "clock", {"set": now.isoformat()})
    assert "the clock of this machine" not in clocks.run("status").err
