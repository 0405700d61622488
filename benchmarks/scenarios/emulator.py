"""The embedded service: a response, and 10,000 exports (start, CPU of a page, memory).

A response is relative to the same body from a bare Starlette application, the start to that of an
empty service.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks.measuring import Settings
from benchmarks.results import Result, ratio_of
from benchmarks.service import Service, cpu_seconds, peak_megabytes, running
from benchmarks.workspaces import API_KEY, ORGANIZATION, Workload, write

EXPORTS = 10_000
PAGES = 40
GETS = 1_000

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


def page_cost(service: Service) -> float:
    """Return the CPU milliseconds that the service takes for a page of a hundred exports."""
    headers = {"Authorization": f"Bearer {API_KEY}"}
    path = f"/api/organizations/{ORGANIZATION}/batch_exports/"
    with httpx.Client(base_url=service.base_url, headers=headers, timeout=60) as client:
        before = cpu_seconds(service.process)
        for number in range(PAGES):
            query = {"limit": 100, "offset": number * 100}
            page = client.get(path, params=query).raise_for_status()
            assert page.json()["count"] > 0
        return (cpu_seconds(service.process) - before) / PAGES * 1000


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


def gets(rounds: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds of a response by round: of the service and a bare application."""
    with running(None) as service:
        where = service.where
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
                    for _ in range(rounds)
                ]
            finally:
                bare.terminate()
    ours, theirs = (
        [seconds * 1000 / GETS for seconds in times] for times in zip(*pairs, strict=True)
    )
    return ours, theirs


def emulator(settings: Settings) -> Result:
    """Measure responses, then a service without and with a large seed."""
    ours, bare = gets(settings.rounds)
    empty, seeded = [], []
    with tempfile.TemporaryDirectory() as folder:
        seed = write(Workload(EXPORTS, 20), Path(folder), in_git=False).seed
        for _ in range(settings.rounds):
            with running(None) as service:
                empty.append(service.start)
            with running(seed) as service:
                seeded.append(service.start)
                cost = page_cost(service)
                memory = peak_megabytes(service.process)
    return Result(
        f"embedded service with {EXPORTS:,} exports",
        ratios={
            "response ÷ bare Starlette": ratio_of(ours, bare),
            "start ÷ start when empty": ratio_of(seeded, empty),
        },
        values={
            "a response, ms": min(ours),
            "a page of 100, CPU ms": cost,
            "start, s": min(seeded),
            "peak MB": memory,
        },
    )
