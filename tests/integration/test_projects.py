"""`projects`: list, show, activity, demo data, and the reset of a token."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.limits import TIMEOUT
from tests.support.simulated import no_op_export

NAME = "Default project"


def workspace(folder: Path) -> Path:
    files = {"projects": {"web": {"name": NAME}, "shop": {"name": "Shop"}}}
    return write(folder, {"reconciler.yaml": "version: 1\n", "web.yaml": json.dumps(files)})


def token(emulator: RunningEmulator) -> str:
    path = f"/api/organizations/{emulator.organization}/projects/1/"
    return str(emulator.call("GET", path).json()["api_token"])


def ran(emulator: RunningEmulator, folder: Path, *words: str | Path) -> Ran:
    return reconciler("projects", *words, "-C", folder, environ=emulator.environ())


def reset(emulator: RunningEmulator, folder: Path, *options: str | Path) -> Ran:
    return ran(emulator, folder, "reset-token", "web", "--auto-approve", *options)


def test_the_list_of_all_projects(emulator: RunningEmulator, tmp_path: Path) -> None:
    path = f"/api/organizations/{emulator.organization}/projects/"
    emulator.call("POST", path, {"name": "Tab\there", "timezone": "Europe/Berlin"})
    exports = f"/api/projects/{emulator.project_id}/batch_exports/"
    emulator.call("POST", exports, no_op_export("Lake"))
    shown = ran(emulator, workspace(tmp_path), "list")
    rows = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert "1 Default project 1 UTC project.web" in rows
    assert "2 Tab\\there 0 Europe/Berlin unmanaged" in rows
    assert "Do not exist yet: project.shop" in rows
    assert (shown.code, rows[-1]) == (0, "2 projects, 1 unmanaged.")
    listing = json.loads(ran(emulator, tmp_path, "list", "--format", "json").out)
    assert [line["exports"] for line in listing["projects"]] == [0, 1]
    assert listing["missing"] == ["project.shop"]
    assert ran(emulator, tmp_path, "list", "web").out.endswith("1 project.\n")


def test_show_hides_the_token(emulator: RunningEmulator, tmp_path: Path) -> None:
    secret, words = token(emulator), ("show", "web")
    shown = ran(emulator, workspace(tmp_path), *words, "--debug")
    assert shown.code == 0
    assert f'project.web "{NAME}" (id 1)' in shown.out
    assert f"{emulator.base_url}/project/1/settings/project-details" in shown.out
    assert secret not in shown.out + shown.err
    fields = json.loads(ran(emulator, tmp_path, *words, "--format=json").out)["fields"]
    assert (fields["api_token"], fields["timezone"]) == ("***", "UTC")
    assert secret in ran(emulator, tmp_path, *words, "--reveal").out


@pytest.mark.parametrize("dialect", ["2025", "2026"])
def test_what_is_refused_to_keys(dialect: str, service_of: StartService, tmp_path: Path) -> None:
    """A server whose dialect is known, because there is an export, gets no request."""
    running = service_of(None, "--dialect", dialect)
    folder = workspace(tmp_path)
    shown = ran(running, folder, "activity", "web")
    assert (shown.code, "API key" in shown.err) == (1, True)
    page = f"{running.base_url}/project/1/settings/project-details"
    assert page in "".join(shown.err.split("\n    "))
    running.call("POST", "/api/projects/1/batch_exports/", no_op_export("Lake"))
    running.clear_requests()
    refused = reset(running, folder)
    text = f"reset token: a server of dialect {dialect} refuses it to API keys"
    assert (refused.code, text in refused.err, running.writes()) == (1, True, [])


def test_a_reset_shows_the_token_only_if_asked(emulator: RunningEmulator, tmp_path: Path) -> None:
    folder, before = workspace(tmp_path), token(emulator)
    hidden = reset(emulator, folder, "--debug")
    assert token(emulator) != before
    assert token(emulator) not in hidden.out + hidden.err
    assert "***" in hidden.out
    assert "stop working" in hidden.err
    assert emulator.writes() == [("PATCH", "reset_token")]
    shown = reset(emulator, folder, "--reveal")
    assert token(emulator) in shown.out
    assert token(emulator) not in shown.err


LOST = {"match": {"path": "*/reset_token/"}, "fault": "drop"}
HIDDEN = {"match": {"path": "*/projects/1/", "from": 2}, "fault": "error", "status": 404}


@pytest.mark.parametrize(
    ("faults", "is_same", "code"),
    [
        ([{**LOST, "when": "after"}], False, 0),
        ([{**LOST, "when": "before"}], True, 3),
        ([{**LOST, "when": "after"}, HIDDEN], False, 3),
    ],
)
def test_a_lost_answer_of_a_reset_is_looked_up(
    faults: Any, *, is_same: bool, code: int, emulator: RunningEmulator, tmp_path: Path
) -> None:
    before = token(emulator)
    emulator.admin("PUT", "faults", faults)
    ended = reset(emulator, workspace(tmp_path), "--reveal")
    emulator.admin("PUT", "faults", [])
    assert emulator.writes() == [("PATCH", "reset_token")]
    assert ended.code == code
    assert (token(emulator) == before) is is_same
    if code == 0:
        assert token(emulator) in ended.out
    else:
        errors = " ".join(ended.err.split())
        assert "outcome unknown" in errors
        assert "read the token before you try again: reconciler projects show --reveal 1" in errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show",), "projects show requires NAME"),
        (("reset-token",), "projects reset-token requires NAME"),
        (("list", "--reveal"), "--reveal is not an option of projects list"),
        (("show", "web", "--auto-approve"), "--auto-approve is not an option of projects show"),
        (("show", "we"), "nothing matches 'we'"),
        (("show", "*"), "matches 2 resources"),
        (("reset-token", "web"), "no terminal to ask for approval"),
    ],
)
def test_bad_usage_sends_nothing(
    emulator: RunningEmulator, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    folder = workspace(tmp_path)
    emulator.call("POST", f"/api/organizations/{emulator.organization}/projects/", {"name": "B"})
    emulator.clear_requests()
    ended = ran(emulator, folder, *words)
    assert (ended.code, message in ended.err, emulator.writes()) == (64, True, []), ended.err


@pytest.mark.parametrize(("typed", "code"), [(NAME, 0), ("web", 1)])
def test_a_reset_asks_first(
    emulator: RunningEmulator, tmp_path: Path, typed: str, code: int
) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "reconciler", "projects", "reset-token", "web"]
    with os.fdopen(ours, "wb", buffering=0) as terminal:
        process = subprocess.Popen(
            [*command, "-C", str(workspace(tmp_path))],
            env={**os.environ, **emulator.environ()},
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.close(theirs)
        terminal.write(f"{typed}\n".encode())
        _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == code, errors
    assert b"Type the name of the project" in errors
    assert emulator.writes() == ([("PATCH", "reset_token")] if code == 0 else [])
