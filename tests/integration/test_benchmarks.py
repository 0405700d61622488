"""Test the generated workspaces of the benchmarks, and the comparison of what is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.results import differences
from benchmarks.workspaces import ENVIRONMENT, SECRETS, Workload, write
from tests.conftest import StartService
from tests.support.cli import reconciler


@pytest.mark.parametrize(
    ("workload", "summary"),
    [
        (Workload(40, 4), "No changes."),
        (Workload(40, 4, different=5), "Plan: 0 to create, 2 to update, 0 to delete"),
        (Workload(40, 4, different=100), "Plan: 0 to create, 40 to update, 0 to delete"),
        (Workload(8, 2, exports_live=False), "Plan: 8 to create, 0 to update, 0 to delete"),
        (Workload(8, 4, projects_with_exports=2, newest=True), "No changes."),
        (Workload(0, 3, projects_live=False), "Plan: 3 to create, 0 to update, 0 to delete"),
    ],
)
def test_live_state_of_a_workload(
    tmp_path: Path, service_of: StartService, workload: Workload, summary: str
) -> None:
    place = write(workload, tmp_path, in_git=False)
    service = service_of(json.loads(place.seed.read_bytes()))
    ran = reconciler(
        *("plan", "-C", place.workspace, "-e", ENVIRONMENT, "--no-inventory", "--trust-workspace"),
        environ={**service.environ(), **SECRETS},
    )
    assert summary in ran.out


def test_what_is_counted_is_compared() -> None:
    before = {"calls": {"plan": 6, "status": 2}, "modules": {"plan": ["httpx", "click"]}}
    after = {"calls": {"plan": 7, "status": 2}, "modules": {"plan": ["click", "yaml"]}}
    assert differences(before, after) == ["plan: 6 -> 7 calls", "plan imports +yaml -httpx"]
    assert differences(before, before) == []
