"""Failures of keys, networks and files: one message, the exit code, and nothing applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator

WORKSPACE = {
    "reconciler.yaml": "version: 1\nsecrets: [KEY, KEY_ID]\n",
    "exports.yaml": """\
projects:
  web: {name: Web}
batch_exports:
  lake:
    project: web
    name: Lake
    interval: hour
    destination:
      type: S3
      config:
        bucket_name: acme
        region: eu-central-1
        prefix: a/
        aws_access_key_id: ${secret:env:KEY_ID}
        aws_secret_access_key: ${secret:env:KEY}
""",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write(tmp_path, WORKSPACE)


def apply(workspace: Path, environ: dict[str, str]):
    return reconciler("apply", "-C", workspace, "--auto-approve", environ=environ)


def test_a_wrong_key(workspace: Path, emulator: RunningEmulator) -> None:
    ran = apply(workspace, {**emulator.environ(), "RECONCILER_API_KEY": "phx_wrong"})
    assert ran.code == 1
    assert "401" in ran.err
    assert "check `api_key`" in ran.err
    assert "phx_wrong" not in ran.err + ran.out


def test_an_unreachable_host(workspace: Path, emulator: RunningEmulator) -> None:
    ran = reconciler(
        *("plan", "-C", workspace),
        environ={**emulator.environ(), "RECONCILER_BASE_URL": "http://127.0.0.1:1"},
    )
    assert ran.code == 1
    assert "can't connect to http://127.0.0.1:1" in ran.err


def test_an_unknown_organization(workspace: Path, emulator: RunningEmulator) -> None:
    ran = apply(workspace, {**emulator.environ(), "RECONCILER_ORGANIZATION": "nope"})
    assert ran.code == 1
    assert "check `organization`" in ran.err


def test_a_misspelt_field(workspace: Path, emulator: RunningEmulator) -> None:
    path = workspace / "exports.yaml"
    path.write_text(path.read_text().replace("bucket_name", "buckett_name"))
    ran = apply(workspace, emulator.environ())
    assert ran.code == 1
    assert "exports.yaml:11:9: error: unknown field 'buckett_name'" in ran.err
    assert "^^^^^^^^^^^^\n  hint: did you mean 'bucket_name'?" in ran.err
    assert emulator.requests() == []


def test_a_missing_secret_stops_everything_before_the_first_request(
    workspace: Path, emulator: RunningEmulator
) -> None:
    ran = apply(workspace, {**emulator.environ(), "KEY_ID": "set"})
    assert ran.code == 1
    assert "secret ${secret:env:KEY} is not set" in ran.err
    assert "needed by batch_export.lake" in ran.err
    assert emulator.writes() == []


def test_an_empty_secret_is_refused(workspace: Path, emulator: RunningEmulator) -> None:
    ran = apply(workspace, {**emulator.environ(), "KEY_ID": "set", "KEY": " "})
    assert ran.code == 1
    assert "is empty" in ran.err
    assert emulator.writes() == []


def test_an_environment_without_a_url(workspace: Path) -> None:
    ran = reconciler("plan", "-C", workspace)
    assert ran.code == 1
    assert "RECONCILER_BASE_URL" in ran.err


def test_a_folder_without_a_workspace(tmp_path: Path) -> None:
    ran = reconciler("plan", "-C", tmp_path)
    assert ran.code == 1
    assert "no reconciler.yaml in this folder" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "--no-such-option"),
        ("plna",),
        ("plan", "--format", "nope"),
        ("show",),
        ("plan", "--base", "x", "--no-inventory"),
    ],
)
def test_bad_usage_exits_with_64(arguments: tuple[str, ...]) -> None:
    assert reconciler(*arguments).code == 64


def test_plan_v11_a_key_without_write_scope_fails_every_change_and_quiet_says_why(
    workspace: Path, tmp_path: Path
) -> None:
    from tests.support.emulator import start_emulator

    seed = tmp_path / "seed.json"
    seed.write_text(
        '{"organizations": [{"id": "org", "name": "O", "projects": [{"name": "Other"}]}],'
        ' "keys": [{"value": "phx_read", "scopes": ["batch_export:read", "project:read"]}]}'
    )
    with start_emulator(seed=seed) as running:
        environ = {**running.environ(), "KEY_ID": "a-key", "KEY": "a-secret"}
        ran = apply(workspace, environ)
        quiet = reconciler("-q", "apply", "-C", workspace, "--auto-approve", environ=environ)
    assert ran.code == 3
    assert "· organization org\n" in ran.out
    assert quiet.err.startswith('✗ create of project.web "Web" failed: ')
    assert "skipped" not in quiet.err
    assert "missing required scope 'project:write'" in ran.err
    assert "skipped: create of project.web failed" in ran.err
    assert "Run the command again" not in ran.out
    assert "Correct what the service refused, then apply again." in ran.out


def test_x6_equal_refusals_of_one_cause_are_one_message_with_a_count(
    workspace: Path, tmp_path: Path
) -> None:
    from tests.support.emulator import start_emulator

    project, _, export = WORKSPACE["exports.yaml"].partition("batch_exports:\n")
    exports = (export.replace("lake", f"x{i}").replace("Lake", f"X{i}") for i in range(6))
    write(workspace, {"exports.yaml": f"{project}batch_exports:\n{''.join(exports)}"})
    keys = '[{"value": "phx_read", "scopes": ["batch_export:read", "project:read"]}]'
    seed = tmp_path / "seed.json"
    seed.write_text(
        '{"organizations": [{"id": "org", "name": "O", "projects": [{"name": "Web"}]}],'
        f' "keys": {keys}}}'
    )
    with start_emulator(seed=seed) as running:
        ran = apply(workspace, {**running.environ(), "KEY_ID": "a-key", "KEY": "a-secret"})
    assert ran.code == 3
    assert ran.err.count("missing required scope 'batch_export:write'") == 1
    assert "✗ 5 more failed for the same reason: batch_export." in ran.err


def test_plan_v11_a_complete_apply_says_that_it_is_verified(
    workspace: Path, emulator: RunningEmulator
) -> None:
    ran = apply(workspace, {**emulator.environ(), "KEY_ID": "a-key", "KEY": "a-secret"})
    assert ran.out.startswith('Environment default "Demo" · http://')
    assert "Verified: the plan is empty.\n" in ran.err


def test_a_secret_in_live_state_is_masked_in_a_plan(
    workspace: Path, emulator: RunningEmulator
) -> None:
    """A user pasted the key into the prefix: the plan must not show it to a reviewer."""
    environ = {**emulator.environ(), "KEY_ID": "key-id-1234", "KEY": "hunter2hunter2"}
    assert apply(workspace, environ).code == 0
    export = emulator.exports()["Lake"]
    path = f"/api/projects/{export['team_id']}/batch_exports/{export['id']}/"
    leak = {"destination": {"type": "S3", "config": {"prefix": "x/hunter2hunter2/"}}}
    emulator.call("PATCH", path, leak).raise_for_status()
    for output_format in ("text", "json", "markdown"):
        ran = reconciler("plan", "-C", workspace, "--format", output_format, environ=environ)
        assert "hunter2" not in ran.out + ran.err
        assert "***" in ran.out
    saved = workspace / "plan.json"
    assert reconciler("plan", "-C", workspace, "--out", saved, environ=environ).code == 0
    assert "hunter2" not in saved.read_text()
    assert reconciler("apply", saved, "-C", workspace, environ=environ).code == 0
    assert emulator.exports()["Lake"]["destination"]["config"]["prefix"] == "a/"
    emulator.call("PATCH", path, leak).raise_for_status()
    assert reconciler("plan", "-C", workspace, "--out", saved, environ=environ).code == 0
    more = {"destination": {"type": "S3", "config": {"prefix": "y/hunter2hunter2/"}}}
    emulator.call("PATCH", path, more).raise_for_status()
    stale = reconciler("apply", saved, "-C", workspace, environ=environ)
    assert stale.code == 4
    assert "hunter2" not in stale.out + stale.err
    # The check just before the write reports the same.
    rule = {
        "match": {"method": "GET", "path": f"*{export['id']}/"},
        "fault": "edit",
        "set": {"destination": {"config": {"prefix": "z/hunter2hunter2/"}}},
    }
    emulator.admin("PUT", "faults", [rule])
    (file,) = (file for file in workspace.glob("*.yaml") if "name: Lake" in file.read_text())
    file.write_text(file.read_text().replace("name: Lake", "name: Lake\n    state: absent"))
    raced = apply(workspace, environ)
    assert raced.code == 3
    assert "modified since the plan was made" in raced.err
    assert "hunter2" not in raced.out + raced.err
