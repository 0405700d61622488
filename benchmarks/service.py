"""The embedded service as a process, and its switchboard."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Service:
    """A running service: the line that it printed."""

    where: dict[str, Any]

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
        """Return the requests since they were cleared, oldest first."""
        requests: list[dict[str, Any]] = json.loads(self._send("GET"))["requests"]
        return requests

    def clear_requests(self) -> None:
        """Clear the list of requests."""
        self._send("DELETE")

    def _send(self, method: str) -> bytes:
        connection = http.client.HTTPConnection(urlsplit(self.base_url).netloc, timeout=60)
        try:
            connection.request(method, "/_emulator/requests")
            answer = connection.getresponse()
            received = answer.read()
            assert answer.status in (200, 204), received
            return received
        finally:
            connection.close()


@contextmanager
def running(seed: Path, *options: str) -> Iterator[Service]:
    """Yield a running service. It ends with the block."""
    command = [sys.executable, "-m", "reconciler", "emulator", *options, "--seed", str(seed)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield Service(json.loads(process.stdout.readline()))
        finally:
            process.terminate()
