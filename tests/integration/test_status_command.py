"""`reconciler status`: options, exit codes, and files."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from reconciler.model.schemas import schema
from tests.conftest import StartService
from tests.integration.test_status import NEW, SEED, troubled
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.limits import TIMEOUT

FILES = {"reconciler.yaml": "version: 1\n"}


@pytest.fixture
def running(service_of: StartService) -> RunningEmulator:
    """Return a service whose exports are 30 days old and have not run; one starts later.

    It is an hour behind, so that no interval ends.
    """
    service = service_of(SEED, "--dialect", "interface")
    service.advance(hours=-1)
    return service


@pytest.mark.parametrize(
    ("states", "code"),
    [("never-run", 2), ("failing, lagging", 2), ("failing,paused,ok", 0), (None, 0)],
)
def test_a_state_of_fail_on_exits_with_2(
    running: RunningEmulator, tmp_path: Path, states: str | None, code: int
) -> None:
    options = () if states is None else ("--fail-on", states)
    environ = running.environ()
    ran = reconciler("status", "-C", write(tmp_path, FILES), *options, environ=environ)
    assert ran.code == code, ran.err
    assert "API calls" in ran.err


def test_fail_on_sees_only_the_selected_exports(running: RunningEmulator, tmp_path: Path) -> None:
    running.call("POST", f"/api/projects/1/batch_exports/{running.exports()['Lake']['id']}/pause/")
    folder, environ = write(tmp_path, FILES), running.environ()

    def code(*names: str) -> int:
        words = ("status", *names, "-C", folder, "--fail-on", "paused")
        return reconciler(*words, environ=environ).code

    assert (code(), code("Lake"), code("Fine"), code("--project", "Blog")) == (2, 2, 0, 0)


def test_an_unknown_state_is_a_usage_error(tmp_path: Path) -> None:
    ran = reconciler("status", "-C", write(tmp_path, FILES), "--fail-on", "failed")
    assert ran.code == 64
    assert "unknown state 'failed' (--fail-on)" in ran.err
    assert "failing" in ran.err


def test_the_json_matches_its_schema(service_of: StartService, tmp_path: Path) -> None:
    running = service_of(NEW, "--dialect", "interface")
    troubled(running)
    words = ("status", "-C", write(tmp_path, FILES), "--format", "json")
    ran = reconciler(*words, environ=running.environ())
    shown = json.loads(ran.out)
    form = schema("status")
    assert form is not None
    assert not [error.message for error in Draft202012Validator(form).iter_errors(shown)]
    assert len(shown["exports"]) == 6
    assert sum(shown["counts"].values()) == 6


def test_the_page_is_written_for_its_owner_only(running: RunningEmulator, tmp_path: Path) -> None:
    page = tmp_path / "status.html"
    words = ("status", "-C", write(tmp_path, FILES), "--html", page)
    ran = reconciler(*words, environ=running.environ())
    assert ran.code == 0, ran.err
    assert "6 exports: 5 lagging, 1 never run" in ran.out
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_apply_p3_warnings_are_before_the_table(running: RunningEmulator, tmp_path: Path) -> None:
    export = (
        "batch_exports: {new: {project: {id: 1}, name: New, interval: every 15 minutes,"
        " destination: {type: NoOp, config: {}}}}\n"
    )
    folder = write(tmp_path, {**FILES, "a.yaml": export})
    ran = subprocess.run(
        [sys.executable, "-m", "reconciler", "status", "-C", str(folder)],
        env={**os.environ, **running.environ(), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=True,
    )
    assert 0 <= ran.stdout.find("[feature-flag]") < ran.stdout.find("Environment default")
