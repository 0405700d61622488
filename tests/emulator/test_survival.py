"""An unexpected 500 is reported."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import httpx

from tests.support.limits import time_limit


def test_a_failure_while_time_passes_is_an_answer_and_a_line(tmp_path: Path) -> None:
    """The database is broken behind the service's back: its own schedule fails at it."""
    file = tmp_path / "emulator.db"
    options = ["emulator", "--port", "0", "--db", str(file)]
    body = {"name": "a", "interval": "hour", "destination": {"type": "NoOp", "config": {}}}
    with subprocess.Popen(
        [sys.executable, "-m", "reconciler", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        with time_limit(process):
            where = json.loads(process.stdout.readline())
            headers = {"Authorization": f"Bearer {where['api_key']}"}
            with httpx.Client(base_url=where["base_url"], headers=headers) as http:
                http.post("/api/projects/1/batch_exports/", json=body).raise_for_status()
                with sqlite3.connect(file) as database:
                    database.execute("UPDATE exports SET body = '{}', due = 0")
                answer = http.get("/api/projects/1/")
                requests = http.get("/_emulator/requests").json()["requests"]
            process.terminate()
            printed = process.stderr.read().decode()
    assert (answer.status_code, answer.json()["code"]) == (500, "error")
    assert [request["error"] for request in requests] == [None, "KeyError"]
    assert "emulator: KeyError in GET /api/projects/1/ (" in printed
