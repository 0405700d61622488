"""How many calls reading takes, counted by the service."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import reconciler, write
from tests.support.emulator import start_emulator


def _export(number: int) -> dict[str, object]:
    config = {"bucket_name": "acme", "region": "eu", "prefix": f"{number}/"}
    return {
        "name": f"Export {number}",
        "interval": "hour",
        "destination": {"type": "S3", "config": config},
    }


def test_reading_a_thousand_exports_needs_at_most_twelve_lists(tmp_path: Path) -> None:
    projects = [
        {"name": f"P{n}", "batch_exports": [_export(n * 50 + i) for i in range(50)]}
        for n in range(20)
    ]
    seed = tmp_path / "seed.json"
    seed.write_text(
        json.dumps(
            {
                "organizations": [{"id": "org", "name": "Big", "projects": projects}],
                "keys": [{"value": "phx_big", "scopes": ["*"]}],
            }
        )
    )
    declared = {
        "projects": {f"p{n}": {"name": f"P{n}"} for n in range(20)},
        "batch_exports": {f"e{n}": {**_export(n), "project": f"p{n // 50}"} for n in range(1000)},
    }
    workspace = write(
        tmp_path / "workspace",
        {"reconciler.yaml": "version: 1\n", "all.yaml": json.dumps(declared)},
    )
    with start_emulator(seed=seed) as running:
        ran = reconciler("plan", "-C", workspace, environ=running.environ())
        lists = [
            request
            for request in running.requests()
            if request["path"].rstrip("/").endswith(("projects", "batch_exports"))
        ]
    assert ran.out.endswith("Plan: 0 to create, 0 to update, 0 to delete. 1020 unchanged.\n")
    assert len(lists) <= 1 + 10 + 1
