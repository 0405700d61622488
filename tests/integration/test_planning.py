"""Planning and applying: git, replacements, unknown outcomes and concurrent changes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator, start_emulator
from tests.support.git import Git

NOOP = {"type": "NoOp", "config": {}}


def files(**exports: dict[str, object]) -> dict[str, str]:
    declared = {
        key: {"project": "web", "name": key, "interval": "hour", "destination": NOOP, **fields}
        for key, fields in exports.items()
    }
    text = json.dumps({"projects": {"web": {"name": "Web"}}, "batch_exports": declared}, indent=1)
    return {"resources.yaml": text}


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@t.example")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-m", message)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    policy = "version: 1\npolicy: {prune: true}\n"
    return write(tmp_path / "repo/pipelines", {"reconciler.yaml": policy})


def apply(folder: Path, running: RunningEmulator, *more: str):
    return reconciler(
        "apply",
        "-C",
        folder,
        "--auto-approve",
        *more,
        environ={
            **running.environ(),
            "RECONCILER_SECRET_ID": "user-name",
            "RECONCILER_SECRET_KEY": "pass-word",
        },
    )


def test_what_was_applied_separates_removals_changes_and_drift(
    workspace: Path, emulator: RunningEmulator
) -> None:
    write(workspace, files(a={}, b={}, c={}))
    git(workspace.parent, "init", "-b", "main")
    commit(workspace, "one")
    Git(workspace.parent).trust()
    assert apply(workspace, emulator).code == 0
    stray = {"name": "stray", "interval": "hour", "destination": NOOP}
    project = emulator.exports()["a"]["team_id"]
    emulator.call("POST", f"/api/projects/{project}/batch_exports/", stray).raise_for_status()
    drifted = emulator.exports()["b"]
    path = f"/api/projects/{project}/batch_exports/{drifted['id']}/"
    emulator.call("PATCH", path, {"interval": "week"}).raise_for_status()
    write(workspace, files(a={"interval": "day"}, b={}))
    commit(workspace, "two")
    plan = reconciler("plan", "-C", workspace, environ=emulator.environ())
    changed, drift = plan.out.split("Drift (")
    assert 'interval  "hour" -> "day"' in changed
    assert 'interval  "week" -> "hour"' in drift
    assert "removed from the configuration" in changed
    assert "2 to update, 1 to delete" in plan.out
    done = apply(workspace, emulator)
    assert done.code == 0, done.err
    assert set(emulator.exports()) == {"a", "b", "stray"}


def _head(folder: Path, ref: str) -> str:
    ended = subprocess.run(
        ["git", "rev-parse", ref], cwd=folder, check=True, capture_output=True, text=True
    )
    return ended.stdout.strip()


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


def test_a_change_just_before_a_deletion_stops_it(
    workspace: Path, emulator: RunningEmulator
) -> None:
    write(workspace, files(a={}))
    assert apply(workspace, emulator).code == 0
    export = emulator.exports()["a"]
    write(workspace, files(a={"state": "absent"}))
    rule = {
        "match": {"method": "GET", "path": f"*{export['id']}/"},
        "fault": "edit",
        "set": {"interval": "week"},
    }
    emulator.admin("PUT", "faults", [rule])
    done = apply(workspace, emulator)
    assert done.code == 3
    assert 'interval: "hour" -> "week"' in done.err
    assert emulator.exports()["a"]["interval"] == "week"


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


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--target", "batch_export.a"), {"a"}),
        (("--exclude", "*.a"), {"b"}),
        (("--kind", "batch_export", "--target", "*.b"), {"b"}),
        (("--project", "web"), {"a", "b"}),
    ],
)
def test_an_apply_with_a_target_applies_only_that(
    workspace: Path, emulator: RunningEmulator, options: tuple[str, ...], expected: set[str]
) -> None:
    write(workspace, files(a={}, b={}))
    assert apply(workspace, emulator, *options).code == 0
    assert set(emulator.exports()) == expected


def test_a_key_limited_to_a_project_can_plan_that_project(workspace: Path, tmp_path: Path) -> None:
    seed = tmp_path / "seed.json"
    exports = [{"name": "a", "interval": "hour", "destination": NOOP}]
    seed.write_text(
        json.dumps(
            {
                "organizations": [
                    {
                        "id": "o",
                        "name": "O",
                        "projects": [
                            {"id": 1, "name": "Web", "batch_exports": exports},
                            {"id": 2, "name": "Other"},
                        ],
                    }
                ],
                "keys": [{"value": "phx_one", "projects": [1]}],
            }
        )
    )
    declared = files(a={})["resources.yaml"].replace('"name": "Web"', '"id": 1, "name": "Web"')
    write(workspace, {"resources.yaml": declared})
    with start_emulator(seed=seed) as running:
        ran = reconciler("plan", "-C", workspace, environ=running.environ())
        assert ran.out.endswith("(2 resources).\n"), ran.err
        write(workspace, files(a={}))
        refused = reconciler("plan", "-C", workspace, environ=running.environ())
    assert refused.code == 1
    assert "set `id` for each project" in refused.err


def test_experience_27_apply_prints_the_warnings_of_the_files_once(
    workspace: Path, emulator: RunningEmulator
) -> None:
    write(workspace, files())
    write(workspace, {"reconciler.yaml": "version: 1\nvars: {unused: x}\n"})
    for command in ("plan", "apply"):
        ran = reconciler(
            command,
            "-C",
            workspace,
            *(["--auto-approve"] if command == "apply" else []),
            environ=emulator.environ(),
        )
        assert ran.code == 0, ran.err
        assert ran.err.count("[unused-variable]") == 1


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
