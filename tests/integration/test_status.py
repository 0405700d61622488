"""`status` of a service whose time is moved: states, options, exit codes and files."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.commands.status.report import ExportStatus, State
from reconciler.commands.status.state import status
from reconciler.commands.workspace import Workspace
from reconciler.model.public import as_json
from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.declared import seed
from tests.support.emulator import DIALECTS, RunningEmulator
from tests.support.limits import TIMEOUT
from tests.support.reports import written
from tests.support.simulated import Simulated
from tests.support.simulated import no_op_export as export

FILES = {"reconciler.yaml": "version: 1\n"}
START = "2100-06-10T00:02:00Z"
"""A moment that no clock has reached: the schedules of a seed begin at the real time."""


New = Callable[..., RunningEmulator]
WEB = [export(name) for name in ("Orders", "Lake", "Sessions", "Fine")]
WEB.insert(3, export("Later", start_at="2200-01-01T00:00:00Z"))
BLOG = [export("Daily", "day", timezone="Europe/Berlin")]


def seed_of(web: Sequence[dict[str, Any]], blog: Sequence[dict[str, Any]], **fields: str) -> Any:
    """Return a seed with exports in two projects, each with more fields."""
    own = [[{**fields, **item} for item in project] for project in (web, blog)]
    shop = {"id": 1, "name": "Web shop", "batch_exports": own[0]}
    return seed(shop, {"id": 2, "name": "Blog", "batch_exports": own[1]})


def workspace(folder: Path, **exports: dict[str, Any]) -> Path:
    files = {"projects": {"web": {"name": "Web shop"}}, "batch_exports": exports}
    return write(folder, {**FILES, "a.yaml": json.dumps(files)})


class Read:
    """The states of exports, read by `status` at a moment, or at the time of the service."""

    def __init__(
        self, running: RunningEmulator, folder: Path, *names: str, parent: str = "", at: str = ""
    ) -> None:
        world = Simulated(running, Workspace(folder), [])
        now = (lambda: datetime.fromisoformat(at)) if at else world.now
        projects = [parent] if parent else []
        read = world.run(
            lambda it: status(
                replace(it, runtime=replace(it.runtime, now=now)), names, projects=projects
            )
        )
        self.report, self.calls = read.report, read.calls

    def __getitem__(self, name: str) -> ExportStatus:
        return next(export for export in self.report.exports if export.name == name)

    @property
    def names(self) -> set[str]:
        return {export.name for export in self.report.exports}


@pytest.fixture
def new(service_of: StartService) -> New:
    """Return a function of a dialect and exports: it starts a service where none ran before."""

    def start(dialect: str, *exports: dict[str, Any]) -> RunningEmulator:
        chosen = seed_of(exports or WEB, () if exports else BLOG, created_at=START)
        running = service_of(chosen, "--dialect", dialect)
        running.admin("POST", "clock", {"set": START})
        return running

    return start


def outcome(name: str, ended_as: str, **fields: Any) -> dict[str, Any]:
    return {"match": {"name": name}, "status": ended_as, **fields}


def troubled(running: RunningEmulator) -> None:
    """Let Sessions be paused for 3 days, Orders fail for 6 hours, and Lake not end for 3 hours."""
    fine = [outcome(name, "Completed", records=1000) for name in ("Orders", "Lake", "Fine")]
    rest = [outcome(name, "Completed", records=10) for name in ("Sessions", "Daily")]
    running.admin("PUT", "settings", {"auto_pause": False})
    running.admin("POST", "clock", {"set": START})
    running.admin("PUT", "outcomes", fine + rest)
    running.advance(days=2)
    sessions = running.exports()["Sessions"]["id"]
    running.call("POST", f"/api/projects/1/batch_exports/{sessions}/pause/", {})
    running.advance(days=2, hours=18)
    denied = outcome("Orders", "Failed", error="access denied to bucket acme-orders")
    running.admin("PUT", "outcomes", [denied, *fine, *rest])
    running.advance(hours=3)
    running.admin("PUT", "outcomes", [denied, outcome("Lake", "Running"), *fine, *rest])
    running.advance(hours=3, minutes=28)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_state_is_exact(dialect: str, new: New, tmp_path: Path) -> None:
    running = new(dialect)
    troubled(running)
    folder = workspace(tmp_path, orders={"project": {"id": 1}, **export("Orders")})
    read = Read(running, folder, at="2100-06-15T00:30:00Z")
    assert {name: read[name].state for name in read.names} == {
        "Orders": State.FAILING,
        "Lake": State.LAGGING,
        "Sessions": State.PAUSED,
        "Later": State.NEVER_RUN,
        "Daily": State.OK,
        "Fine": State.OK,
    }
    worst = [export.name for export in read.report.exports][:4]
    assert worst == ["Orders", "Lake", "Sessions", "Later"]
    assert (read["Orders"].failures, read["Orders"].lag) == (6, timedelta(hours=5, minutes=30))
    assert read["Lake"].lag == timedelta(hours=2, minutes=30)
    assert read["Sessions"].missed == 72
    assert read["Fine"].rows_a_day == 24_000
    assert read["Fine"].next_run == datetime(2100, 6, 15, 1, tzinfo=UTC)
    lines = written("status", "text", read.report).splitlines()
    assert lines[3].startswith("✗ batch_export.orders  Web shop  00:00 (")
    assert "Failed ×6  5 h 30 min  24 k" in lines[3]
    assert lines[4].strip() == "access denied to bucket acme-orders"
    assert lines[7].startswith('‖ "Sessions"           Web shop  paused since 2100-06-12  ')
    assert "✓ 2 exports are ok (list: --all)" in lines
    counts = "1 failing, 1 lagging, 1 paused, 1 never run, 2 ok; 5 unmanaged (in quotes)."
    hint = ["hint: list what is missing:", "  reconciler gaps"]
    assert lines[-3:] == [f"6 exports: {counts}", *hint]
    shown = json.loads(as_json(read.report))
    assert len(shown["exports"]) == sum(shown["counts"].values()) == 6


def test_m2_a_pause_by_the_service_is_a_failure(new: New, tmp_path: Path) -> None:
    """M2: unless the files declare it; an import does not."""
    running = new("2026")
    running.admin("PUT", "outcomes", [outcome("Orders", "Failed", error="no such bucket")])
    running.advance(hours=5)
    orders = Read(running, workspace(tmp_path))["Orders"]
    assert (orders.state, orders.paused_by_service) == (State.FAILING, True)
    text = "paused by the service after 3 failures: no such bucket"
    assert orders.notes[0].message == text
    words = ("import", "-C", tmp_path, "--project", "1", "Orders")
    imported = reconciler(*words, environ=running.environ())
    text = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.yaml"))
    assert ("Orders" in text, "paused" in text) == (True, False), imported.err
    assert "the service may have paused it after failures" in imported.out + imported.err
    declared = {"project": {"id": 1}, **export("Orders"), "paused": True}
    files = workspace(tmp_path / "declared", orders=declared)
    assert Read(running, files)["Orders"].state is State.PAUSED


def test_what_a_plan_would_change_is_marked(running: RunningEmulator, tmp_path: Path) -> None:
    folder = workspace(
        tmp_path,
        orders={"project": "web", **export("Orders", "day")},
        lake={"project": "web", **export("Lake")},
        new={"project": "web", **export("New")},
    )
    read = Read(running, folder)
    differs = [read[name].differs for name in ("Orders", "Lake", "Fine")]
    assert (differs, read["Fine"].managed) == ([True, False, None], False)
    assert list(map(str, read.report.missing)) == ["batch_export.new"]


# The command


@pytest.fixture
def running(service_of: StartService) -> RunningEmulator:
    """Return a service whose exports are 30 days old and have not run; one starts later.

    It is an hour behind, so that no interval ends.
    """
    service = service_of(seed_of(WEB, BLOG), "--dialect", "interface")
    service.advance(hours=-1)
    return service


def ran(running: RunningEmulator, folder: Path, *words: str | Path) -> Ran:
    return reconciler("status", *words, "-C", write(folder, FILES), environ=running.environ())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--fail-on", "never-run"), 2),
        (("--fail-on", "failing, lagging"), 2),
        (("--fail-on", "failing,ok"), 0),
        ((), 0),
        (("--fail-on", "paused"), 2),
        (("Fine", "--fail-on", "paused"), 0),
        (("--fail-on", "failed"), 64),
    ],
)
def test_states_of_fail_on_exit_with_2(
    words: tuple[str, ...], code: int, running: RunningEmulator, tmp_path: Path
) -> None:
    lake = running.exports()["Lake"]["id"]
    running.call("POST", f"/api/projects/1/batch_exports/{lake}/pause/")
    ended = ran(running, tmp_path, *words)
    assert ended.code == code, ended.err
    assert ("API calls" in ended.err) is (code != 64)
    error = "unknown state 'failed' (--fail-on)" in ended.err and "failing" in ended.err
    assert error is (code == 64)


def test_the_page_is_written_for_its_owner_only(running: RunningEmulator, tmp_path: Path) -> None:
    page = tmp_path / "status.html"
    ended = ran(running, tmp_path, "--html", page)
    assert ended.code == 0, ended.err
    assert "6 exports: 5 lagging, 1 never run" in ended.out
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert len(json.loads(ran(running, tmp_path, "--format", "json").out)["exports"]) == 6


def test_apply_p3_warnings_are_before_the_table(running: RunningEmulator, tmp_path: Path) -> None:
    new = {"project": {"id": 1}, **export("New", "every 15 minutes")}
    folder = write(tmp_path, {**FILES, "a.yaml": json.dumps({"batch_exports": {"new": new}})})
    shown = subprocess.run(
        [sys.executable, "-m", "reconciler", "status", "-C", str(folder)],
        env={**os.environ, **running.environ(), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=True,
    ).stdout
    assert 0 <= shown.find("[feature-flag]") < shown.find("Environment default")
