"""Measure the embedded service: a response, and 10,000 exports (start, CPU of a page, memory).

Run: python benchmarks/emulator.py. Ratios are within one run: a response relative to the same body
from a bare Starlette application, the start relative to that of an empty service.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
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
GETS = 1_000
ROUNDS = 5

BARE = """
import sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from reconciler.emulator.server import listening_socket

body = sys.argv[1].encode()

async def export(request):
    return Response(body, media_type="application/json")

app = Starlette(routes=[Route("/api/projects/{project}/batch_exports/{id}/", export)])
config = uvicorn.Config(app, http="h11", log_level="critical", access_log=False, lifespan="off")
listening = listening_socket("127.0.0.1", 0)
listening.listen(16)
print(listening.getsockname()[1], flush=True)
uvicorn.Server(config).run(sockets=[listening])
"""


def seed_of(count: int) -> dict[str, Any]:
    """Return a seed with exports in twenty projects, with secrets."""
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
def service(seed: Path | None) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any], float]]:
    """Yield a running service, the line that it printed, and the seconds that its start took."""
    command = [sys.executable, "-m", "reconciler", "emulator"]
    begun = time.perf_counter()
    with subprocess.Popen(
        command + (["--seed", str(seed)] if seed else []), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        where = json.loads(process.stdout.readline())
        try:
            yield process, where, time.perf_counter() - begun
        finally:
            process.terminate()


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """Return the user and system time of a process."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_megabytes(process: subprocess.Popen[bytes]) -> float:
    """Return the largest resident set of a process."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def page_cost(process: subprocess.Popen[bytes], base_url: str) -> float:
    """Return the CPU milliseconds that the service takes for a page of a hundred exports."""
    headers = {"Authorization": "Bearer phx_benchmark"}
    path = "/api/organizations/org/batch_exports/"
    with httpx.Client(base_url=base_url, headers=headers, timeout=60) as client:
        before = cpu_seconds(process)
        for number in range(PAGES):
            query = {"limit": 100, "offset": number * 100}
            page = client.get(path, params=query).raise_for_status()
            assert page.json()["count"] > 0
        return (cpu_seconds(process) - before) / PAGES * 1000


def seconds_of_gets(port: int, path: str, key: str) -> float:
    """Return the wall time of consecutive GETs on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {key}"}

    def get() -> None:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200

    for _ in range(50):
        get()
    begun = time.perf_counter()
    for _ in range(GETS):
        get()
    return time.perf_counter() - begun


def gets() -> tuple[float, float]:
    """Return the median milliseconds of a response: of the service and of a bare application."""
    with service(None) as (_, where, _):
        path = f"/api/projects/{where['project_id']}/batch_exports/"
        headers = {"Authorization": f"Bearer {where['api_key']}"}
        config = {"bucket_name": "acme", "region": "eu-central-1", "prefix": "web/"}
        body = {"name": "E", "interval": "hour", "destination": {"type": "S3", "config": config}}
        with httpx.Client(base_url=where["base_url"], headers=headers) as client:
            export = client.post(path, json=body).raise_for_status().json()
        path, port = f"{path}{export['id']}/", int(where["base_url"].rpartition(":")[2])
        command = [sys.executable, "-c", BARE, json.dumps(export)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as bare:
            assert bare.stdout is not None
            bare_port = int(bare.stdout.readline())
            try:
                pairs = [
                    (
                        seconds_of_gets(port, path, where["api_key"]),
                        seconds_of_gets(bare_port, path, where["api_key"]),
                    )
                    for _ in range(ROUNDS)
                ]
            finally:
                bare.terminate()
    ours, theirs = (statistics.median(times) * 1000 / GETS for times in zip(*pairs, strict=True))
    return ours, theirs


def main() -> None:
    """Measure and print."""
    ours, bare = gets()
    print(
        f"{GETS:,} GETs of one export   {ours:.2f} ms each   ({ours / bare:.2f} x bare starlette)"
    )
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder, "large.json")
        large.write_text(json.dumps(seed_of(EXPORTS)))
        with service(None) as (_, _, empty_start):
            pass
        with service(large) as (process, where, start):
            cost = page_cost(process, where["base_url"])
            memory = memory_megabytes(process)
    print(f"exports                     {EXPORTS:,}")
    print(f"start, empty                {empty_start:.2f} s")
    print(f"start, seeded               {start:.2f} s   ({start / empty_start:.1f} x empty)")
    print(f"CPU of a page of 100        {cost:.1f} ms")
    print(f"largest memory              {memory:.0f} MB")


if __name__ == "__main__":
    main()
