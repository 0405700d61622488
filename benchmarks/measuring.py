"""Run commands as processes, and measure them in alternating rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.service import ROOT, Service
from benchmarks.workspaces import API_KEY, ENVIRONMENT, Place, environ

CHILDREN = Path(__file__).parent / "children"
BARE = (sys.executable, "-c", "pass")
_RECONCILER = (sys.executable, "-c", "from reconciler.commands import main; main()")
_OTHER = " of the checkout"


@dataclass(frozen=True, slots=True)
class Settings:
    """How to measure: rounds, small workloads with `quick`, and a checkout to compare with."""

    rounds: int = 5
    quick: bool = False
    checkout: Path | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process used: wall time and CPU time in seconds, and its peak memory in MB.

    CPU time is user and system time, with that of processes it waited for, such as git.
    """

    wall: float
    cpu: float
    peak: float


@dataclass(slots=True)
class Task:
    """A command to measure, and what to do before each run of it."""

    command: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=environ)
    codes: Sequence[int] = (0,)
    before: Callable[[], object] = lambda: None
    checkout: Path = ROOT

    def run(self) -> Usage:
        """Run the command. Raise RuntimeError with its messages for another exit code."""
        with tempfile.TemporaryFile() as output:
            begun = time.perf_counter()
            process = subprocess.Popen(
                self.command,
                env=self.environ,
                cwd=self.checkout,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                _, status, used = os.wait4(process.pid, 0)
            except BaseException:
                process.kill()
                process.wait()
                raise
            wall = time.perf_counter() - begun
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode not in self.codes:
                output.seek(0)
                text = output.read().decode(errors="replace")
                words = " ".join(self.command)
                raise RuntimeError(f"exit code {process.returncode}: {words}\n{text}")
        return Usage(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def program(*words: str, **others: str) -> Task:
    """Return a task that runs the program, as its console script starts it."""
    return Task([*_RECONCILER, *words], environ(**others))


def connected(service: Service, *words: str, codes: Sequence[int] = (0,)) -> Task:
    """Return a task that runs a command of the program on a service."""
    return replace(program(*words, **service.environ), codes=codes)


def at(place: Place) -> list[str]:
    """Return the options that select the environment of a workspace."""
    return ["-C", str(place.workspace), "-e", ENVIRONMENT]


def alternating(tasks: Mapping[str, Task], settings: Settings) -> dict[str, list[Usage]]:
    """Run the tasks one after another, in so many rounds. Return the usages of each.

    With a checkout, each task of the program is also run by the program there.
    """
    every: dict[str, Task] = {}
    for name, task in tasks.items():
        every[name] = task
        if settings.checkout is not None and tuple(task.command[:3]) == _RECONCILER:
            every[f"{name}{_OTHER}"] = replace(task, checkout=settings.checkout)
    usages: dict[str, list[Usage]] = {name: [] for name in every}
    for _ in range(settings.rounds):
        for name, task in every.items():
            task.before()
            usages[name].append(task.run())
    return usages


def compared(usages: Mapping[str, Sequence[Usage]]) -> dict[str, tuple[list[float], list[float]]]:
    """Return the CPU seconds of each task of the program, and those of the checkout."""
    return {
        f"{name}, CPU ÷ checkout": (cpu(rounds), cpu(usages[f"{name}{_OTHER}"]))
        for name, rounds in usages.items()
        if f"{name}{_OTHER}" in usages
    }


def cpu(usages: Sequence[Usage]) -> list[float]:
    """Return the CPU seconds of the rounds."""
    return [usage.cpu for usage in usages]


def wall(usages: Sequence[Usage]) -> list[float]:
    """Return the wall seconds of the rounds."""
    return [usage.wall for usage in usages]


def peak(usages: Sequence[Usage]) -> float:
    """Return the peak memory of the rounds in MB."""
    return max(usage.peak for usage in usages)


def baseline(folder: Path, service: Service, files: Sequence[str]) -> Task:
    """Return the task that fetches what was fetched since the last reset, and parses the files."""
    paths = [
        f"{request['path']}?{request['query']}" if request["query"] else request["path"]
        for request in service.requests
        if request["method"] == "GET"
    ]
    job = {"base_url": service.base_url, "key": API_KEY, "files": list(files), "paths": paths}
    file = folder / "baseline.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    return Task((sys.executable, str(CHILDREN / "baseline.py"), str(file)))
