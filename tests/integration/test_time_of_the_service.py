"""The time of a service: a seed with a past, and clocks that differ."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.emulator.clock import Clock
from reconciler.emulator.dialects import DIALECTS as BY_NAME
from reconciler.emulator.inputs import BadInput
from reconciler.emulator.seed import plant
from reconciler.emulator.store import Store
from reconciler.emulator.world import World
from tests.conftest import ROOT, StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.declared import seed
from tests.support.emulator import DIALECTS, RunningEmulator
from tests.support.simulated import Begin, Simulated, no_op_export

EXPORTS = [no_op_export(name) for name in ("Orders", "Sessions")]
GOOD = {"match": {}, "records": 1000, "seconds": 20}
SEED: dict[str, Any] = {
    **seed({"name": "Web", "batch_exports": EXPORTS}),
    "lived": "3d",
    "users": [{"id": 7, "first_name": "Ada", "email": "ada@example.com"}],
    "events": [
        {"ago": "6h", "outcomes": [{"match": {"name": "Orders"}, "status": "Failed"}, GOOD]},
        {"ago": "3d", "outcomes": [GOOD]},
        {"ago": "50h", "pause": "Sessions"},
        {"ago": "30h", "unpause": "Sessions"},
        {"ago": "29h", "backfill": "Sessions", "from": "50h", "to": "30h"},
    ],
}


def runs_of(running: RunningEmulator, name: str) -> list[dict[str, Any]]:
    answer = running.call("GET", f"{running.path_of(name)}runs/")
    answer.raise_for_status()
    return list(answer.json()["results"])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_apply_p2_a_service_has_lived_for_three_days(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    running = service_of(SEED, "--dialect", dialect)
    orders, sessions = runs_of(running, "Orders"), runs_of(running, "Sessions")
    failed = [run for run in orders if run["status"] == "Failed"]
    # The service of 2026 pauses an export after three failures, the others after ten.
    assert len(failed) == 3 if dialect == "2026" else 5 <= len(failed) <= 7
    assert running.exports()["Orders"]["paused"] is (dialect == "2026")
    assert sum(run["status"] == "Completed" for run in orders) in range(64, 68)
    # The pause left out twenty runs, which the backfill made.
    ends = {run["data_interval_end"] for run in sessions}
    assert len(ends) in range(71, 74)
    assert {run["status"] for run in sessions} <= {"Completed", "Running", "Starting"}
    # The clock of the service is that of this machine again.
    folder = write(tmp_path, {"reconciler.yaml": "version: 1\n"})
    ran = reconciler("status", "-C", folder, environ=running.environ())
    assert (ran.code, "clock" in ran.err) == (0, False)


def test_apply_p2_the_seeds_of_the_page_are_valid() -> None:
    page = (ROOT / "docs/inside/emulator.md").read_text(encoding="utf-8")
    seed: dict[str, Any] = {}
    for title in ("\n## The seed\n", "\n### A seed with a past\n"):
        seed |= yaml.safe_load(page.partition(title)[2].partition("```yaml\n")[2].split("```")[0])
    world = World(Store(":memory:"), Clock(), BY_NAME["2026"])
    plant(world, seed)
    assert world.outcomes
    assert world.settings.auto_pause is False


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lived": "three days"}, "lived must be a duration"),
        ({"lived": "1h"}, "is before the service lived"),
        ({"events": [{"pause": "Orders"}]}, "an event needs ago and one of"),
        ({"events": [{"ago": "1h", "pause": "Orders", "from": "1h"}]}, "unknown key 'from'"),
        ({"events": [{"ago": "1h", "pause": "Carts"}]}, "unknown export 'Carts'"),
        ({"events": [{"ago": "1h", "outcomes": [{"state": "x"}]}]}, "unknown key 'state'"),
        ({"events": [{"ago": "1h", "backfill": "Orders"}]}, "from must be a duration"),
        (
            {"events": [{"ago": "1h", "backfill": "Orders", "from": "2h", "to": "2h"}]},
            "the range of a backfill is empty",
        ),
    ],
)
def test_apply_p2_a_wrong_past_is_refused(changed: dict[str, Any], message: str) -> None:
    world = World(Store(":memory:"), Clock(), BY_NAME["2026"])
    with pytest.raises(BadInput, match=message):
        plant(world, {**SEED, **changed})


# Clocks that differ: commands use the time of the service, and report the difference.


def run_in(world: Simulated, *words: str) -> Ran:
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
    gaps, status, runs = ended = [run_in(world, *command.split()) for command in words]
    assert (gaps.code, "No gaps." in gaps.out) == (0, True), gaps.out
    assert "1 export: 1 ok" in status.out
    assert " min ago)" in status.out
    assert runs.out.count("Completed") == 2, runs.out
    world.live(lake, {"match": {}, "status": "Failed"}, "5h")
    gaps = run_in(world, "gaps")
    assert (gaps.code, "Intervals: 5 failed" in gaps.out) == (2, True), gaps.out
    filled = run_in(world, "backfill", "Lake", "--gaps", "--dry-run")
    assert (filled.code, "5 runs" in filled.out) == (0, True), filled.err
    note = rf"note: the clock of this machine is \d+ h( \d+ min)? {way}; the time of the service"
    assert [len(re.findall(note, ran.err)) for ran in (*ended, gaps, filled)] == [1] * 5
    world.live(lake, {"match": {}, "status": "Completed"}, "2h", "pause", "5h")
    assert run_in(world, "unpause", "Lake", "--auto-approve").code == 0
    ran = run_in(world, "backfill", "Lake", "--since-pause", "--auto-approve")
    assert (ran.code, "5 runs" in ran.out) == (0, True), (ran.out, ran.err)
    assert world.service.writes().count(("POST", "backfills")) == 1


def test_apply_a3_seconds_are_no_difference(begin: Begin) -> None:
    later = datetime.now(UTC) + timedelta(seconds=20)  # noqa: TID251
    world = begin("2026", later.isoformat())
    assert "the clock of this machine" not in run_in(world, "status").err
