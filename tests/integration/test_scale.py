"""How many calls a plan takes, counted by the service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LONG, StartService
from tests.support.cli import reconciler, write


def _export(number: int) -> dict[str, object]:
    config = {"bucket_name": "acme", "region": "eu", "prefix": f"{number}/"}
    return {
        "name": f"Export {number}",
        "interval": "hour",
        "destination": {"type": "S3", "config": config},
    }


def _calls(
    service_of: StartService, folder: Path, projects: int, exports: int, **fields: Any
) -> tuple[str, int]:
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
    running = service_of(seed)
    files = {"reconciler.yaml": "version: 1\n", "all.yaml": json.dumps(declared)}
    ran = reconciler("plan", "-C", write(folder, files), environ=running.environ())
    calls = len(running.requests())
    assert f"{calls} API calls\n" in ran.err
    return ran.out, calls


def _unchanged(count: int) -> str:
    return f"No changes. Live state matches the configuration ({count:,} resources).\n"


@pytest.mark.parametrize(
    ("projects", "exports", "fields", "most"),
    [
        (20, 1_000, {}, 12),
        (500, 0, {"timezone": "Europe/Berlin"}, 8),
        # Lists of both kinds, the key, the name of the organization, 20 projects.
        (20, 0, {"surveys_opt_in": True}, 24),
        *([(200, 10_000, {}, 35)] if LONG else []),
    ],
)
def test_a_plan_takes_few_calls(
    projects: int,
    exports: int,
    fields: dict[str, Any],
    most: int,
    service_of: StartService,
    tmp_path: Path,
) -> None:
    out, calls = _calls(service_of, tmp_path, projects, exports, **fields)
    assert out.endswith(_unchanged(projects + exports))
    assert calls == most
