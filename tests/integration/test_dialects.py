"""No perpetual diff: every field of both kinds, every destination type, every dialect.

Every field is created, changed and reset; `apply` plans again and fails if a change is left.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartService
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.fields import (
    BY_INTEGRATION,
    EXPORT,
    INLINE,
    INTEGRATIONS,
    NEWER,
    PROJECT,
    QUERIES,
    RETIRED,
    at,
)


def export(
    dialect: str, type_name: str, config: dict[str, list[Any]], stage: int
) -> dict[str, Any]:
    destination: dict[str, Any] = {"type": type_name, "config": at(config, stage)}
    kinds = INTEGRATIONS if dialect == "2026" else {"Databricks": "databricks"}
    if type_name in kinds:
        destination["integration"] = 1 + list(INTEGRATIONS).index(type_name)
    fields = at(EXPORT, stage)
    if dialect == "2026":
        fields["timezone"] = ["Europe/Berlin", "UTC", None][min(stage, 2)]
        fields["offset_hour"] = [None, 5, 0][min(stage, 2)]
        fields["offset_day"] = [None, None, 3][min(stage, 2)]
        fields["model"] = "events"
    else:
        fields["sql_query"] = QUERIES[min(stage, 1)]
    if dialect == "2025":
        fields["filters"] = [{"type": "event", "key": str(stage)}]
    return {
        "name": f"{type_name} {stage}",
        "project": "web",
        "destination": destination,
        "lifecycle": {"renamed_from": [f"{type_name} {stage - 1}"]},
        **fields,
    }


def workspace(dialect: str, stage: int) -> dict[str, Any]:
    types = BY_INTEGRATION if dialect == "2026" else INLINE
    settings = {**PROJECT, **(NEWER if dialect == "2026" else RETIRED)}
    if dialect == "2025":
        # It crashes at null.
        settings["primary_dashboard"] = PROJECT["primary_dashboard"][:2]
    # A dashboard belongs to its project: the files can't name one of a project to be created.
    of_new = {name: values for name, values in settings.items() if name != "primary_dashboard"}
    return {
        "projects": {
            "web": {"name": "Web", **at(settings, stage)},
            "new": {"name": "New", **at(of_new, stage)},
        },
        "batch_exports": {
            name.lower(): export(dialect, name, config, stage) for name, config in types.items()
        },
    }


@pytest.fixture
def running(dialect: str, service_of: StartService) -> RunningEmulator:
    kinds = enumerate(INTEGRATIONS.values(), start=1)
    web = {"id": 1, "name": "Web", "dashboards": PROJECT["primary_dashboard"][:2]}
    seed = {
        "organizations": [{"id": "org", "name": "O", "projects": [web]}],
        "keys": [{"value": "phx_key"}],
        "integrations": [{"id": number, "project": 1, "kind": kind} for number, kind in kinds],
    }
    return service_of(seed, "--dialect", dialect)


@pytest.mark.parametrize("dialect", ["interface", "2025", "2026"])
def test_after_each_change_of_every_field_a_plan_is_empty(
    dialect: str, running: RunningEmulator, tmp_path: Path
) -> None:
    folder = tmp_path / "workspace"
    environ = {**running.environ(), "RECONCILER_SECRET_U": "user-name"}
    environ["RECONCILER_SECRET_P"] = "pass-word"
    for stage in range(3):
        files = {
            "reconciler.yaml": "version: 1\n",
            "all.yaml": json.dumps(workspace(dialect, stage)),
        }
        write(folder, files)
        applied = reconciler("apply", "-C", folder, "--auto-approve", environ=environ)
        assert applied.code == 0, f"stage {stage}: {applied.err}"
        assert "ignored or altered" not in applied.err, f"stage {stage}: {applied.err}"
        again = reconciler("plan", "-C", folder, "--detailed-exitcode", environ=environ)
        assert again.code == 0, f"stage {stage}: {again.out}"
    assert "pass-word" not in json.dumps(running.state())


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
