"""Measure the memory of a process."""

from __future__ import annotations

import re
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_megabytes() -> int:
    """Return the most memory that this process had, on Linux; 0 on other systems.

    `ru_maxrss` also counts what the parent had when it started the process.
    """
    status = STATUS.read_text() if STATUS.exists() else ""
    match = re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)
    return int(match[1]) // 1024 if match else 0
