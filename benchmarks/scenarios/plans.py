"""Plans of workspaces of all sizes, relative to the baseline of the same run."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
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
    plan_words,
    stages,
    wall,
)
from benchmarks.processes import Usage, run
from benchmarks.results import Ratio, Result, ratio_of
from benchmarks.service import Service, running
from benchmarks.workspaces import Place, Workload, git, write
from tests.support.inventories import write_inventory

COMMITS = (1, 10, 100)


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan to measure beside its baselines."""

    folder: Path
    place: Place
    service: Service
    words: list[str]
    tasks: dict[str, Task]
    calls: int

    def stages(self, settings: Settings) -> dict[str, float]:
        """Return the CPU seconds of its stages."""
        return stages(self.tasks["plan"], self.words, self.folder, settings)


@contextmanager
def prepared(workload: Workload, settings: Settings) -> Iterator[Plan]:
    """Yield a plan of a workload. The first run counts its calls."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = write(workload, folder)
        with running(place.seed) as service:
            words = plan_words(place, "--detailed-exitcode")
            task = connected(service, *words, codes=(2,) if workload.different else (0,))
            run(task.command, environ=task.environ, checkout=settings.checkout, codes=task.codes)
            pages = list_pages(service)
            calls = len(service.requests)
            beside = baselines(folder, place.files, service, pages)
            # One after the other, so that both have the same machine.
            tasks = {"plan": task, "baseline": beside.pop("baseline"), **beside}
            yield Plan(folder, place, service, words, tasks, calls)


def noop_1000(settings: Settings) -> Result:
    """Plan 1,000 exports that do not differ."""
    # Short processes need more rounds.
    rounds = settings.rounds if settings.quick else max(settings.rounds, 10)
    return _noop(Workload(1_000, 20), replace(settings, rounds=rounds), aim=1.6)


def noop_10000(settings: Settings) -> Result:
    """Plan 10,000 exports that do not differ."""
    return _noop(Workload(10_000, 200), settings, aim=1.8, most_memory=150)


def noop_50000(settings: Settings) -> Result:
    """Plan 50,000 exports that do not differ, and compare the cost of each with 10,000."""
    sizes = (1_000, 5_000) if settings.quick else (10_000, 50_000)
    result = Result(f"plan without changes: {sizes[1]:,} exports beside {sizes[0]:,}")
    with ExitStack() as stack:
        plans = [
            stack.enter_context(prepared(Workload(size, size // 50), settings)) for size in sizes
        ]
        tasks = {f"{len(plan.place.files)} files": plan.tasks["plan"] for plan in plans}
        usages = [*alternating(tasks, settings).values()]
    few, many = (
        [seconds / size * 1_000_000 for seconds in cpu(rounds)]
        for size, rounds in zip(sizes, usages, strict=True)
    )
    memory = peak(usages[1])
    result.ratios = {
        "cost of an export ÷ cost of fewer": ratio_of(many, few, aim=1.2),
        "peak memory": Ratio(memory, memory, memory, 400, unit="MB"),
    }
    for size, plan, costs in zip(sizes, plans, (few, many), strict=True):
        result.calls[f"{size:,} exports"] = plan.calls
        result.values[f"{size:,} exports, µs of CPU each"] = min(costs)
    return result


def _noop(
    workload: Workload, settings: Settings, *, aim: float, most_memory: float | None = None
) -> Result:
    with prepared(workload, settings) as plan:
        usages = alternating(plan.tasks, settings)
        spent = plan.stages(settings)
    planned, baseline = usages["plan"], usages["baseline"]
    memory = peak(planned)
    return Result(
        f"plan without changes: {workload.exports:,} exports in {workload.projects} projects",
        ratios={
            "CPU ÷ baseline": ratio_of(cpu(planned), cpu(baseline), aim=aim),
            "peak memory": Ratio(memory, memory, memory, most_memory, unit="MB"),
        },
        calls={"plan": plan.calls},
        values=_values(usages),
        stages=spent,
    )


def _values(usages: dict[str, list[Usage]]) -> dict[str, float]:
    values = {f"{name}, CPU s": min(cpu(rounds)) for name, rounds in usages.items()}
    return {
        **values,
        "plan, wall s": min(wall(usages["plan"])),
        "baseline, peak MB": peak(usages["baseline"]),
    }


def marginal(settings: Settings) -> Result:
    """Measure the CPU time of one more resource: the rise between workloads of rising size."""
    sizes = (1_000, 3_000, 5_000) if settings.quick else (1_000, 10_000, 20_000)
    result = Result("marginal cost of a resource in a plan without changes")
    with ExitStack() as stack:
        tasks = {}
        for size in sizes:
            plan = stack.enter_context(prepared(Workload(size, size // 50), settings))
            name = f"{size:,} exports"
            tasks[name] = plan.tasks["plan"]
            result.calls[name] = plan.calls
        usages = alternating(tasks, settings)
    times = [min(cpu(rounds)) for rounds in usages.values()]
    costs = []
    for (smaller, less), (larger, more) in pairwise(zip(sizes, times, strict=True)):
        costs.append((more - less) / (larger - smaller))
        result.values[f"{smaller:,} to {larger:,}, ms a resource"] = costs[-1] * 1000
    spread = max(costs) / min(costs)
    result.ratios["highest ÷ lowest cost"] = Ratio(spread, spread, spread, aim=1.1)
    for name, rounds in usages.items():
        result.values[f"{name}, CPU s"] = min(cpu(rounds))
        result.values[f"{name}, peak MB"] = peak(rounds)
    return result


def different(settings: Settings) -> Result:
    """Plan workloads of which a part differs, relative to the same without differences."""
    exports, projects = (100, 20) if settings.quick else (4_000, 2_000)
    result = Result(f"plan with changes: {exports:,} exports in {projects:,} projects")
    bases: list[Usage] = []
    for percent in (0, 5, 100):
        with prepared(Workload(exports, projects, percent), settings) as plan:
            tasks = {name: plan.tasks[name] for name in ("plan", "baseline")}
            usages = alternating(tasks, settings)
            result.calls[f"{percent} % different"] = plan.calls
        planned = usages["plan"]
        bases = bases or planned
        name = f"{percent} % different"
        result.ratios[f"{name}, CPU ÷ baseline"] = ratio_of(cpu(planned), cpu(usages["baseline"]))
        if percent:
            result.ratios[f"{name}, CPU ÷ no change"] = ratio_of(cpu(planned), cpu(bases))
        result.values[f"{name}, peak MB"] = peak(planned)
    return result


def reviewed(settings: Settings) -> Result:
    """Plan one edit of a large workspace, as a pull request has it, relative to a plan of none."""
    exports = 1_000 if settings.quick else 10_000
    result = Result(f"plan of a pull request: {exports:,} exports in {exports // 50} projects")
    with prepared(Workload(exports, exports // 50), settings) as plan:
        file = plan.place.workspace / "exports/web-0000.yaml"
        text = file.read_text(encoding="utf-8")
        first = text.removeprefix("batch_exports:\n").partition("\n\n")[0]
        texts = {
            "no change": text,
            "an edited export": text.replace("prefix: web/0/", "prefix: web/zero/", 1),
            "a new export": f"{text}\n{first.replace('00000', 'new').replace(' 0', ' new')}\n",
        }
        # The base is the last commit.
        tasks = {
            name: replace(
                plan.tasks["plan"],
                codes=(0,) if edited == text else (2,),
                before=partial(file.write_text, edited, encoding="utf-8"),
            )
            for name, edited in texts.items()
        }
        usages = alternating(tasks, settings)
    for name, rounds in usages.items():
        result.ratios[f"{name} ÷ no change, CPU"] = ratio_of(cpu(rounds), cpu(usages["no change"]))
        result.values[f"{name}, CPU s"] = min(cpu(rounds))
        result.values[f"{name}, peak MB"] = peak(rounds)
    del result.ratios["no change ÷ no change, CPU"]
    return result


def commits(settings: Settings) -> Result:
    """Plan no change of what 1, 10 and 100 commits applied, relative to one commit."""
    exports = 200 if settings.quick else 1_000
    result = Result(f"plan of {exports:,} exports that several commits applied")
    with prepared(Workload(exports, 20), settings) as plan:
        folder, (first, *_) = plan.place.workspace, sorted((plan.place.workspace).glob("exports/*"))
        text = first.read_text(encoding="utf-8")
        applied = []
        for number in range(COMMITS[-1]):
            first.write_text(f"{text}# {number}\n", encoding="utf-8")
            git(folder, "commit", "-q", "-a", "-m", "Change")
            applied.append(git(folder, "rev-parse", "HEAD"))
        words = ["apply", "--auto-approve", *plan.words[1:]]
        apply = connected(plan.service, *[word for word in words if word != "--detailed-exitcode"])
        run(apply.command, environ=apply.environ, checkout=settings.checkout)
        ref = git(folder, "for-each-ref", "--format=%(refname)", "refs/reconciler")
        lines = json.loads(git(folder, "show", f"{ref}:inventory.json"))
        tasks = {}
        for count in COMMITS:
            for number, line in enumerate(lines.values()):
                line["commit"] = applied[-1 - number % count]
            write_inventory(folder, ref, applied[-1], lines)
            point = partial(git, folder, "update-ref", ref, git(folder, "rev-parse", ref))
            tasks[f"{count} commits"] = replace(plan.tasks["plan"], before=point)
        usages = alternating(tasks, settings)
    one = usages.pop("1 commits")
    result.values["1 commit, wall s"] = min(wall(one))
    for name, rounds in usages.items():
        result.ratios[f"{name} ÷ 1 commit, wall"] = ratio_of(wall(rounds), wall(one))
        result.values[f"{name}, wall s"] = min(wall(rounds))
        result.values[f"{name}, peak MB"] = peak(rounds)
    return result
