"""Measure commands beside the baselines of the same run, in alternating rounds."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.processes import ROOT, Usage, reconciler, run
from benchmarks.service import Service
from benchmarks.workspaces import API_KEY, ENVIRONMENT, Place, environ

CHILDREN = Path(__file__).parent / "children"
BARE = (sys.executable, "-c", "pass")


@dataclass(frozen=True, slots=True)
class Settings:
    """How to measure: rounds, small workloads with `quick`, and the checkout to measure."""

    rounds: int = 5
    quick: bool = False
    checkout: Path = ROOT
    terraform_provider: Path | None = None
    peers: Path | None = None


@dataclass(slots=True)
class Task:
    """A command to measure, and what to do before each run of it."""

    command: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=environ)
    codes: Sequence[int] = (0,)
    before: Callable[[], object] = lambda: None


def alternating(tasks: Mapping[str, Task], settings: Settings) -> dict[str, list[Usage]]:
    """Run the tasks one after another, in so many rounds. Return the usages of each."""
    usages: dict[str, list[Usage]] = {name: [] for name in tasks}
    for _ in range(settings.rounds):
        for name, task in tasks.items():
            task.before()
            usage = run(
                task.command, environ=task.environ, checkout=settings.checkout, codes=task.codes
            )
            usages[name].append(usage)
    return usages


def cpu(usages: Sequence[Usage]) -> list[float]:
    """Return the CPU seconds of the rounds."""
    return [usage.cpu for usage in usages]


def wall(usages: Sequence[Usage]) -> list[float]:
    """Return the wall seconds of the rounds."""
    return [usage.wall for usage in usages]


def peak(usages: Sequence[Usage]) -> float:
    """Return the peak memory of the rounds in MB."""
    return max(usage.peak for usage in usages)


def baselines(
    folder: Path, files: Sequence[str], service: Service | None = None, paths: Sequence[str] = ()
) -> dict[str, Task]:
    """Return the baselines: bare and compose, and with a service pages and both in one."""
    jobs = {"compose": (files, ())}
    if service is not None:
        jobs |= {"pages": ((), paths), "baseline": (files, paths)}
    tasks = {"bare": Task(BARE)}
    for name, (composed, fetched) in jobs.items():
        job = {
            "base_url": service.base_url if service else "",
            "key": API_KEY,
            "files": list(composed),
            "paths": list(fetched),
        }
        file = folder / f"{name}.json"
        file.write_text(json.dumps(job), encoding="utf-8")
        tasks[name] = Task((sys.executable, str(CHILDREN / "baseline.py"), str(file)))
    return tasks


def connected(service: Service, *words: str, codes: Sequence[int] = (0,)) -> Task:
    """Return a task that runs a command of the program on a service."""
    return Task(reconciler(*words), environ(**service.environ), codes)


def plan_words(place: Place, *others: str) -> list[str]:
    """Return the words of a plan of the environment."""
    at = ["-C", str(place.workspace), "-e", ENVIRONMENT]
    return ["plan", *at, *others]


def list_pages(service: Service) -> list[str]:
    """Return the paths with queries that were fetched since the last reset."""
    return [
        f"{request['path']}?{request['query']}" if request["query"] else request["path"]
        for request in service.requests
        if request["method"] == "GET"
    ]


def stages(task: Task, words: Sequence[str], folder: Path, settings: Settings) -> dict[str, float]:
    """Return the CPU seconds of the stages of a command of the program."""
    file = folder / "stages.json"
    command = [sys.executable, str(CHILDREN / "stages.py"), str(file), *words]
    run(command, environ=task.environ, checkout=settings.checkout, codes=task.codes)
    spent: dict[str, float] = json.loads(file.read_bytes())
    return spent
