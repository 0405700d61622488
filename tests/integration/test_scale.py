"""How many calls a plan takes, counted by the service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LONG
from tests.support.cli import reconciler, write
from tests.support.emulator import start_emulator


def _export(number: int) -> dict[str, object]:
    config = {"bucket_name": "acme", "region": "eu", "prefix": f"{number}/"}
    return {
        "name": f"Export {number}",
        "interval": "hour",
        "destination": {"type": "S3", "config": config},
    }


def _calls(tmp_path: Path, projects: int, exports: int, **fields: Any) -> tuple[str, int]:
    """Return the output and the calls of the plan of a workspace that live state matches."""
    share = exports // projects
    listed = [
        {
            "name": f"P{n}",
            **fields,
            "batch_exports": [_export(n * share + i) for i in range(share)],
        }
        for n in range(projects)
    ]
    seed = {
        "organizations": [{"id": "org", "name": "Big", "projects": listed}],
        "keys": [{"value": "phx_big", "scopes": ["*"]}],
    }
    declared = {
        "projects": {f"p{n}": {"name": f"P{n}", **fields} for n in range(projects)},
        "batch_exports": {
            f"e{n}": {**_export(n), "project": f"p{n // share}"} for n in range(exports)
        },
    }
    file = tmp_path / "seed.json"
    file.write_text(json.dumps(seed))
    files = {"reconciler.yaml": "version: 1\n", "all.yaml": json.dumps(declared)}
    workspace = write(tmp_path / "workspace", files)
    with start_emulator(seed=file) as running:
        ran = reconciler("plan", "-C", workspace, environ=running.environ())
        calls = len(running.requests())
    assert f"{calls} API calls\n" in ran.err
    return ran.out, calls


def _unchanged(count: int) -> str:
    return f"No changes. Live state matches the configuration ({count:,} resources).\n"


def test_a_plan_of_a_thousand_exports_takes_twelve_calls(tmp_path: Path) -> None:
    out, calls = _calls(tmp_path, 20, 1_000)
    assert out.endswith(_unchanged(1_020))
    assert calls <= 12


def test_a_plan_of_500_projects_with_name_and_timezone_takes_ten_calls(tmp_path: Path) -> None:
    out, calls = _calls(tmp_path, 500, 0, timezone="Europe/Berlin")
    assert out.endswith(_unchanged(500))
    assert calls <= 10


def test_a_field_that_no_list_shows_takes_a_call_for_each_project(tmp_path: Path) -> None:
    out, calls = _calls(tmp_path, 20, 0, surveys_opt_in=True)
    assert out.endswith(_unchanged(20))
    assert calls == 24  # Lists of both kinds, the key, the name of the organization, 20 projects.


@pytest.mark.skipif(not LONG, reason="10,000 exports: long profile only")
def test_a_plan_of_10000_exports_takes_35_calls(tmp_path: Path) -> None:
    out, calls = _calls(tmp_path, 200, 10_000)
    assert out.endswith(_unchanged(10_200))
    assert calls <= 35
