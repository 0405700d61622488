"""Every JSON output has a format version, and is as its published schema says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from reconciler.commands.program import COMMANDS, command_of
from reconciler.model.schemas import schema
from tests.conftest import StartService
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git

FILES = {
    "reconciler.yaml": "version: 1\nenvironments: {staging: {}, production: {}}\n"
    "default: staging\n",
    "resources.yaml": """\
projects:
  web: {name: Web}
batch_exports:
  trial:
    project: web
    name: Trial
    interval: hour
    destination: {type: NoOp, config: {}}
    overrides:
      staging: {interval: day}
""",
}
OUTPUTS = [
    ("plan", ("plan",)),
    ("environments", ("plan", "-e", "*")),
    ("diagnostics", ("validate",)),
    ("resolved", ("show", "trial")),
    ("audit", ("show", "audit.log")),
    ("status", ("status",)),
    ("environments", ("status", "-e", "*")),
    ("gaps", ("gaps",)),
    ("runs", ("runs", "trial")),
    ("logs", ("logs", "trial")),
    ("drift", ("drift",)),
    ("drift", ("drift", "--write")),
    ("compare", ("compare", "staging", "production")),
    ("import", ("import", "--dry-run")),
    ("projects", ("projects", "list")),
    ("project_details", ("projects", "show", "web")),
    ("doctor", ("doctor",)),
    ("backfill", ("backfill", "trial", "--dry-run", "--from", "2026-01-01", "--to", "2026-01-02")),
]


@pytest.fixture(scope="module")
def service(service_of: StartService) -> RunningEmulator:
    return service_of(None, "--dialect", "2026")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, service: RunningEmulator) -> Path:
    folder = write(tmp_path_factory.mktemp("json"), FILES)
    Git.init(folder).commit()
    log = ("--log-file", folder / "audit.log")
    ran = reconciler("apply", "-C", folder, "--auto-approve", *log, environ=service.environ())
    assert ran.code == 0, ran.err
    return folder


@pytest.mark.parametrize(("name", "command"), OUTPUTS)
def test_issue_32_json_is_as_its_schema_says(
    name: str,
    command: tuple[str, ...],
    workspace: Path,
    service: RunningEmulator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(workspace)
    ran = reconciler(*command, "--format", "json", environ=service.environ())
    content = json.loads(ran.out)
    assert content["format_version"] >= 1
    Draft202012Validator(schema(name) or {}).validate(content)


def test_issue_32_every_command_with_json_is_tested() -> None:
    tested = {command for _, (command, *_) in OUTPUTS}
    with_format = {
        name
        for name in COMMANDS
        if any("--format" in param.opts for param in command_of(name).params)
    }
    # These print events.
    assert with_format - tested == {"apply", "pause", "unpause"}
