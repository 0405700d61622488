"""The start of the program: time over a bare interpreter, and the modules of commands."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.measuring import BARE, CHILDREN, Settings, Task, alternating, connected, cpu, peak
from benchmarks.processes import ROOT, reconciler
from benchmarks.results import Result, milliseconds_over, ratio_of
from benchmarks.scenarios.plans import prepared
from benchmarks.service import running
from benchmarks.workspaces import ENVIRONMENT, Workload, environ, write

ACME = ROOT / "examples" / "acme"
_ROUNDS = 20
"""Processes this short need more rounds."""


def start_up(settings: Settings) -> Result:
    """Measure --version, the help of a command, and validate of the example."""
    words = {
        "--version": (["--version"], 35),
        "plan --help": (["plan", "--help"], None),
        "validate examples/acme": (["validate", "-C", str(ACME)], 130),
    }
    tasks = {"bare": Task(BARE)}
    tasks |= {name: Task(reconciler(*line)) for name, (line, _) in words.items()}
    rounds = max(settings.rounds, _ROUNDS // (2 if settings.quick else 1))
    usages = alternating(tasks, replace(settings, rounds=rounds))
    bare = cpu(usages["bare"])
    ratios = {}
    for name, (_, aim) in words.items():
        ratios[name] = milliseconds_over(cpu(usages[name]), bare, aim=aim)
        ratios[f"{name} ÷ bare"] = ratio_of(cpu(usages[name]), bare)
    return Result(
        "start-up: CPU over a bare interpreter",
        ratios=ratios,
        values={
            "bare, CPU ms": min(bare) * 1000,
            "validate, peak MB": peak(usages["validate examples/acme"]),
        },
    )


def small(settings: Settings) -> Result:
    """Plan one project and three exports, beside a bare script with the same calls and files."""
    settings = replace(settings, rounds=max(settings.rounds, _ROUNDS))
    with prepared(Workload(3, 1), settings) as plan:
        job = plan.tasks["baseline"].command[-1]
        script = Task((sys.executable, str(CHILDREN / "script.py"), job))
        without = ["plan", "-C", str(plan.place.workspace), "-e", ENVIRONMENT, "--no-inventory"]
        tasks = {
            "plan": plan.tasks["plan"],
            "script": script,
            "baseline": plan.tasks["baseline"],
            "plan without git": connected(plan.service, *without, "--trust-workspace"),
        }
        usages = {name: cpu(rounds) for name, rounds in alternating(tasks, settings).items()}
        calls = plan.calls
    return Result(
        "plan of one project and three exports",
        ratios={
            "CPU ÷ script": ratio_of(usages["plan"], usages["script"], aim=1.05),
            "without git, CPU ÷ script": ratio_of(usages["plan without git"], usages["script"]),
        },
        calls={"plan": calls},
        values={f"{name}, CPU ms": min(rounds) * 1000 for name, rounds in usages.items()},
    )


def modules(settings: Settings) -> Result:
    """Return the modules that commands import."""
    with tempfile.TemporaryDirectory() as name:
        place = write(Workload(4, 2), Path(name))
        with running(place.seed) as service:
            at = ["-C", str(place.workspace)]
            chosen = [*at, "-e", ENVIRONMENT]
            commands = {
                "--version": ["--version"],
                "--help": ["--help"],
                "plan --help": ["plan", "--help"],
                "validate": ["validate", *at],
                "plan": ["plan", *chosen],
                "apply": ["apply", *chosen, "--auto-approve"],
            }
            variables = environ(**service.environ)
            imported = {
                command: modules_of(words, variables, settings.checkout)
                for command, words in commands.items()
            }
    return Result("imported modules", modules=imported)


def modules_of(words: Sequence[str], variables: Mapping[str, str], checkout: Path) -> list[str]:
    """Return the modules that a command imports, and the packages of others."""
    ran = subprocess.run(
        [sys.executable, str(CHILDREN / "modules.py"), *words],
        env=variables,
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(f"exit code {ran.returncode}: {' '.join(words)}\n{ran.stderr}")
    names: list[str] = json.loads(ran.stderr.splitlines()[-1])
    return names
