"""Exports of a seed that are copies of answers: stored as they are, without checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.emulator import start_emulator

SHOWN: dict[str, Any] = {
    "id": "0192e6b2-45d1-0000-5f2b-7c1a2b3c4d5e",
    "name": "Old",
    "model": "events",
    "interval": "every 30 minutes",
    "paused": True,
    "last_paused_at": "2026-01-02T00:00:00Z",
    "created_at": "2025-01-01T00:00:00Z",
    "last_updated_at": "2026-01-02T00:00:00Z",
    "destination": {"type": "Retired", "config": {"gone": "1"}, "integration": None},
    "schema": {"fields": [], "values": {}, "hogql_query": "SELECT * EXCEPT(a) FROM events"},
}


@pytest.mark.parametrize("dialect", ["2025", "2026"])
def test_an_answer_is_shown_as_it_was(dialect: str, tmp_path: Path) -> None:
    """Its type, keys and query need not be known."""
    project = {"id": 1, "name": "Web", "batch_exports": [{**SHOWN, "copied": True}]}
    seed = {
        "organizations": [{"id": "org", "name": "Acme", "projects": [project]}],
        "keys": [{"value": "phx_key"}],
    }
    file = tmp_path / "seed.json"
    file.write_text(json.dumps(seed))
    with start_emulator(seed=file, extra=("--dialect", dialect)) as running:
        running.advance(hours=2)
        answer = running.call("GET", f"/api/projects/1/batch_exports/{SHOWN['id']}/").json()
    if dialect == "2026":
        assert answer["hogql_query"] == SHOWN["schema"]["hogql_query"]
    same = SHOWN.keys() - ({"schema"} if dialect == "2026" else set())
    assert {name: answer[name] for name in same} == {name: SHOWN[name] for name in same}
