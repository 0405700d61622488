"""Planning and applying: replacements, failures, limited keys, warnings, ids."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator

NOOP = {"type": "NoOp", "config": {}}


def files(**exports: dict[str, object]) -> dict[str, str]:
    declared = {
        key: {"project": "web", "name": key, "interval": "hour", "destination": NOOP, **fields}
        for key, fields in exports.items()
    }
    text = json.dumps({"projects": {"web": {"name": "Web"}}, "batch_exports": declared}, indent=1)
    return {"resources.yaml": text}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    policy = "version: 1\npolicy: {prune: true}\n"
    return write(tmp_path / "repo/pipelines", {"reconciler.yaml": policy})


def apply(folder: Path, running: RunningEmulator, *more: str) -> Ran:
    environ = {**running.environ(), "RECONCILER_SECRET_KEY": "pass-word"}
    return reconciler("apply", "-C", folder, "--auto-approve", *more, environ=environ)


@pytest.fixture
def newest(service_of: StartService) -> RunningEmulator:
    return service_of(None, "--dialect", "2026")


def test_a_replacement_creates_first_and_keeps_unmanaged_fields(
    workspace: Path, newest: RunningEmulator
) -> None:
    write(workspace, files(a={}))
    assert apply(workspace, newest).code == 0
    old = newest.exports()["a"]
    path = f"/api/projects/{old['team_id']}/batch_exports/{old['id']}/"
    settings = {"paused": True, "end_at": "2030-01-01T00:00:00Z"}
    newest.call("PATCH", path, settings).raise_for_status()
    capture = {
        "url": "https://eu.i.posthog.com/batch/",
        "token": "${secret:env:RECONCILER_SECRET_KEY}",
    }
    write(workspace, files(a={"destination": {"type": "HTTP", "config": capture}}))
    refused = apply(workspace, newest)
    assert refused.code == 5
    assert "--allow-replace" in refused.out
    newest.clear_requests()
    done = apply(workspace, newest, "--allow-replace")
    assert done.code == 0, done.err
    assert [method for method, _ in newest.writes()] == ["POST", "DELETE"]
    new = newest.exports()["a"]
    assert new["id"] != old["id"]
    assert (new["paused"], new["end_at"]) == (True, "2030-01-01T00:00:00Z")


def test_a_create_in_two_steps_sets_what_the_server_overwrote(
    workspace: Path, newest: RunningEmulator
) -> None:
    filters = [{"key": "a", "type": "event", "operator": "exact", "value": ["x"]}]
    project = {"projects": {"web": {"name": "Web", "test_account_filters": filters}}}
    write(workspace, {"resources.yaml": json.dumps(project)})
    done = apply(workspace, newest)
    assert done.code == 0, done.err
    made = next(project for project in newest.state()["projects"] if project["name"] == "Web")
    assert made["test_account_filters"] == filters
    assert [method for method, _ in newest.writes()] == ["POST", "PATCH"]


def test_a_failure_skips_its_dependents_only(workspace: Path, emulator: RunningEmulator) -> None:
    both = {
        "projects": {"bad": {"name": "x" * 200}, "good": {"name": "Good"}},
        "batch_exports": {
            key: {"project": key, "name": key, "interval": "hour", "destination": NOOP}
            for key in ("bad", "good")
        },
    }
    write(workspace, {"resources.yaml": json.dumps(both)})
    rule = {
        "match": {"method": "POST", "path": "*/projects/", "nth": 1},
        "fault": "error",
        "status": 400,
    }
    emulator.admin("PUT", "faults", [rule])
    done = apply(workspace, emulator)
    assert done.code == 3
    assert "1 failed, 1 skipped" in done.out
    assert len(emulator.exports()) == 1
    assert apply(workspace, emulator).code == 0
    assert len(emulator.exports()) == 2


def test_a_key_limited_to_a_project_can_plan_that_project(
    workspace: Path, service_of: StartService
) -> None:
    exports = [{"name": "a", "interval": "hour", "destination": NOOP}]
    web = {"id": 1, "name": "Web", "batch_exports": exports}
    organization = {"id": "o", "name": "O", "projects": [web, {"id": 2, "name": "Other"}]}
    keys = [{"value": "phx_one", "projects": [1]}]
    environ = service_of({"organizations": [organization], "keys": keys}).environ()
    declared = files(a={})["resources.yaml"].replace('"name": "Web"', '"id": 1, "name": "Web"')
    write(workspace, {"resources.yaml": declared})
    ran = reconciler("plan", "-C", workspace, environ=environ)
    assert ran.out.endswith("(2 resources).\n"), ran.err
    write(workspace, files(a={}))
    refused = reconciler("plan", "-C", workspace, environ=environ)
    assert (refused.code, "set `id` for each project" in refused.err) == (1, True)


def test_experience_27_apply_prints_the_warnings_of_the_files_once(
    workspace: Path, emulator: RunningEmulator
) -> None:
    write(workspace, {"reconciler.yaml": "version: 1\nvars: {unused: x}\n", **files()})
    planned = reconciler("plan", "-C", workspace, environ=emulator.environ())
    for ran in (planned, apply(workspace, emulator)):
        assert (ran.code, ran.err.count("[unused-variable]")) == (0, 1), ran.err


@pytest.mark.parametrize("options", [(), ("--dialect", "2026", "--no-organization-list")], ids=str)
@pytest.mark.parametrize("state", ["present", "absent"])
def test_an_id_in_other_letters_than_those_of_the_service_is_an_error_at_its_place(
    tmp_path: Path, service_of: StartService, options: tuple[str, ...], state: str
) -> None:
    export = {"name": "lake", "interval": "hour", "destination": NOOP}
    project = {"id": 1, "name": "Web", "batch_exports": [export]}
    organization = {"id": "o", "name": "O", "projects": [project]}
    running = service_of({"organizations": [organization], "keys": [{"value": "phx_k"}]}, *options)
    live_id = running.exports()["lake"]["id"]
    for written in (live_id.upper(), live_id.replace("-", "")):
        changed = files(lake={"id": written, "state": state})
        folder = write(tmp_path / written, {"reconciler.yaml": "version: 1\n", **changed})
        ran = reconciler("plan", "-C", folder, environ=running.environ())
        assert ran.code == 5
        shown = " ".join(ran.out.split())
        problem = f"no live batch_export has the id '{written}'"
        assert f"resources.yaml:16:10: error: batch_export.lake: {problem}" in shown
        assert f"hint: write it as the service does: `id: {live_id}`" in shown
    empty = write(tmp_path / "empty", {"reconciler.yaml": "version: 1\n"})
    ran = reconciler("import", live_id.upper(), "-C", empty, environ=running.environ())
    assert 'hint: did you mean "lake"' in ran.err
