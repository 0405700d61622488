"""No perpetual diff of values that a service stores in another form, or does not show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.fields import INTEGRATIONS


@pytest.fixture
def running(dialect: str, service_of: StartService) -> RunningEmulator:
    kinds = enumerate(INTEGRATIONS.values(), start=1)
    web = {"id": 1, "name": "Web", "dashboards": [5, 6]}
    seed = {
        "organizations": [{"id": "org", "name": "O", "projects": [web]}],
        "keys": [{"value": "phx_key"}],
        "integrations": [{"id": number, "project": 1, "kind": kind} for number, kind in kinds],
    }
    return service_of(seed, "--dialect", dialect)


@pytest.mark.parametrize("dialect", ["2026"])
def test_an_export_that_lists_hide_is_created_once(
    dialect: str, running: RunningEmulator, tmp_path: Path
) -> None:
    """Lists hide Workflows exports: every plan would create another one."""
    destination = {"type": "Workflows", "config": {"hog_function_id": "a"}}
    body = {"name": "Flow", "interval": "hour", "destination": destination}
    files = {
        "reconciler.yaml": "version: 1\n",
        "all.yaml": json.dumps({"batch_exports": {"flow": {**body, "project": {"id": 1}}}}),
    }
    folder = write(tmp_path / "workspace", files)
    refused = reconciler("apply", "-C", folder, "--auto-approve", environ=running.environ())
    assert refused.code == 5
    assert "pin it here with `id:`" in refused.out
    made = running.call("POST", "/api/projects/1/batch_exports/", body).json()["id"]
    pinned = {"batch_exports": {"flow": {**body, "project": {"id": 1}, "id": made}}}
    write(folder, {"all.yaml": json.dumps(pinned)})
    plan = reconciler("plan", "-C", folder, environ=running.environ())
    assert "No changes. Live state matches the configuration (1 resource; 1 unmanaged" in plan.out


@pytest.mark.parametrize("dialect", ["interface", "2025", "2026"])
def test_null_of_a_field_that_new_projects_get_a_value_of(
    dialect: str, running: RunningEmulator, tmp_path: Path
) -> None:
    """Without them, servers of 2026 set a dashboard, and a setting of their own."""
    new = {"name": "New", "extra_settings": None}
    if dialect != "2025":
        # It crashes at null.
        new["primary_dashboard"] = None
    files = {
        "reconciler.yaml": "version: 1\n",
        "all.yaml": json.dumps({"projects": {"new": new}}),
    }
    folder = write(tmp_path / "workspace", files)
    applied = reconciler("apply", "-C", folder, "--auto-approve", environ=running.environ())
    assert applied.code == 0, applied.err
    again = reconciler("plan", "-C", folder, "--detailed-exitcode", environ=running.environ())
    assert again.code == 0, again.out


@pytest.mark.parametrize("dialect", ["interface", "2025", "2026"])
def test_whitespace_around_items_of_lists_is_no_change(
    dialect: str, running: RunningEmulator, tmp_path: Path
) -> None:
    """A block of YAML or a file ends with a line break; the server stores the items trimmed."""
    names = ("app_urls", "recording_domains", "live_events_columns")
    lists = {name: [" https://a ", "b\n"] for name in (*names, "person_display_name_properties")}
    files = {
        "reconciler.yaml": "version: 1\n",
        "all.yaml": json.dumps({"projects": {"new": {"name": "New", **lists}}}),
    }
    folder = write(tmp_path / "workspace", files)
    applied = reconciler("apply", "-C", folder, "--auto-approve", environ=running.environ())
    assert applied.code == 0, applied.err
    again = reconciler("plan", "-C", folder, "--detailed-exitcode", environ=running.environ())
    assert again.code == 0, again.out


@pytest.mark.parametrize("dialect", ["2026"])
def test_i13_a_former_name_of_a_time_zone_is_no_change(
    dialect: str, running: RunningEmulator, tmp_path: Path
) -> None:
    """I13: Asia/Calcutta and Asia/Kolkata were a change, with `schedule-moved`."""
    environ = running.environ()

    def planned(zone: str, command: str = "plan") -> str:
        export = {"name": "Daily", "interval": "day", "timezone": zone, "project": "web"}
        export["destination"] = {"type": "NoOp", "config": {}}
        web = {"name": "Web", "timezone": zone}
        files = {"projects": {"web": web}, "batch_exports": {"daily": export}}
        write(tmp_path, {"reconciler.yaml": "version: 1\n", "all.yaml": json.dumps(files)})
        options = ["--auto-approve"] if command == "apply" else []
        ran = reconciler(command, "-C", tmp_path, *options, environ=environ)
        assert ran.code == 0, ran.err
        return ran.out

    planned("Asia/Calcutta", "apply")
    assert running.exports()["Daily"]["timezone"] == "Asia/Calcutta"
    assert "No changes" in planned("Asia/Kolkata")
    moved = planned("Europe/Kiev")
    assert moved.count('"Asia/Calcutta" -> "Europe/Kiev"') == 2, moved
    assert "schedule-moved" in moved
