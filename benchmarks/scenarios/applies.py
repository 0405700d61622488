"""Applies with latency, relative to the shortest possible time."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import CHILDREN, Settings, connected, cpu, peak, stages, wall
from benchmarks.processes import Usage, run
from benchmarks.results import Ratio, Result
from benchmarks.service import Service, running
from benchmarks.workspaces import API_KEY, ENVIRONMENT, Workload, environ, write

LATENCY = 0.05
PARALLELISM = 8
"""The default of `client.parallelism`."""


def creates(settings: Settings) -> Result:
    """Create exports in projects that exist, and the same with the projects."""
    count = 100 if settings.quick else 1_000
    result = Result(
        f"apply of {count:,} creates: {LATENCY * 1000:.0f} ms a call, parallelism {PARALLELISM}"
    )
    _measure(result, "exports", Workload(count, 20, exports_live=False), settings)
    share = Workload(count - 20, 20, projects_live=False)
    _measure(result, "projects and exports", share, settings)
    return result


def creates_cpu(settings: Settings) -> Result:
    """Measure the CPU time of creates without latency, and the stages of the larger apply."""
    result = Result("CPU of applies of creates without latency")
    for count in (100,) if settings.quick else (300, 2_000):
        with tempfile.TemporaryDirectory() as name:
            place = write(Workload(count, 20, exports_live=False), Path(name))
            with running(place.seed) as service:
                at = ["-C", str(place.workspace), "-e", ENVIRONMENT]
                words = ["apply", *at, "--auto-approve", "--rate", "off"]
                task = connected(service, *words)
                usages = []
                for _ in range(settings.rounds):
                    service.reset()
                    usages.append(
                        run(task.command, environ=task.environ, checkout=settings.checkout)
                    )
                result.calls[f"{count:,} creates"] = len(service.requests)
                service.reset()
                result.stages = stages(task, words, Path(name), settings)
        result.values[f"{count:,} creates, CPU s"] = min(cpu(usages))
    return result


def _measure(result: Result, name: str, workload: Workload, settings: Settings) -> None:
    usages: list[Usage] = []
    bare: list[Usage] = []
    calls = 0
    with tempfile.TemporaryDirectory() as folder:
        place = write(workload, Path(folder))
        with running(place.seed) as service:
            words = ["apply", "-C", str(place.workspace), "-e", ENVIRONMENT]
            task = connected(service, *words, "--auto-approve", "--rate", "off")
            for _ in range(settings.rounds):
                service.reset(latency=LATENCY)
                usages.append(run(task.command, environ=task.environ, checkout=settings.checkout))
                calls = len(service.requests)
                if workload.projects_live:
                    service.reset(latency=LATENCY)
                    bare.append(run(_bare_client(service, calls), environ=environ()))
    shortest = calls * LATENCY / PARALLELISM
    rounds = [seconds / shortest for seconds in wall(usages)]
    result.ratios[f"{name}, wall ÷ shortest"] = Ratio(min(rounds), min(rounds), max(rounds), 1.2)
    if bare:
        rounds = [seconds / shortest for seconds in wall(bare)]
        spread = Ratio(min(rounds), min(rounds), max(rounds))
        result.ratios["the same calls of a bare client, wall ÷ shortest"] = spread
    result.calls[name] = calls
    result.values[f"{name}, wall s"] = min(wall(usages))
    result.values[f"{name}, CPU s"] = min(cpu(usages))
    result.values[f"{name}, peak MB"] = peak(usages)


def _bare_client(service: Service, calls: int) -> list[str]:
    """Return a script that sends as many creates, with httpx and nothing else."""
    words = [service.base_url, API_KEY, str(calls), str(PARALLELISM)]
    return [sys.executable, str(CHILDREN / "creates.py"), *words]
