"""The calls of fixed commands, which are the same in every run."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import Settings, connected
from benchmarks.processes import run
from benchmarks.results import Result
from benchmarks.service import running
from benchmarks.workspaces import ENVIRONMENT, Workload, write

_CODES = (0, 2, 5)


def calls(settings: Settings) -> Result:
    """Count the calls of commands on small workspaces."""
    counted: dict[str, int] = {}
    newest = ("--dialect", "2026", "--no-organization-list")
    few = Workload(40, 200, projects_with_exports=10, newest=True)
    for name, workload, options in (
        ("plan, 200 projects, 10 with exports", few, newest[:2]),
        ("plan, 200 projects, 10 with exports, no organization list", few, newest),
    ):
        counted[name] = _calls(workload, ["plan"], settings, *options)
    commands = {
        "plan, no change": (Workload(600, 30), ["plan"]),
        "plan, 5 % different": (Workload(600, 30, different=5), ["plan"]),
        "plan, 150 projects": (Workload(0, 150), ["plan"]),
        "apply, 5 % different": (Workload(200, 10, different=5), ["apply", "--auto-approve"]),
        "apply, 30 creates": (
            Workload(24, 6, projects_live=False),
            ["apply", "--auto-approve"],
        ),
        "status": (Workload(100, 5), ["status"]),
    }
    for name, (workload, words) in commands.items():
        counted[name] = _calls(workload, words, settings)
    counted["apply of a saved plan, 5 % different"] = _calls_of_saved(settings)
    return Result("calls of fixed commands", calls=counted)


def _calls_of_saved(settings: Settings) -> int:
    """Count the calls of an apply of a saved plan, which reads again what the plan depends on."""
    with tempfile.TemporaryDirectory() as name:
        place = write(Workload(200, 10, different=5), Path(name))
        file = str(Path(name) / "saved.json")
        with running(place.seed) as service:
            for words in (["plan", "--out", file], ["apply", file]):
                service.clear_requests()
                task = connected(
                    service, *words, "-C", str(place.workspace), "-e", ENVIRONMENT, codes=_CODES
                )
                run(task.command, environ=task.environ, checkout=settings.checkout, codes=(0, 2))
            return len(service.requests)


def _calls(workload: Workload, words: Sequence[str], settings: Settings, *options: str) -> int:
    with tempfile.TemporaryDirectory() as name:
        place = write(workload, Path(name))
        with running(place.seed, *options) as service:
            task = connected(
                service, *words, "-C", str(place.workspace), "-e", ENVIRONMENT, codes=_CODES
            )
            run(task.command, environ=task.environ, checkout=settings.checkout, codes=task.codes)
            return len(service.requests)
