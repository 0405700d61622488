"""Loading alone, without start-up: relative to composing the same texts in the same process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import CHILDREN, Settings
from benchmarks.results import Result, ratio_of
from benchmarks.workspaces import ENVIRONMENT, Workload, environ, write


def loading(settings: Settings) -> Result:
    """Load and check a workspace for one environment. The scenario validate has the stages."""
    workload = Workload(1_000, 20) if settings.quick else Workload(10_000, 200)
    with tempfile.TemporaryDirectory() as name:
        place = write(workload, Path(name), in_git=False)
        words = [str(place.workspace), ENVIRONMENT, str(settings.rounds)]
        ran = subprocess.run(
            [sys.executable, str(CHILDREN / "loading.py"), *words],
            env=environ(),
            cwd=settings.checkout,
            capture_output=True,
            text=True,
            check=True,
        )
    composed, loaded = zip(*json.loads(ran.stdout), strict=True)
    return Result(
        f"loading alone: {workload.exports:,} exports in {workload.projects} files",
        ratios={"CPU ÷ compose": ratio_of(loaded, composed, aim=3)},
        values={"load and check, CPU s": min(loaded), "compose, CPU s": min(composed)},
    )
