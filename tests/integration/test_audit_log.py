"""The audit log, end to end: masked secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Ran, reconciler, write
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


class Applied:
    """A workspace that is applied with a secret, and the log of its next run."""

    def __init__(self, folder: Path, emulator: RunningEmulator, secret: str) -> None:
        self.folder, self.secret, self.log = folder, secret, folder.parent / "audit.jsonl"
        self.environ = {**emulator.environ(), "U": "user-name", "P": secret}
        assert self.run().code == 0

    def run(self, *words: str | Path, **environ: str) -> Ran:
        own = {**self.environ, **environ}
        return reconciler("apply", "-C", self.folder, "--auto-approve", *words, environ=own)

    def edit(self, old: str, new: str) -> None:
        path = self.folder / "all.yaml"
        path.write_text(path.read_text().replace(old, new))

    def logged(self, *words: str, code: int = 0, **environ: str) -> str:
        """Apply with a log, and return its text, in which the secret is not."""
        ran = self.run("--log-file", self.log, *words, **environ)
        assert ran.code == code, ran.err
        assert leaks(self.log, self.secret) == []
        return self.log.read_text()


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_in_a_live_field_is_masked(
    secret: str, workspace: Path, emulator: RunningEmulator
) -> None:
    applied = Applied(workspace, emulator, secret)
    put_live(emulator, {"table_name": f"x {secret} y", "port": 6000})
    assert "table_name" in applied.logged()


def test_a_secret_in_the_error_of_a_change_is_masked(
    workspace: Path, emulator: RunningEmulator
) -> None:
    applied = Applied(workspace, emulator, 'with"quote\\and more')
    applied.edit("name: Lake", "name: Lake\n    state: absent")
    rule = {
        "match": {"method": "GET", "path": f"*{emulator.exports()['Lake']['id']}/"},
        "fault": "edit",
        "set": {"destination": {"config": {"table_name": f"x {applied.secret}"}}},
    }
    emulator.admin("PUT", "faults", [rule])
    assert "table_name" in applied.logged(code=3)


def test_a_secret_from_a_command_is_masked_in_the_logged_plan(
    workspace: Path, emulator: RunningEmulator
) -> None:
    """It is known only once it was run, which is before the plan is logged."""
    secret = 'from"a command'
    text = "version: 1\nsecrets: [P, U]\npolicy: {allow_exec_secrets: true}\n"
    write(workspace, {"secret.txt": secret, "reconciler.yaml": text})
    applied = Applied(workspace, emulator, secret)
    put_live(emulator, {"table_name": f"x {secret} y"})
    applied.edit("${secret:env:P}", "${secret:exec:cat secret.txt}")
    applied.logged("--rotate-secrets", P="", RECONCILER_ALLOW_EXEC="1")


def test_the_log_of_a_killed_run_can_be_read(workspace: Path, emulator: RunningEmulator) -> None:
    """Its last line may be cut off."""
    applied = Applied(workspace, emulator, "pass-word")
    applied.edit("5432", "5433")
    applied.log.write_text(applied.logged() + '{"time": "2026-01-01T00:00')
    audited = reconciler("show", applied.log)
    assert audited.code == 0, audited.err
    assert "~ done  update batch_export.lake" in audited.out
