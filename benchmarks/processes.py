"""Run a process to its end, and measure it with what it starts."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_RECONCILER = "from reconciler.commands import main; main()"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process used: wall time and CPU time in seconds, and its peak memory in MB.

    CPU time is user and system time, with that of processes it waited for, such as git.
    """

    wall: float
    cpu: float
    peak: float


def reconciler(*words: str) -> list[str]:
    """Return the command line of the program, as its console script starts it."""
    return [sys.executable, "-c", _RECONCILER, *words]


def run(
    command: Sequence[str],
    *,
    environ: Mapping[str, str],
    checkout: Path = ROOT,
    codes: Sequence[int] = (0,),
) -> Usage:
    """Run a command in a checkout. Raise RuntimeError with its messages for another exit code."""
    with tempfile.TemporaryFile() as output:
        begun = time.perf_counter()
        process = subprocess.Popen(
            command,
            env=environ,
            cwd=checkout,
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
        if process.returncode not in codes:
            output.seek(0)
            text = output.read().decode(errors="replace")
            raise RuntimeError(f"exit code {process.returncode}: {' '.join(command)}\n{text}")
    return Usage(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
