"""The command line as a process: entry points, encodings, and the same results as in-process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.version import __version__
from tests.support.cli import Ran, reconciler, reconciler_process, write
from tests.support.emulator import RunningEmulator
from tests.support.limits import TIMEOUT

FILES = {
    "reconciler.yaml": "version: 1\n",
    "lake.yaml": """\
projects:
  web: {name: Store 日本}
batch_exports:
  lake:
    project: web
    name: Lake
    interval: hour
    destination: {type: NoOp, config: {}}
""",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write(tmp_path / "workspace", FILES)


@pytest.mark.parametrize(
    "command",
    [[sys.executable, "-m", "reconciler"], [str(Path(sys.executable).parent / "reconciler")]],
    ids=["module", "script"],
)
def test_both_entry_points_start(command: list[str]) -> None:
    ended = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, timeout=TIMEOUT, check=True
    )
    assert ended.stdout == f"reconciler, version {__version__}\n"


def test_a_process_and_a_run_in_process_print_the_same(
    workspace: Path, emulator: RunningEmulator
) -> None:
    arguments = ("plan", "-C", workspace, "--detailed-exitcode")
    environ = {**emulator.environ(), "FORCE_COLOR": "1", "COLUMNS": "60"}
    ran = reconciler_process(*arguments, environ=environ)
    assert ran.code == 2
    assert "Store 日本" in ran.out
    assert untimed(reconciler(*arguments, environ=environ)) == untimed(ran)


def untimed(ran: Ran) -> Ran:
    """Return a result without the estimate of its time."""
    out, count = re.subn(r"(?<=calls, about )[\w ]+(?=\.)", "", ran.out)
    assert count == 1, ran.out
    return replace(ran, out=out)


def test_a_process_and_a_run_in_process_report_the_same_mistakes(workspace: Path) -> None:
    write(workspace, {"lake.yaml": "projects:\n  web: {nam: Web}\n"})
    ran = reconciler_process("plan", "-C", workspace)
    assert ran.code == 1
    assert "unknown field 'nam'" in ran.err
    assert reconciler("plan", "-C", workspace) == ran


def test_output_that_cannot_be_encoded_is_escaped(workspace: Path) -> None:
    environ = {"PYTHONIOENCODING": "latin-1"}
    ran = reconciler_process("show", "web", "-C", workspace, environ=environ)
    assert ran.code == 0, ran.err
    assert r"Store \u65e5\u672c" in ran.out


def test_a_run_in_process_restores_the_state_of_the_process(
    workspace: Path, emulator: RunningEmulator
) -> None:
    def state() -> tuple[object, ...]:
        handlers = (signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM))
        return (dict(os.environ), Path.cwd(), *handlers, sys.argv, sys.stdout, sys.stderr)

    before = state()
    environ = {**emulator.environ(), "RECONCILER_VAR_NAME": "x"}
    assert reconciler("apply", "-C", workspace, "--auto-approve", environ=environ).code == 0
    assert reconciler("plan", "-C", workspace / "none", environ=environ).code == 1
    assert state() == before
    # A variable of one run is unknown to the next.
    write(workspace, {"lake.yaml": "projects: {web: {name: '${env:RECONCILER_VAR_NAME}'}}\n"})
    assert reconciler("validate", "-C", workspace, "-e", "default").code == 1
