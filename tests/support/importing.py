"""Helpers for tests of `import`: an export, a workspace and commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator

SECRET = "pa55word-never-to-be-seen"


def an_export(name: str, **fields: Any) -> dict[str, Any]:
    """Return the body of an export whose destination holds a secret."""
    config = {"host": "h.example.com", "database": "d", "user": "u", "password": SECRET}
    destination = {"type": "Postgres", "config": config}
    return {"name": name, "interval": "hour", "destination": destination, **fields}


def new_workspace(folder: Path, text: str = "version: 1\n", **files: str) -> Path:
    return write(folder, {"reconciler.yaml": text, **files})


def run_import(folder: Path, running: RunningEmulator, *arguments: str, **environ: str) -> Ran:
    return reconciler("import", "-C", folder, *arguments, environ={**running.environ(), **environ})


def run_plan(folder: Path, running: RunningEmulator, *arguments: str, **environ: str) -> Ran:
    """Run a plan that exits with 2 if it is not empty."""
    given = {**running.environ(), **environ}
    return reconciler("plan", "-C", folder, "--detailed-exitcode", *arguments, environ=given)


def resources(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the resources of all files, by collection and key."""
    declared: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.rglob("*.yaml")):
        for collection, members in yaml.safe_load(path.read_text()).items():
            if isinstance(members, dict):
                declared.setdefault(collection, {}).update(members)
    return declared
