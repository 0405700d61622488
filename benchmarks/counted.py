"""What is the same in every run: the calls of commands, and the modules that they import."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import CHILDREN, Settings, at, connected
from benchmarks.results import Result
from benchmarks.service import ROOT, Service, running
from benchmarks.workspaces import Workload, environ, write

IMPORTING = "version: 1\nresources: [projects/*.yaml]\nenvironments: {production: {}}\n"
"""A workspace without resources, for an import."""
_NEWEST = ("--dialect", "2026")
_WITHOUT_LIST = (*_NEWEST, "--no-organization-list")
_APPLY = ["apply", "--auto-approve"]


def calls(_: Settings) -> Result:
    """Count the calls of commands on small workspaces."""
    few = Workload(40, 200, projects_with_exports=10, newest=True)
    table = {
        "plan, 200 projects, 10 with exports": (few, ["plan"], _NEWEST),
        "plan, 200 projects, 10 with exports, no organization list": (
            *(few, ["plan"], _WITHOUT_LIST),
        ),
        "plan, no change": (Workload(600, 30), ["plan"], ()),
        "plan, 5 % different": (Workload(600, 30, different=5), ["plan"], ()),
        "plan, 150 projects": (Workload(0, 150), ["plan"], ()),
        "apply, 5 % different": (Workload(200, 10, different=5), _APPLY, ()),
        "apply, 30 creates": (Workload(24, 6, projects_live=False), _APPLY, ()),
        "status": (Workload(100, 5), ["status"], ()),
    }
    counted = {}
    for name, (workload, words, options) in table.items():
        with tempfile.TemporaryDirectory() as folder:
            place = write(workload, Path(folder))
            with running(place.seed, *options) as service:
                counted[name] = calls_of(service, [*words, *at(place)])
    with tempfile.TemporaryDirectory() as folder:
        place = write(Workload(200, 10, different=5), Path(folder))
        file = str(Path(folder) / "saved.json")
        with running(place.seed) as service:
            calls_of(service, ["plan", "--out", file, *at(place)])
            saved = calls_of(service, ["apply", file, *at(place)])
            counted["apply of a saved plan, 5 % different"] = saved
    for name, options, newest in (("", (), False), (", no organization list", _WITHOUT_LIST, True)):
        with tempfile.TemporaryDirectory() as folder:
            place = write(Workload(1_000, 20, newest=newest), Path(folder), in_git=False)
            (Path(folder) / "reconciler.yaml").write_text(IMPORTING, encoding="utf-8")
            with running(place.seed, *options) as service:
                counted[f"import{name}"] = calls_of(service, ["import", "-C", folder])
                counted[f"plan of imported files{name}"] = calls_of(service, ["plan", "-C", folder])
    return Result("calls of fixed commands", calls=counted)


def calls_of(service: Service, words: Sequence[str]) -> int:
    """Run a command. Return the number of its calls."""
    service.clear_requests()
    connected(service, *words, codes=(0, 2, 5)).run()
    return len(service.requests)


_HELPED = ("apply", "status", "runs", "logs", "gaps", "pause", "unpause", "projects")


def modules(_: Settings) -> Result:
    """Return the modules that commands import."""
    with tempfile.TemporaryDirectory() as name:
        place = write(Workload(4, 2), Path(name))
        with running(place.seed) as service:
            commands = {
                "--version": ["--version"],
                "--help": ["--help"],
                "plan --help": ["plan", "--help"],
                "validate": ["validate", "-C", str(place.workspace)],
                "plan": ["plan", *at(place)],
                "apply": [*_APPLY, *at(place)],
            }
            imported = {command: _modules_of(service, words) for command, words in commands.items()}
            helped = (_modules_of(service, [command, "--help"]) for command in _HELPED)
            imported["--help of operations"] = sorted(set().union(*helped))
    return Result("imported modules", modules=imported)


def _modules_of(service: Service, words: Sequence[str]) -> list[str]:
    """Return the modules that a command imports, and the packages of others."""
    ran = subprocess.run(
        [sys.executable, str(CHILDREN / "modules.py"), *words],
        env=environ(**service.environ),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(f"exit code {ran.returncode}: {' '.join(words)}\n{ran.stderr}")
    names: list[str] = json.loads(ran.stderr.splitlines()[-1])
    return names


SCENARIOS = {"calls": calls, "modules": modules}
