"""What the embedded service costs with 10,000 exports: start, CPU of a page, memory.

Run: python benchmarks/emulator.py. The start is also told as a ratio to that of an empty service in
the same run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

EXPORTS = 10_000
PAGES = 40


def seed_of(count: int) -> dict[str, Any]:
    """Exports in twenty projects, with secrets."""
    config = {
        "bucket_name": "acme",
        "region": "eu-central-1",
        "aws_access_key_id": "AKIA",
        "aws_secret_access_key": "secret",
        "exclude_events": ["$pageleave"],
    }
    share = max(1, count // 20)
    projects = [
        {
            "name": f"Project {project}",
            "batch_exports": [
                {
                    "name": f"Export {project}-{number}",
                    "interval": "hour",
                    "destination": {"type": "S3", "config": {**config, "prefix": f"{number}/"}},
                }
                for number in range(share)
            ],
        }
        for project in range(20)
    ]
    return {
        "organizations": [{"id": "org", "name": "Large", "projects": projects}],
        "keys": [{"value": "phx_benchmark"}],
    }


@contextmanager
def service(seed: Path | None) -> Iterator[tuple[subprocess.Popen[bytes], str, float]]:
    """A running service, its address, and how many seconds its start took."""
    command = [sys.executable, "-m", "reconciler", "emulator"]
    begun = time.perf_counter()
    with subprocess.Popen(
        command + (["--seed", str(seed)] if seed else []), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        where = json.loads(process.stdout.readline())
        try:
            yield process, where["base_url"], time.perf_counter() - begun
        finally:
            process.terminate()


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """User and system time so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_megabytes(process: subprocess.Popen[bytes]) -> float:
    """Largest resident set so far."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def page_cost(process: subprocess.Popen[bytes], base_url: str) -> float:
    """CPU milliseconds of the service for a page of a hundred."""
    headers = {"Authorization": "Bearer phx_benchmark"}
    path = "/api/organizations/org/batch_exports/"
    with httpx.Client(base_url=base_url, headers=headers, timeout=60) as http:
        before = cpu_seconds(process)
        for page in range(PAGES):
            query = {"limit": 100, "offset": page * 100}
            found = http.get(path, params=query).raise_for_status()
            assert found.json()["count"] > 0
        return (cpu_seconds(process) - before) / PAGES * 1000


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder, "large.json")
        large.write_text(json.dumps(seed_of(EXPORTS)))
        with service(None) as (_, _, empty_start):
            pass
        with service(large) as (process, base_url, start):
            cost = page_cost(process, base_url)
            memory = memory_megabytes(process)
    print(f"exports                     {EXPORTS:,}")
    print(f"start, empty                {empty_start:.2f} s")
    print(f"start, seeded               {start:.2f} s   ({start / empty_start:.1f} x empty)")
    print(f"CPU of a page of 100        {cost:.1f} ms")
    print(f"largest memory              {memory:.0f} MB")


if __name__ == "__main__":
    main()
