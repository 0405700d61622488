"""The audit log, end to end: masked secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator

FILES = {
    "reconciler.yaml": "version: 1\nsecrets: [P, U]\n",
    "all.yaml": """\
projects:
  web: {name: Web}
batch_exports:
  lake:
    project: web
    name: Lake
    interval: hour
    destination:
      type: Postgres
      config: {host: h, database: d, port: 5432, schema: public, table_name: a,
               user: "${secret:env:U}", password: "${secret:env:P}"}
""",
}
SECRETS = [
    "plain-secret",
    'with"quote',
    "back\\slash",
    'both\\"of"them\\',
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----",
    "ünïcode✓",
]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write(tmp_path / "w", FILES)


def strings(value: Any) -> list[str]:
    """Yield every text in a JSON value, names included."""
    if isinstance(value, dict):
        return [text for item in value.items() for part in item for text in strings(part)]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


def leaks(log: Path, secret: str) -> list[str]:
    """Return the texts of a log that contain a secret, decoded or as in the file."""
    raw = log.read_text(encoding="utf-8")
    texts = [text for line in raw.splitlines() for text in strings(json.loads(line))]
    return [text for text in [*texts, raw] if secret in text]


def put_live(emulator: RunningEmulator, config: dict[str, Any]) -> None:
    lake = emulator.exports()["Lake"]
    path = f"/api/projects/{lake['team_id']}/batch_exports/{lake['id']}/"
    body = {"destination": {"type": "Postgres", "config": config}}
    emulator.call("PATCH", path, body).raise_for_status()


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_in_a_live_field_is_masked(
    secret: str, workspace: Path, emulator: RunningEmulator
) -> None:
    environ = {**emulator.environ(), "U": "user-name", "P": secret}
    apply = ("apply", "-C", workspace, "--auto-approve")
    assert reconciler(*apply, environ=environ).code == 0
    put_live(emulator, {"table_name": f"x {secret} y", "port": 6000})
    log = workspace.parent / "audit.jsonl"
    applied = reconciler(*apply, "--log-file", log, environ=environ)
    assert applied.code == 0, applied.err
    assert leaks(log, secret) == []


def test_a_secret_in_the_error_of_a_change_is_masked(
    workspace: Path, emulator: RunningEmulator
) -> None:
    secret = 'with"quote\\and more'
    environ = {**emulator.environ(), "U": "user-name", "P": secret}
    apply = ("apply", "-C", workspace, "--auto-approve")
    assert reconciler(*apply, environ=environ).code == 0
    path = workspace / "all.yaml"
    path.write_text(path.read_text().replace("name: Lake", "name: Lake\n    state: absent"))
    rule = {
        "match": {"method": "GET", "path": f"*{emulator.exports()['Lake']['id']}/"},
        "fault": "edit",
        "set": {"destination": {"config": {"table_name": f"x {secret}"}}},
    }
    emulator.admin("PUT", "faults", [rule])
    log = workspace.parent / "audit.jsonl"
    applied = reconciler(*apply, "--log-file", log, environ=environ)
    assert applied.code == 3
    assert "table_name" in log.read_text()
    assert leaks(log, secret) == []


def test_a_secret_from_a_command_is_masked_in_the_logged_plan(
    workspace: Path, emulator: RunningEmulator
) -> None:
    """It is known only once it was run, which is before the plan is logged."""
    secret = 'from"a command'
    environ = {**emulator.environ(), "U": "user-name", "P": secret}
    (workspace / "secret.txt").write_text(secret)
    (workspace / "reconciler.yaml").write_text(
        "version: 1\nsecrets: [P, U]\npolicy: {allow_exec_secrets: true}\n"
    )
    apply = ("apply", "-C", workspace, "--auto-approve")
    assert reconciler(*apply, environ=environ).code == 0
    put_live(emulator, {"table_name": f"x {secret} y"})
    path = workspace / "all.yaml"
    path.write_text(path.read_text().replace("${secret:env:P}", "${secret:exec:cat secret.txt}"))
    log = workspace.parent / "audit.jsonl"
    rotate = "--rotate-secrets"
    applied = reconciler(
        *apply,
        rotate,
        "--log-file",
        log,
        environ={**environ, "P": "", "RECONCILER_ALLOW_EXEC": "1"},
    )
    assert applied.code == 0, applied.err
    assert leaks(log, secret) == []


def test_the_log_of_a_killed_run_can_be_read(workspace: Path, emulator: RunningEmulator) -> None:
    """Its last line may be cut off."""
    environ = {**emulator.environ(), "U": "user-name", "P": "pass-word"}
    apply = ("apply", "-C", workspace, "--auto-approve")
    assert reconciler(*apply, environ=environ).code == 0
    path = workspace / "all.yaml"
    path.write_text(path.read_text().replace("5432", "5433"))
    log = workspace.parent / "audit.jsonl"
    assert reconciler(*apply, "--log-file", log, environ=environ).code == 0
    log.write_text(log.read_text() + '{"time": "2026-01-01T00:00')
    audited = reconciler("show", log)
    assert audited.code == 0, audited.err
    assert "~ done  update batch_export.lake" in audited.out
