"""Clocks that differ: commands use the time of the service, and report the difference."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.cli import Ran, reconciler
from tests.support.simulated import Begin, Simulated


def run(world: Simulated, *words: str) -> Ran:
    return reconciler(*words, "-C", world.workspace.folder, environ=world.service.environ())


@pytest.mark.parametrize(("ahead", "way"), [(13, "behind"), (-13, "ahead")])
def test_apply_a3_commands_use_the_time_of_the_service_and_say_so(
    ahead: int, way: str, begin: Begin
) -> None:
    """No gaps are invented, and what failed or was skipped by a pause is found."""
    now = datetime.now(UTC)  # noqa: TID251 - that of the commands
    start = now.replace(minute=30, second=0) + timedelta(hours=ahead - 5)
    world = begin("2026", start.isoformat(), auto_pause=False)
    lake = world.create()
    world.advance(hours=5)
    words = ("gaps", "status --all", "runs Lake --since 140m")
    gaps, status, runs = ended = [run(world, *command.split()) for command in words]
    assert (gaps.code, "No gaps." in gaps.out) == (0, True), gaps.out
    assert "1 export: 1 ok" in status.out
    assert " min ago)" in status.out
    assert runs.out.count("Completed") == 2, runs.out
    world.live(lake, {"match": {}, "status": "Failed"}, "5h")
    gaps = run(world, "gaps")
    assert (gaps.code, "Intervals: 5 failed" in gaps.out) == (2, True), gaps.out
    filled = run(world, "backfill", "Lake", "--gaps", "--dry-run")
    assert (filled.code, "5 runs" in filled.out) == (0, True), filled.err
    note = rf"note: the clock of this machine is \d+ h( \d+ min)? {way}; the time of the service"
    assert [len(re.findall(note, ran.err)) for ran in (*ended, gaps, filled)] == [1] * 5
    world.live(lake, {"match": {}, "status": "Completed"}, "2h", "pause", "5h")
    assert run(world, "unpause", "Lake", "--auto-approve").code == 0
    ran = run(world, "backfill", "Lake", "--since-pause", "--auto-approve")
    assert (ran.code, "5 runs" in ran.out) == (0, True), (ran.out, ran.err)
    assert world.service.writes().count(("POST", "backfills")) == 1


def test_apply_a3_seconds_are_no_difference(begin: Begin) -> None:
    later = datetime.now(UTC) + timedelta(seconds=20)  # noqa: TID251
    world = begin("2026", later.isoformat())
    assert "the clock of this machine" not in run(world, "status").err
