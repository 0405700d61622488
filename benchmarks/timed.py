"""The time and the memory of commands, beside a baseline of the same run."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.counted import IMPORTING
from benchmarks.measuring import (
    BARE,
    Settings,
    Task,
    Usage,
    alternating,
    at,
    baseline,
    compared,
    connected,
    cpu,
    peak,
    program,
    wall,
)
from benchmarks.results import Ratio, Result, milliseconds_over, ratio_of
from benchmarks.service import ROOT, Service, running
from benchmarks.workspaces import Place, Workload, git, write
from tests.support.inventories import write_inventory

_ACME = ROOT / "examples" / "acme"
_COMMITS = (1, 10, 100)
_ROUNDS = 20
"""Processes this short need more rounds."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan to measure, the words of its command, and the baseline beside it."""

    place: Place
    service: Service
    words: list[str]
    tasks: dict[str, Task]
    calls: int


@contextmanager
def _prepared(workload: Workload) -> Iterator[Plan]:
    """Yield a plan of a workload. The first run counts its calls."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = write(workload, folder)
        with running(place.seed) as service:
            words = [*at(place), "--detailed-exitcode"]
            task = connected(service, "plan", *words)
            task.run()
            calls = len(service.requests)
            # One after the other, so that both have the same machine.
            tasks = {"plan": task, "baseline": baseline(folder, service, place.files)}
            yield Plan(place, service, words, tasks, calls)


def start_up(settings: Settings) -> Result:
    """Measure --version, the help of a command, and validate of the example."""
    tasks = {
        "bare": Task(BARE),
        "--version": program("--version"),
        "plan --help": program("plan", "--help"),
        "validate examples/acme": program("validate", "-C", str(_ACME)),
    }
    rounds = max(settings.rounds, _ROUNDS // (2 if settings.quick else 1))
    usages = alternating(tasks, replace(settings, rounds=rounds))
    bare = cpu(usages["bare"])
    ratios = {
        f"{name}, CPU over bare": milliseconds_over(cpu(rounds), bare)
        for name, rounds in usages.items()
        if name != "bare"
    }
    values = {
        "bare, CPU ms": min(bare) * 1000,
        "validate, peak MB": peak(usages["validate examples/acme"]),
    }
    return Result("start-up", {**ratios, **_to_checkout(usages)}, values=values)


def _noop(exports: int, settings: Settings) -> Result:
    """Plan exports that do not differ."""
    exports = exports // 10 if settings.quick else exports
    with _prepared(Workload(exports, exports // 50)) as plan:
        usages = alternating(plan.tasks, settings)
        calls = {"plan": plan.calls}
    title = f"plan without changes: {exports:,} exports in {exports // 50} projects"
    return Result(title, _ratios("plan", usages), calls, values=_values("plan", usages))


def imported(settings: Settings) -> Result:
    """Import 10,000 exports into a workspace without resources."""
    exports = 1_000 if settings.quick else 10_000
    with tempfile.TemporaryDirectory() as name:
        place = write(Workload(exports, exports // 50), Path(name), in_git=False)
        workspace = Path(name) / "imported"

        def emptied() -> None:
            shutil.rmtree(workspace, ignore_errors=True)
            workspace.mkdir()
            (workspace / "reconciler.yaml").write_text(IMPORTING, encoding="utf-8")

        with running(place.seed) as service:
            task = replace(connected(service, "import", "-C", str(workspace)), before=emptied)
            emptied()
            task.run()
            calls = {"import": len(service.requests)}
            files = sorted(map(str, workspace.rglob("*.yaml")))
            tasks = {"import": task, "baseline": baseline(Path(name), service, files)}
            usages = alternating(tasks, settings)
    title = f"import of {exports:,} exports in {exports // 50} projects"
    return Result(title, _ratios("import", usages), calls, values=_values("import", usages))


def commits(settings: Settings) -> Result:
    """Plan no change of what 1, 10 and 100 commits applied, relative to one commit."""
    exports = 200 if settings.quick else 1_000
    with _prepared(Workload(exports, 20)) as plan:
        folder = plan.place.workspace
        applied = _applied(plan, folder)
        ref = git(folder, "for-each-ref", "--format=%(refname)", "refs/reconciler")
        lines = json.loads(git(folder, "show", f"{ref}:inventory.json"))
        tasks = {}
        for count in _COMMITS:
            for number, line in enumerate(lines.values()):
                line["commit"] = applied[-1 - number % count]
            write_inventory(folder, ref, applied[-1], lines)
            point = partial(git, folder, "update-ref", ref, git(folder, "rev-parse", ref))
            tasks[f"{count} commits"] = replace(plan.tasks["plan"], before=point)
        usages = alternating(tasks, settings)
    result = Result(f"plan of {exports:,} exports that several commits applied")
    one = usages["1 commits"]
    result.ratios = _to_checkout(usages)
    for name in list(tasks)[1:]:
        result.ratios[f"{name} ÷ 1 commit, wall"] = ratio_of(wall(usages[name]), wall(one))
    for name, rounds in usages.items():
        result.values[f"{name}, wall s"] = min(wall(rounds))
        result.values[f"{name}, peak MB"] = peak(rounds)
    return result


def _applied(plan: Plan, folder: Path) -> Sequence[str]:
    """Make a hundred commits that change every file, and apply the last. Return them by age."""
    texts = {file: file.read_text(encoding="utf-8") for file in folder.glob("exports/*")}
    made = []
    for number in range(_COMMITS[-1]):
        for file, text in texts.items():
            file.write_text(f"{text}# {number}\n", encoding="utf-8")
        git(folder, "commit", "-q", "-a", "-m", "Change")
        made.append(git(folder, "rev-parse", "HEAD"))
    connected(plan.service, "apply", "--auto-approve", *at(plan.place)).run()
    return made


def _ratios(name: str, usages: Mapping[str, Sequence[Usage]]) -> dict[str, Ratio]:
    beside = ratio_of(cpu(usages[name]), cpu(usages["baseline"]))
    return {f"{name}, CPU ÷ baseline": beside, **_to_checkout(usages)}


def _to_checkout(usages: Mapping[str, Sequence[Usage]]) -> dict[str, Ratio]:
    return {name: ratio_of(*sides) for name, sides in compared(usages).items()}


def _values(name: str, usages: Mapping[str, Sequence[Usage]]) -> dict[str, float]:
    values = {f"{task}, CPU s": min(cpu(rounds)) for task, rounds in usages.items()}
    peaks = {f"{task}, peak MB": peak(rounds) for task, rounds in usages.items()}
    return {**values, f"{name}, wall s": min(wall(usages[name])), **peaks}


SCENARIOS = {
    "start-up": start_up,
    "noop-1000": partial(_noop, 1_000),
    "commits": commits,
    "import-10000": imported,
    "noop-10000": partial(_noop, 10_000),
    "noop-50000": partial(_noop, 50_000),
}
