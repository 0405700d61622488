"""The command line as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_KEPT = ("PATH", "HOME", "LANG", "SYSTEMROOT", "COVERAGE_PROCESS_START")


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str


def reconciler(
    *arguments: str | Path, environ: Mapping[str, str] | None = None, stdin: str | None = None
) -> Ran:
    """Run a command with a clean environment; never shows a traceback."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    ended = subprocess.run(
        [sys.executable, "-m", "reconciler", *map(str, arguments)],
        env={**kept, **(environ or {})},
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    assert "this is a bug" not in ended.stderr, ended.stderr
    return Ran(ended.returncode, ended.stdout, ended.stderr)


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Files below a folder, by name."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
