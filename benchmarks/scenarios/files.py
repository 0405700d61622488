"""`validate`, relative to composing the same files."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import Settings, Task, alternating, baselines, cpu, peak, stages, wall
from benchmarks.processes import reconciler
from benchmarks.results import Ratio, Result, ratio_of
from benchmarks.workspaces import ENVIRONMENT, Workload, write


def validate_10000(settings: Settings) -> Result:
    """Check 10,000 exports for one environment."""
    return _measured(["validate", "-e", ENVIRONMENT], settings, aim=3)


def _measured(words: Sequence[str], settings: Settings, *, aim: float) -> Result:
    workload = Workload(1_000, 20) if settings.quick else Workload(10_000, 200)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = write(workload, folder, in_git=False)
        line = [*words, "-C", str(place.workspace)]
        tasks = {"command": Task(reconciler(*line)), **baselines(folder, place.files)}
        usages = alternating(tasks, settings)
        spent = stages(tasks["command"], line, folder, settings)
    command, compose = usages["command"], usages["compose"]
    memory = peak(command)
    return Result(
        f"{' '.join(words)}: {workload.exports:,} exports in {workload.projects} files",
        ratios={
            "CPU ÷ compose": ratio_of(cpu(command), cpu(compose), aim=aim),
            "peak memory": Ratio(memory, memory, memory, unit="MB"),
        },
        values={
            "command, CPU s": min(cpu(command)),
            "command, wall s": min(wall(command)),
            "compose, CPU s": min(cpu(compose)),
            "bare, CPU s": min(cpu(usages["bare"])),
        },
        stages=spent,
    )
