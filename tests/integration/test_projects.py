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
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.limits import TIMEOUT
from tests.support.simulated import no_op_export

NAME = "Default project"


def workspace(folder: Path, name: str = NAME) -> Path:
    files = {"projects": {"web": {"name": name}, "shop": {"name": "Shop"}}}
    return write(folder, {"reconciler.yaml": "version: 1\n", "web.yaml": json.dumps(files)})


def token(emulator: RunningEmulator) -> str:
    path = f"/api/organizations/{emulator.organization}/projects/1/"
    return str(emulator.call("GET", path).json()["api_token"])


def reset(emulator: RunningEmulator, folder: Path, *options: str | Path) -> Any:
    words = ("projects", "reset-token", "web", "-C", folder, "--auto-approve", *options)
    return reconciler(*words, environ=emulator.environ())


def test_the_list_of_all_projects(emulator: RunningEmulator, tmp_path: Path) -> None:
    path = f"/api/organizations/{emulator.organization}/projects/"
    emulator.call("POST", path, {"name": "Tab\there", "timezone": "Europe/Berlin"})
    exports = f"/api/projects/{emulator.project_id}/batch_exports/"
    emulator.call("POST", exports, no_op_export("Lake"))
    words = ("projects", "list", "-C", workspace(tmp_path))
    shown = reconciler(*words, environ=emulator.environ())
    assert shown.code == 0
    rows = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert "1 Default project 1 UTC project.web" in rows
    assert "2 Tab\\there 0 Europe/Berlin unmanaged" in rows
    assert "Do not exist yet: project.shop" in rows
    assert rows[-1] == "2 projects, 1 unmanaged."
    listing = json.loads(reconciler(*words, "--format", "json", environ=emulator.environ()).out)
    assert [line["exports"] for line in listing["projects"]] == [0, 1]
    assert listing["missing"] == ["project.shop"]
    one = reconciler(*words[:2], "web", *words[2:], environ=emulator.environ())
    assert one.out.endswith("1 project.\n")


def test_show_hides_the_token(emulator: RunningEmulator, tmp_path: Path) -> None:
    words = ("projects", "show", "web", "-C", workspace(tmp_path))
    secret = token(emulator)
    shown = reconciler(*words, "--debug", environ=emulator.environ())
    assert shown.code == 0
    assert f'project.web "{NAME}" (id 1)' in shown.out
    assert f"{emulator.base_url}/project/1/settings/project-details" in shown.out
    assert secret not in shown.out + shown.err
    fields = json.loads(reconciler(*words, "--format=json", environ=emulator.environ()).out)
    assert fields["fields"]["api_token"] == "***"
    assert fields["fields"]["timezone"] == "UTC"
    revealed = reconciler(*words, "--reveal", environ=emulator.environ())
    assert secret in revealed.out


@pytest.mark.parametrize("dialect", ["2025", "2026"])
def test_what_is_refused_to_keys(dialect: str, service_of: StartService, tmp_path: Path) -> None:
    """A server whose dialect is known, because there is an export, gets no request."""
    running = service_of(None, "--dialect", dialect)
    folder = workspace(tmp_path)
    shown = reconciler("projects", "activity", "web", "-C", folder, environ=running.environ())
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
    ran = reset(emulator, workspace(tmp_path), "--reveal")
    emulator.admin("PUT", "faults", [])
    assert emulator.writes() == [("PATCH", "reset_token")]
    assert ran.code == code
    assert (token(emulator) == before) is is_same
    if code == 0:
        assert token(emulator) in ran.out
    else:
        errors = " ".join(ran.err.split())
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
    ran = reconciler("projects", *words, "-C", folder, environ=emulator.environ())
    assert ran.code == 64, ran.err
    assert message in ran.err
    assert emulator.writes() == []


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
