"""Exports without `project:`: the path of the organization serves them where it can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator

EXPORT = {"name": "Lake", "interval": "hour", "destination": {"type": "NoOp", "config": {}}}
LIMITED = {
    "organizations": [
        {"name": "Acme", "projects": [{"id": 1, "name": "Web", "batch_exports": [EXPORT]}]}
    ],
    "keys": [
        {"value": "phx_all", "scopes": ["*"], "label": "all"},
        {"value": "phx_limited", "scopes": ["*"], "projects": [1], "label": "limited"},
    ],
}


def workspace(folder: Path, projects: Any = None, **fields: Any) -> Path:
    files = {"batch_exports": {"lake": {**EXPORT, **fields}}}
    files |= {"projects": projects} if projects else {}
    return write(folder, {"reconciler.yaml": "version: 1\n", "a.yaml": json.dumps(files)})


def apply(emulator: RunningEmulator, folder: Path, **environ: str) -> Ran:
    words = ("apply", "-C", folder, "--auto-approve")
    return reconciler(*words, environ={**emulator.environ(), **environ})


def written(emulator: RunningEmulator) -> list[str]:
    """Return the place and the last part of the path of every write."""
    sent = [request["path"] for request in emulator.requests() if request["method"] != "GET"]
    return [f"{path.split('/')[2]} {path.split('/')[-2]}" for path in sent]


def test_an_export_lives_below_the_organization(emulator: RunningEmulator, tmp_path: Path) -> None:
    stages: list[dict[str, Any]] = [{}, {"interval": "day"}, {"paused": True}, {"paused": False}]
    for fields in stages:
        assert apply(emulator, workspace(tmp_path, **fields)).code == 0
        assert "No changes" in apply(emulator, tmp_path).out
    range_ = ("--from", "2026-01-01", "--to", "2026-01-03", "--auto-approve")
    words = ("backfill", "lake", *range_, "-C", workspace(tmp_path, interval="hour"))
    assert reconciler(*words, environ=emulator.environ()).code == 0
    live_id = emulator.exports()["Lake"]["id"]
    assert apply(emulator, workspace(tmp_path, state="absent")).code == 0
    assert emulator.exports() == {}
    assert written(emulator) == [
        "organizations batch_exports",
        f"organizations {live_id}",
        "organizations pause",
        f"organizations {live_id}",
        "organizations unpause",
        "organizations backfill",
        f"organizations {live_id}",
    ]


@pytest.mark.parametrize("is_complete", [True, False])
def test_an_export_that_another_client_creates_at_once_is_reported(
    emulator: RunningEmulator, tmp_path: Path, *, is_complete: bool
) -> None:
    """Both ids and the lines to paste, also after a run of which a part failed."""
    match = {"method": "POST", "path": "*/organizations/*/batch_exports/", "times": 1}
    rules = [
        {"match": {**match, "body": {"name": "Pond"}}, "fault": "error", "status": 400},
        {"match": {**match, "body": {"name": "Lake"}}, "fault": "twin", "when": "before"},
    ]
    emulator.admin("PUT", "faults", rules)
    pond = {} if is_complete else {"pond": {**EXPORT, "name": "Pond"}}
    write(tmp_path, {"b.yaml": json.dumps({"batch_exports": pond})})
    ran = apply(emulator, workspace(tmp_path))
    assert ran.code == 3, ran.err
    ids = [item["id"] for item in emulator.state()["projects"][0]["batch_exports"]]
    assert len(ids) == 2
    shown = " ".join(ran.err.split())
    assert all(f"id {live_id}, created" in shown for live_id in ids)
    oldest = ids[-1]
    assert f"hint: pin the intended one: batch_exports: {{lake: {{id: {oldest}}}}}" in shown


def test_an_export_that_exists_by_now_is_not_created_again(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    folder = workspace(tmp_path)
    plan = tmp_path / "plan.json"
    words = ("plan", "-C", folder, "--out", plan)
    assert reconciler(*words, environ=emulator.environ()).code == 0
    emulator.call("POST", "/api/projects/1/batch_exports/", EXPORT).raise_for_status()
    emulator.clear_requests()
    ran = reconciler("apply", plan, "-C", folder, environ=emulator.environ())
    assert ran.code == 0, ran.err
    assert written(emulator) == []


def test_a_key_that_is_limited_to_projects_uses_their_paths(
    service_of: StartService, tmp_path: Path
) -> None:
    running = service_of(LIMITED)
    folder = workspace(tmp_path, {"web": {"id": "1", "name": "Web"}}, interval="day")
    ran = apply(running, folder, RECONCILER_API_KEY="phx_limited")
    assert ran.code == 0, ran.err
    assert [place.split()[0] for place in written(running)] == ["projects"]
