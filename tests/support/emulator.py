"""Run the embedded service as a process, for tests over real HTTP.

It is forked from a process that has imported it, where the system can do that: imports take most
of the time in which a service starts.
"""

from __future__ import annotations

import json
import multiprocessing
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from tests.support import served
from tests.support.limits import TIMEOUT

DIALECTS = ("interface", "2025", "2026")
_FORKING = "forkserver" in multiprocessing.get_all_start_methods()
PROCESSES = multiprocessing.get_context("forkserver" if _FORKING else "spawn")
PROCESSES.set_forkserver_preload([served.__name__])


class Service:
    """A process that serves. Its methods are those of `subprocess.Popen`."""

    def __init__(self, options: list[str]) -> None:
        self._lines, lines = PROCESSES.Pipe(duplex=False)
        self._process = PROCESSES.Process(target=served.serve, args=(options, lines), daemon=True)
        self._process.start()
        lines.close()
        self.kill, self.terminate = self._process.kill, self._process.terminate

    def line(self) -> str:
        """Return what it prints when it is ready."""
        assert self._lines.poll(TIMEOUT)
        return self._lines.recv()

    def wait(self, timeout: float) -> int:
        """Return the exit code, or raise subprocess.TimeoutExpired."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("emulator", timeout)
        return self._process.exitcode

    def close(self) -> None:
        """End it."""
        self._lines.close()
        self.terminate()
        self.wait(TIMEOUT)
        self._process.close()


@dataclass
class RunningEmulator:
    """A running service."""

    base_url: str
    organization: str
    project_id: int
    api_key: str
    process: Service
    http: httpx.Client = field(repr=False)

    def call(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> Any:
        """Send a request of the interface and return the response."""
        headers = {"Authorization": f"Bearer {self.api_key if key is None else key}"}
        return self.http.request(method, path, json=body, headers=headers)

    def requests(self) -> list[dict[str, Any]]:
        """Return every request so far."""
        return self.http.get("/_emulator/requests").json()["requests"]

    def clear_requests(self) -> None:
        self.http.delete("/_emulator/requests").raise_for_status()

    def writes(self) -> list[tuple[str, str]]:
        """Return the method and the last part of the path of every request but GETs."""
        return [
            (request["method"], request["path"].rstrip("/").rpartition("/")[2])
            for request in self.requests()
            if request["method"] != "GET"
        ]

    def state(self) -> dict[str, Any]:
        """Return all stored objects, with fingerprints of secrets."""
        return self.http.get("/_emulator/state").json()

    def exports(self) -> dict[str, dict[str, Any]]:
        """Return all exports by name."""
        return {
            export["name"]: export
            for project in self.state()["projects"]
            for export in project["batch_exports"]
        }

    def path_of(self, name: str) -> str:
        """Return the path of an export."""
        export = self.exports()[name]
        return f"/api/projects/{export['team_id']}/batch_exports/{export['id']}/"

    def reset(self) -> None:
        self.http.post("/_emulator/reset").raise_for_status()

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the switchboard."""
        answer = self.http.request(method, f"/_emulator/{path}", json=body)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def fail(self, status: int = 400, **match: Any) -> None:
        """Let the requests that match fail, and no others."""
        self.admin("PUT", "faults", [{"match": match, "fault": "error", "status": status}])

    def advance(self, **duration: float) -> None:
        """Move the clock: hours=3, days=1."""
        seconds = timedelta(**duration).total_seconds()
        self.admin("POST", "clock", {"advance_seconds": seconds})

    def environ(self) -> dict[str, str]:
        """Return the variables with which the command line connects to the service."""
        return {
            "RECONCILER_BASE_URL": self.base_url,
            "RECONCILER_ORGANIZATION": self.organization,
            "RECONCILER_API_KEY": self.api_key,
        }


@contextmanager
def start_emulator(
    *, seed: Path | None = None, db: Path | None = None, extra: tuple[str, ...] = ()
) -> Iterator[RunningEmulator]:
    """Run the service on a free port."""
    options = ["--port", "0", *extra]
    options += ["--seed", str(seed)] if seed is not None else []
    options += ["--db", str(db)] if db is not None else []
    with closing(Service(options)) as process:
        where = json.loads(process.line())
        # The address is plain HTTP; an empty context avoids loading the list of authorities.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        with httpx.Client(base_url=where["base_url"], timeout=TIMEOUT, verify=context) as http:
            yield RunningEmulator(**where, process=process, http=http)
