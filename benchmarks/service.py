"""The embedded service as a process, and its switchboard."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.processes import ROOT


@dataclass(frozen=True, slots=True)
class Service:
    """A running service: its process, the line that it printed, the seconds that its start took."""

    process: subprocess.Popen[bytes]
    where: dict[str, Any]
    start: float

    @property
    def base_url(self) -> str:
        """Return the address of the service."""
        return str(self.where["base_url"])

    @property
    def environ(self) -> dict[str, str]:
        """Return the variables that connect the program with the service."""
        return {
            "RECONCILER_BASE_URL": self.base_url,
            "RECONCILER_ORGANIZATION": str(self.where["organization"]),
            "RECONCILER_API_KEY": str(self.where["api_key"]),
            # As in a CI job: the settings of a trusted branch count.
            "RECONCILER_TRUST_REF": "refs/heads/main",
        }

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Return the requests since the last reset, oldest first."""
        requests: list[dict[str, Any]] = json.loads(self._send("GET", "requests"))["requests"]
        return requests

    def clear_requests(self) -> None:
        """Clear the list of requests."""
        self._send("DELETE", "requests")

    def reset(self, *, latency: float = 0) -> None:
        """Restore the seed, and delay each response by so many seconds."""
        self._send("POST", "reset")
        self.delay(latency)

    def delay(self, seconds: float) -> None:
        """Delay each response by so many seconds."""
        self._send("PUT", "faults", [{"fault": "latency", "seconds": seconds}] if seconds else [])

    def _send(self, method: str, path: str, body: object = None) -> bytes:
        connection = http.client.HTTPConnection(urlsplit(self.base_url).netloc, timeout=60)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, f"/_emulator/{path}", content)
            answer = connection.getresponse()
            received = answer.read()
            assert answer.status in (200, 204), received
            return received
        finally:
            connection.close()


@contextmanager
def running(seed: Path | None, *options: str) -> Iterator[Service]:
    """Yield a running service. It ends with the block."""
    command = [sys.executable, "-m", "reconciler", "emulator", *options]
    if seed is not None:
        command += ["--seed", str(seed)]
    begun = time.perf_counter()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            where = json.loads(process.stdout.readline())
            yield Service(process, where, time.perf_counter() - begun)
        finally:
            process.terminate()


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """Return the user and system time of a running process."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_megabytes(process: subprocess.Popen[bytes]) -> float:
    """Return the largest resident set of a running process."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0
