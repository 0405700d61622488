"""I10: a command that sent a change never exits with 1, and one that exits with 1 sent none."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reconciler.commands.projects import reset_token
from reconciler.commands.workspace import Runtime, Workspace
from reconciler.errors import ExitCode, ServiceError
from tests.conftest import ROOT, StartService
from tests.support.cli import reconciler, write
from tests.support.devices import NEEDS_FULL_DISK
from tests.support.emulator import RunningEmulator
from tests.support.git import Git

FILES = {
    "reconciler.yaml": "version: 1\n",
    "lake.yaml": """\
batch_exports:
  lake:
    project: {id: 1}
    name: Lake
    interval: day
    paused: false
    destination: {type: NoOp, config: {}}
""",
}
CANCEL = ("backfill", "lake", "--cancel")
BACKFILL = ("backfill", "lake", "--auto-approve", "--from")
PAUSE = ("pause", "lake", "--auto-approve")
RESET = ("projects", "reset-token", "id:1", "--auto-approve")


def refused(method: str, path: str, **which: int) -> dict[str, Any]:
    return {"match": {"method": method, "path": path, **which}, "fault": "error", "status": 400}


def running_backfills(running: RunningEmulator, folder: Path) -> RunningEmulator:
    """Create the export and, on a server that lists them, two backfills that run."""
    environ = running.environ()
    assert reconciler("apply", "-C", folder, "--auto-approve", environ=environ).code == 0
    for month in ("01", "02"):
        words = (*BACKFILL, f"2026-{month}-01", "--to", f"2026-{month}-02", "-C", folder)
        assert reconciler(*words, environ=environ).code == 0
    running.clear_requests()
    return running


@pytest.mark.parametrize(
    ("words", "fault", "code"),
    [
        (CANCEL, refused("GET", "*/backfills/"), 1),
        (CANCEL, refused("POST", "*/cancel/"), 3),
        (CANCEL, refused("POST", "*/cancel/", **{"from": 2}), 3),
        ((*BACKFILL, "2026-03-01", "--to", "2026-03-02"), refused("POST", "*/backfills/"), 3),
        (PAUSE, refused("GET", "*/batch_exports/"), 1),
        (PAUSE, refused("POST", "*/pause/"), 3),
        (RESET, refused("GET", "*/projects/1/"), 1),
        (RESET, refused("PATCH", "*/reset_token/"), 3),
        (RESET, {"match": {"path": "*/reset_token/"}, "fault": "drop", "when": "before"}, 3),
    ],
)
def test_i10_exit_code_1_is_never_that_of_a_command_that_sent_a_change(
    words: tuple[str, ...],
    fault: Any,
    code: int,
    tmp_path: Path,
    service_of: StartService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(write(tmp_path, FILES))
    dialect = "interface" if words[0] == "projects" else "2026"
    running = running_backfills(service_of(None, "--dialect", dialect), tmp_path)
    running.admin("PUT", "faults", [fault])
    ran = reconciler(*words, environ=running.environ())
    assert (ran.code, bool(running.writes())) == (code, code == 3), ran.err


@pytest.mark.parametrize(
    ("fault", "code"),
    [(refused("GET", "*/projects/1/"), 1), (refused("PATCH", "*/reset_token/"), 3)],
)
def test_i10_an_error_of_the_api_has_the_code_of_the_command(
    fault: Any, code: int, tmp_path: Path, emulator: RunningEmulator
) -> None:
    given = Workspace(write(tmp_path, FILES), runtime=Runtime(emulator.environ()))

    async def yes(_: object) -> bool:
        return True

    emulator.admin("PUT", "faults", [fault])
    with pytest.raises(ServiceError) as raised:
        asyncio.run(reset_token(given, "id:1", approve=yes))
    assert raised.value.exit_code == code


def test_an_inventory_that_cannot_be_written_has_the_code_of_the_log(
    tmp_path: Path, emulator: RunningEmulator
) -> None:
    """What the log says of the end of a run is what the process says."""
    git = Git.init(write(tmp_path / "w", FILES))
    git.commit()
    (git.folder / ".git/refs/reconciler").write_text("in the way")
    log, auto = tmp_path / "log.jsonl", "--auto-approve"
    ran = reconciler("apply", auto, "-C", git.folder, "--log-file", log, environ=emulator.environ())
    ended = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])
    assert (ran.code, ended["exit_code"], ended["verified"]) == (3, 3, True), ran.err
    assert f"error: {ended['unrecorded']}" in ran.err
    assert reconciler("show", log).code == 3


@NEEDS_FULL_DISK
def test_i10_a_cancellation_that_cannot_be_shown(tmp_path: Path, service_of: StartService) -> None:
    folder = write(tmp_path, FILES)
    running = running_backfills(service_of(None, "--dialect", "2026"), folder)
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "reconciler", *CANCEL, "-C", str(folder)],
            env={**os.environ, **running.environ()},
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (ended.returncode, len(running.writes())) == (3, 2), ended.stderr


def test_the_documentation_and_the_help_list_every_exit_code() -> None:
    page = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    table = page.partition("## Exit codes\n")[2].partition("\n###")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == [*ExitCode]
    epilog = " ".join(reconciler("--help").out.partition("Exit codes:")[2].split("\n\n")[0].split())
    assert [int(code) for code in re.findall(r"(\d+) ", epilog)] == [*ExitCode]
