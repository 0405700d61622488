"""`import` of all live objects, and plans of the files that it writes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import (
    Settings,
    Task,
    alternating,
    baselines,
    connected,
    cpu,
    list_pages,
    peak,
    stages,
)
from benchmarks.processes import run
from benchmarks.results import Ratio, Result, ratio_of
from benchmarks.service import Service, running
from benchmarks.workspaces import Workload, write

_WORKSPACE_FILE = "version: 1\nresources: [projects/*.yaml]\nenvironments: {production: {}}\n"
_NEWEST = ("--dialect", "2026", "--no-organization-list")


@dataclass(frozen=True, slots=True)
class Imported:
    """A service, and a workspace to import its objects into."""

    service: Service
    folder: Path

    @property
    def workspace(self) -> Path:
        """Return the workspace."""
        return self.folder / "imported"

    def task(self, word: str) -> Task:
        """Return the task of a command in the workspace. An import begins without resources."""
        task = connected(self.service, word, "-C", str(self.workspace))
        if word == "import":
            task.before = self._empty
        return task

    def _empty(self) -> None:
        shutil.rmtree(self.workspace, ignore_errors=True)
        self.workspace.mkdir()
        (self.workspace / "reconciler.yaml").write_text(_WORKSPACE_FILE, encoding="utf-8")

    def calls(self, word: str, settings: Settings) -> int:
        """Run a command. Return the number of its calls."""
        task = self.task(word)
        task.before()
        self.service.clear_requests()
        run(task.command, environ=task.environ, checkout=settings.checkout)
        return len(self.service.requests)

    def baselines(self) -> dict[str, Task]:
        """Return the baselines that fetch what was fetched, and compose the files."""
        files = sorted(map(str, self.workspace.rglob("*.yaml")))
        return baselines(self.folder, files, self.service, list_pages(self.service))


@contextmanager
def _service(workload: Workload, *options: str) -> Iterator[Imported]:
    with tempfile.TemporaryDirectory() as name:
        place = write(workload, Path(name), in_git=False)
        with running(place.seed, *options) as service:
            yield Imported(service, Path(name))


def _workload(settings: Settings, *, newest: bool = False) -> Workload:
    exports, projects = (1_000, 20) if settings.quick else (10_000, 200)
    return Workload(exports, projects, newest=newest)


def import_10000(settings: Settings) -> Result:
    """Import 10,000 exports into a workspace without resources."""
    return _measured("import", settings)


def imported(settings: Settings) -> Result:
    """Plan the files that import writes, and count the calls on the newest servers."""
    result = _measured("plan", settings, aim=2.3)
    with _service(_workload(settings, newest=True), *_NEWEST) as newest:
        newest.calls("import", settings)
        result.calls["plan, no organization list"] = newest.calls("plan", settings)
    return result


def _measured(word: str, settings: Settings, *, aim: float | None = None) -> Result:
    workload = _workload(settings)
    with _service(workload) as place:
        calls = {name: place.calls(name, settings) for name in dict.fromkeys(("import", word))}
        tasks = {word: place.task(word), **place.baselines()}
        usages = alternating(tasks, settings)
        tasks[word].before()
        spent = stages(tasks[word], [word, "-C", str(place.workspace)], place.folder, settings)
    memory = peak(usages[word])
    return Result(
        f"{word}: {workload.exports:,} imported exports in {workload.projects} projects",
        ratios={
            "CPU ÷ baseline": ratio_of(cpu(usages[word]), cpu(usages["baseline"]), aim=aim),
            "peak memory": Ratio(memory, memory, memory, unit="MB"),
        },
        calls={word: calls[word]},
        values={f"{name}, CPU s": min(cpu(rounds)) for name, rounds in usages.items()},
        stages=spent,
    )
