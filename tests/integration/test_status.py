"""`status` of a service whose time is moved: states, options, exit codes and files."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from reconciler.commands.status.report import ExportStatus, State, StatusReport
from reconciler.commands.status.state import status
from reconciler.commands.workspace import Reported, Workspace
from reconciler.errors import BadUsage
from reconciler.model.public import as_json
from reconciler.model.schemas import schema
from reconciler.render.options import RenderOptions
from tests.conftest import LONG, StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import DIALECTS, RunningEmulator
from tests.support.limits import TIMEOUT
from tests.support.reports import written
from tests.support.simulated import Simulated
from tests.support.simulated import no_op_export as export

FILES = {"reconciler.yaml": "version: 1\n"}
START = "2100-06-10T00:02:00Z"
"""A moment that no clock has reached: the schedules of a seed begin at the real time."""
END = datetime(2100, 6, 15, 0, 30, tzinfo=UTC)
"""The moment of `troubled`."""


WEB = [export(name) for name in ("Orders", "Lake", "Sessions", "Fine")]
WEB.insert(3, export("Later", start_at="2200-01-01T00:00:00Z"))
BLOG = [export("Daily", "day", timezone="Europe/Berlin")]
PROJECTS = [
    {"id": 1, "name": "Web shop", "batch_exports": WEB},
    {"id": 2, "name": "Blog", "batch_exports": BLOG},
]
ORGANIZATION = {"id": "4dc8564d-bd82-1065-2f40-97f7c50f67cf", "name": "Acme"}
SEED: dict[str, Any] = {
    "organizations": [{**ORGANIZATION, "projects": PROJECTS}],
    "keys": [{"value": "phx_admin", "scopes": ["*"]}],
}


def born(moment: str, *exports: dict[str, Any]) -> dict[str, Any]:
    """Return a seed with other exports, or those of SEED, that were created at a moment."""
    seed = deepcopy(SEED)
    projects = seed["organizations"][0]["projects"]
    if exports:
        projects[:] = [{"id": 1, "name": "Web shop", "batch_exports": exports}]
    for project in projects:
        project["batch_exports"] = [
            {"created_at": moment, **item} for item in project["batch_exports"]
        ]
    return seed


NEW = born(START)
"""A seed in which nothing has run before START."""


def workspace(folder: Path, **exports: dict[str, Any]) -> Path:
    files = {"projects": {"web": {"name": "Web shop"}}, "batch_exports": exports}
    return write(folder, {**FILES, "a.yaml": json.dumps(files)})


def read(
    running: RunningEmulator,
    folder: Path,
    *names: str,
    parents: Sequence[str] = (),
    at: datetime | None = None,
) -> Reported[StatusReport]:
    """Return the states at a moment, or at the time of the service, which goes on."""
    world = Simulated(running, Workspace(folder), [])
    now = world.now if at is None else lambda: at

    async def states(workspace: Workspace) -> Reported[StatusReport]:
        runtime = replace(workspace.runtime, now=now)
        return await status(replace(workspace, runtime=runtime), names, projects=parents)

    return world.run(states)


def by_name(result: Reported[StatusReport]) -> dict[str, ExportStatus]:
    return {export.name: export for export in result.report.exports}


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
def test_each_state_is_exactly_as_it_is_after_simulated_days(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    running = service_of(NEW, "--dialect", dialect)
    troubled(running)
    folder = workspace(tmp_path, orders={"project": {"id": 1}, **export("Orders")})
    result = read(running, folder, at=END)
    exports = by_name(result)
    assert {name: export.state for name, export in exports.items()} == {
        "Orders": State.FAILING,
        "Lake": State.LAGGING,
        "Sessions": State.PAUSED,
        "Later": State.NEVER_RUN,
        "Daily": State.OK,
        "Fine": State.OK,
    }
    worst = [export.name for export in result.report.exports][:4]
    assert worst == ["Orders", "Lake", "Sessions", "Later"]
    assert exports["Orders"].failures == 6
    assert exports["Orders"].lag == timedelta(hours=5, minutes=30)
    assert exports["Lake"].lag == timedelta(hours=2, minutes=30)
    assert exports["Sessions"].missed == 72
    assert exports["Fine"].rows_a_day == 24_000
    assert exports["Fine"].next_run == datetime(2100, 6, 15, 1, tzinfo=UTC)
    lines = written("status", "text", result.report).splitlines()
    assert lines[3].startswith("✗ batch_export.orders  Web shop  00:00 (")
    assert "Failed ×6  5 h 30 min  24 k" in lines[3]
    assert lines[4].strip() == "access denied to bucket acme-orders"
    assert "✓ 2 exports are ok (list: --all)" in lines
    counts = "1 failing, 1 lagging, 1 paused, 1 never run, 2 ok; 5 unmanaged (in quotes)."
    hint = ["hint: list what is missing:", "  reconciler gaps"]
    assert lines[-3:] == [f"6 exports: {counts}", *hint]


def test_m2_a_pause_by_the_service_is_a_failure_unless_the_files_declare_it(
    service_of: StartService, tmp_path: Path
) -> None:
    running = service_of(NEW, "--dialect", "2026")
    running.admin("POST", "clock", {"set": START})
    running.admin("PUT", "outcomes", [outcome("Orders", "Failed", error="no such bucket")])
    running.advance(hours=5)
    orders = by_name(read(running, workspace(tmp_path)))["Orders"]
    assert (orders.state, orders.paused_by_service) == (State.FAILING, True)
    text = "paused by the service after 3 failures: no such bucket"
    assert orders.notes[0].message == text
    words = ("import", "-C", tmp_path, "--project", "1", "Orders")
    imported = reconciler(*words, environ=running.environ())
    text = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.yaml"))
    assert ("Orders" in text, "paused" in text) == (True, False), imported.err
    assert "the service may have paused it after failures" in imported.out + imported.err
    files = workspace(
        tmp_path / "declared", orders={"project": {"id": 1}, **export("Orders"), "paused": True}
    )
    assert by_name(read(running, files))["Orders"].state is State.PAUSED


def test_a_change_of_daylight_saving_is_no_lag(service_of: StartService, tmp_path: Path) -> None:
    """In Berlin, 28 March 2100 has 23 hours: its interval ends at 22:00 UTC."""
    daily = export("Daily", "day", timezone="Europe/Berlin")
    running = service_of(born("2100-03-25T12:00:00Z", daily), "--dialect", "2026")
    running.admin("POST", "clock", {"set": "2100-03-25T12:00:00Z"})
    failed = {"match": {"name": "Daily", "interval_end": "2100-03-28T22:00:00Z"}}
    rules = [{**failed, "status": "Failed", "error": "timeout"}, outcome("Daily", "Completed")]
    running.admin("PUT", "outcomes", rules)
    running.admin("POST", "clock", {"set": "2100-03-28T21:30:00Z"})
    folder = workspace(tmp_path)
    before = datetime(2100, 3, 28, 21, 59, tzinfo=UTC)
    assert by_name(read(running, folder, at=before))["Daily"].state is State.OK
    running.admin("POST", "clock", {"set": "2100-03-29T10:00:00Z"})
    after = datetime(2100, 3, 29, 10, tzinfo=UTC)
    status_of_day = by_name(read(running, folder, at=after))["Daily"]
    assert (status_of_day.state, status_of_day.failures) == (State.FAILING, 1)
    assert status_of_day.lag == timedelta(hours=12)
    assert status_of_day.next_run == datetime(2100, 3, 29, 22, tzinfo=UTC)


def test_trap_15_53_weekly_exports_of_2025_never_run(
    service_of: StartService, tmp_path: Path
) -> None:
    running = service_of(born(START, export("Weekly", "week")), "--dialect", "2025")
    running.admin("POST", "clock", {"set": START})
    running.advance(days=20)
    weekly = by_name(read(running, write(tmp_path, FILES)))["Weekly"]
    assert weekly.state is State.UNKNOWN
    assert "never runs exports with interval 'week'" in weekly.notes[0].message


def test_an_export_that_a_plan_would_change_is_marked(
    service_of: StartService, tmp_path: Path
) -> None:
    running = service_of(SEED, "--dialect", "interface")
    folder = workspace(
        tmp_path,
        orders={"project": "web", **export("Orders", "day")},
        lake={"project": "web", **export("Lake")},
        new={"project": "web", **export("New")},
    )
    result = read(running, folder)
    exports = by_name(result)
    assert (exports["Orders"].differs, exports["Lake"].differs) == (True, False)
    assert exports["Fine"].differs is None
    assert not exports["Fine"].managed
    assert list(map(str, result.report.missing)) == ["batch_export.new"]


def test_exports_are_selected_by_name_and_by_the_names_of_projects(
    service_of: StartService, tmp_path: Path
) -> None:
    running = service_of(SEED, "--dialect", "interface")
    folder = workspace(tmp_path, orders={"project": "web", **export("Orders")})
    assert set(by_name(read(running, folder, "batch_export.orders", "La*"))) == {
        *("Orders", "Lake", "Later")
    }
    for text in ("Blog", "2"):
        assert set(by_name(read(running, folder, parents=[text]))) == {"Daily"}
    for text in ("project.web", "web", "Web*"):
        assert len(by_name(read(running, folder, parents=[text]))) == 5
    for names, parents in ((["Nope"], []), ([], ["nope"])):
        with pytest.raises(BadUsage, match="nothing matches"):
            read(running, folder, *names, parents=parents)


def test_secrets_are_masked_in_errors_and_names(service_of: StartService, tmp_path: Path) -> None:
    running = service_of(NEW, "--dialect", "interface")
    running.admin("POST", "clock", {"set": START})
    denied = outcome("Orders", "Failed", error="phx_admin is denied")
    running.admin("PUT", "outcomes", [denied])
    running.advance(hours=2)
    result = read(running, workspace(tmp_path))
    assert "phx_admin" not in as_json(result.report)
    assert "is denied" in as_json(result.report)


def test_the_page_of_an_export_is_linked(service_of: StartService, tmp_path: Path) -> None:
    running = service_of(SEED, "--dialect", "interface")
    result = read(running, workspace(tmp_path), "Lake")
    live_id = running.exports()["Lake"]["id"]
    page = f"{running.base_url}/project/1/pipeline/batch-exports/{live_id}"
    assert result.report.exports[0].page == page
    text = written("status", "text", result.report, RenderOptions(links=True, verbose=True))
    assert f"      {page}\n" in text


def test_many_exports_take_only_the_calls_of_their_list(
    service_of: StartService, tmp_path: Path
) -> None:
    count, most = (5_000, 51) if LONG else (300, 4)
    running = service_of(born(START, *(export(f"Export {number}") for number in range(count))))
    running.admin("POST", "clock", {"set": START})
    running.advance(hours=3)
    running.clear_requests()
    result = read(running, write(tmp_path, FILES))
    assert len(result.report.exports) == count
    assert all(len(export.runs) == 3 for export in result.report.exports)
    assert len(running.requests()) == result.calls <= most


# The command


@pytest.fixture
def running(service_of: StartService) -> RunningEmulator:
    """Return a service whose exports are 30 days old and have not run; one starts later.

    It is an hour behind, so that no interval ends.
    """
    service = service_of(SEED, "--dialect", "interface")
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
        (("Lake", "--fail-on", "paused"), 2),
        (("Fine", "--fail-on", "paused"), 0),
        (("--project", "Blog", "--fail-on", "paused"), 0),
    ],
)
def test_a_selected_export_in_a_state_of_fail_on_exits_with_2(
    words: tuple[str, ...], code: int, running: RunningEmulator, tmp_path: Path
) -> None:
    running.call("POST", f"/api/projects/1/batch_exports/{running.exports()['Lake']['id']}/pause/")
    ended = ran(running, tmp_path, *words)
    assert ended.code == code, ended.err
    assert "API calls" in ended.err


def test_an_unknown_state_is_a_usage_error(tmp_path: Path) -> None:
    ended = reconciler("status", "-C", write(tmp_path, FILES), "--fail-on", "failed")
    assert ended.code == 64
    assert "unknown state 'failed' (--fail-on)" in ended.err
    assert "failing" in ended.err


def test_the_json_matches_its_schema(service_of: StartService, tmp_path: Path) -> None:
    running = service_of(NEW, "--dialect", "interface")
    troubled(running)
    shown = json.loads(ran(running, tmp_path, "--format", "json").out)
    form = schema("status")
    assert form is not None
    assert not [error.message for error in Draft202012Validator(form).iter_errors(shown)]
    assert len(shown["exports"]) == sum(shown["counts"].values()) == 6


def test_the_page_is_written_for_its_owner_only(running: RunningEmulator, tmp_path: Path) -> None:
    page = tmp_path / "status.html"
    ended = ran(running, tmp_path, "--html", page)
    assert ended.code == 0, ended.err
    assert "6 exports: 5 lagging, 1 never run" in ended.out
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


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
