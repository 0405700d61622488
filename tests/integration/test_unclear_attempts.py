"""A write whose first attempt took effect without an answer, and whose repetition is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator

EXPORT: dict[str, object] = {
    "name": "Lake",
    "interval": "hour",
    "destination": {"type": "NoOp", "config": {}},
}
WRITES = {
    "update": ({"interval": "day"}, "PATCH", "*/batch_exports/?*/"),
    "pause": ({"paused": True}, "POST", "*/pause/"),
    "delete": ({"state": "absent"}, "DELETE", "*/batch_exports/?*/"),
}


def applied(
    running: RunningEmulator, folder: Path, action: str, status: int, when: str
) -> tuple[Ran, dict[str, object]]:
    """Apply a change whose first attempt ends with 504 and the others with a refusal."""
    running.call("POST", "/api/projects/1/batch_exports/", EXPORT).raise_for_status()
    fields, method, path = WRITES[action]
    exports = {"batch_exports": {"lake": {"project": {"id": 1}, **EXPORT, **fields}}}
    write(folder, {"reconciler.yaml": "version: 1\n", "a.yaml": json.dumps(exports)})
    match = {"method": method, "path": path}
    lost = {"match": {**match, "times": 1}, "fault": "error", "status": 504, "when": when}
    refused = {"match": match, "fault": "error", "status": status}
    running.admin("PUT", "faults", [lost, refused])
    log = folder / "log.jsonl"
    ran = reconciler(
        *("apply", "-C", folder, "--auto-approve", "--log-file", log),
        environ=running.environ(),
    )
    ended = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])
    return ran, ended


@pytest.mark.parametrize("status", [400, 401, 403])
@pytest.mark.parametrize("action", WRITES)
def test_what_took_effect_before_a_refusal_is_done(
    action: str, status: int, service_of: StartService, tmp_path: Path
) -> None:
    running = service_of(None, "--dialect", "2026")
    ran, ended = applied(running, tmp_path, action, status, "after")
    assert (ran.code, ended["done"], ended["failed"]) == (0, 1, 0), ran.out
    assert f"1 {action}d" in ran.out


@pytest.mark.parametrize("action", WRITES)
def test_what_may_take_effect_after_a_refusal_is_unknown(
    action: str, service_of: StartService, tmp_path: Path
) -> None:
    running = service_of(None, "--dialect", "2026")
    ran, ended = applied(running, tmp_path, action, 403, "before")
    assert (ran.code, ended["failed"], ended["unknown"]) == (3, 1, 1), ran.out
    assert "an attempt before may have taken effect" in ran.out
