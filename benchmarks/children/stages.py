"""Write the CPU seconds that the stages of a command take, as a JSON file.

Run: python stages.py FILE WORD…, with the words of the command. A timer of CPU time interrupts the
command, and the time since the last interruption counts for the stage that the stack shows. A call
of a C function is interrupted when it returns, so its whole time counts for its caller.
"""

import importlib
import json
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType

INTERVAL = 0.002
STAGES = {
    "importlib._bootstrap": "imports",
    "yaml": "compose YAML",
    "reconciler.files.yaml": "values and positions",
    "reconciler.git": "read git",
    "reconciler.files": "resolve and check",
    "reconciler.service.live": "read live state",
    "reconciler.service": "HTTP",
    "httpx": "HTTP",
    "httpcore": "HTTP",
    "asyncio": "HTTP",
    "reconciler.planning": "compare and plan",
    "reconciler.applying": "apply",
    "reconciler.editing": "format",
    "reconciler.render": "render",
}
"""Stages by package. The innermost frame of such a package counts."""

spent: Counter[str] = Counter()
_last = time.process_time()


def _stage(frame: FrameType | None) -> str:
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        while name:
            if name in STAGES:
                return STAGES[name]
            name = name.rpartition(".")[0]
        frame = frame.f_back
    return "other"


def _interrupted(number: int, frame: FrameType | None) -> None:
    global _last  # noqa: PLW0603 - a handler of a signal has no other place
    del number
    now = time.process_time()
    spent[_stage(frame)] += now - _last
    _last = now


def main() -> None:
    """Run the command and write the file."""
    file = Path(sys.argv[1])
    sys.argv = ["reconciler", *sys.argv[2:]]
    sys.path.insert(0, "")
    signal.signal(signal.SIGPROF, _interrupted)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
    try:
        importlib.import_module("reconciler.commands").main()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        file.write_text(json.dumps(spent), encoding="utf-8")


main()
