"""The calls of one apply, its plan and its verification included."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.support.cli import reconciler, write
from tests.support.emulator import DIALECTS, RunningEmulator

DELETES = "version: 1\npolicy: {prune: true, allow_project_deletion: true}\n"
ABSENT = ", state: absent"


def projects(more: str = "") -> str:
    lines = (f"  p{number}: {{name: P{number}{more}}}\n" for number in range(100))
    return "projects:\n" + "".join(lines)


def exports(interval: str, more: str = "", *, in_one: bool = True) -> str:
    lines = (
        f"  e{number}: {{project: p{0 if in_one else number}, name: E{number}, "
        f"interval: {interval}, destination: {{type: NoOp, config: {{}}}}{more}}}\n"
        for number in range(100)
    )
    return "batch_exports:\n" + "".join(lines)


ONE = "projects:\n  p0: {name: P0}\n"
CASES = {
    "update projects, fields of the list": (projects(), projects(", timezone: Europe/Berlin"), 210),
    "update projects, settings": (
        projects(", anonymize_ips: true"),
        projects(", anonymize_ips: false"),
        310,
    ),
    "update exports": (ONE + exports("hour"), ONE + exports("day"), 115),
    "delete exports": (ONE + exports("hour"), ONE + exports("hour", ABSENT), 210),
    "delete projects": (projects(), projects(ABSENT), 310),
    "delete projects with an export each": (
        projects() + exports("hour", in_one=False),
        projects(ABSENT) + exports("hour", ABSENT, in_one=False),
        310,
    ),
}


@pytest.mark.parametrize(
    ("dialect", "saved"), [*((dialect, False) for dialect in DIALECTS), ("interface", True)]
)
@pytest.mark.parametrize("case", CASES)
def test_performance_calls_of_an_apply(
    case: str, dialect: str, service_of: StartService, tmp_path: Path, *, saved: bool
) -> None:
    """One of a saved plan reads again what the plan depends on, however old the plan is."""
    before, after, most = CASES[case]
    # A deletion is pending there, and read again.
    most += 100 * (saved or (case.startswith("delete projects") and dialect == "2026"))
    service, words = service_of(None, "--dialect", dialect), ["apply", "-C", str(tmp_path)]
    write(tmp_path, {"reconciler.yaml": DELETES, "a.yaml": before})
    calls_of(service, *words, "--auto-approve")
    write(tmp_path, {"a.yaml": after})
    if saved:
        file = str(tmp_path / "saved.json")
        calls_of(service, "plan", "-C", str(tmp_path), "--out", file)
    assert calls_of(service, *words, file if saved else "--auto-approve") <= most


def calls_of(service: RunningEmulator, *words: str) -> int:
    """Return the number of calls of a command."""
    service.clear_requests()
    ran = reconciler(*words, environ=service.environ())
    assert ran.code == 0, ran.err
    return len(service.requests())
