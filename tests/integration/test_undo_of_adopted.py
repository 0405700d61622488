"""`undo` never deletes what another client may have created, however its change ended."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from tests.conftest import StartService
from tests.support.cli import reconciler, write
from tests.support.limits import until

URL = "https://eu.i.posthog.com/batch/"
TOKEN = "${secret:env:RECONCILER_SECRET_TOKEN}"


def export(token: str) -> dict[str, object]:
    return {
        "name": "Lake",
        "interval": "hour",
        "destination": {"type": "HTTP", "config": {"url": URL, "token": token}},
    }


def test_an_adopted_object_is_not_deleted_if_its_change_failed(
    service_of: StartService, tmp_path: Path
) -> None:
    running = service_of(None, "--dialect", "2026")
    exports = {"batch_exports": {"lake": {"project": {"id": 1}, **export(TOKEN)}}}
    write(tmp_path, {"reconciler.yaml": "version: 1\n", "a.yaml": json.dumps(exports)})
    environ = {**running.environ(), "RECONCILER_SECRET_TOKEN": "tok-12345678"}
    create = {"method": "POST", "path": "*/batch_exports/", "times": 1}
    update = {"method": "PATCH", "path": "*/batch_exports/?*/", "times": 1}
    rules = [
        {"match": create, "fault": "drop", "when": "before"},
        {"match": update, "fault": "error", "status": 403},
    ]
    running.admin("PUT", "faults", rules)

    def create_the_same() -> None:
        until(lambda: ("POST", "batch_exports") in running.writes(), running.process)
        answer = running.call("POST", "/api/projects/1/batch_exports/", export("theirs"))
        answer.raise_for_status()

    other = threading.Thread(target=create_the_same)
    other.start()
    log = tmp_path / "log.jsonl"
    command = ("apply", "-C", tmp_path, "--auto-approve", "--log-file", log)
    ran = reconciler(*command, environ=environ)
    other.join()
    assert ran.code == 3, ran.err
    theirs = running.exports()["Lake"]["id"]
    assert f"failed (adopted: id {theirs})" in ran.out
    undone = reconciler("plan", "--undo", log, "-C", tmp_path, environ=environ)
    assert "No changes" in undone.out, undone.out
    assert "another client may have created it: nothing is deleted" in " ".join(undone.out.split())
