"""Exports of posthog-definitions are taken over as docs/other-tools.md says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT, StartService
from tests.support.cli import reconciler, write

PLACE = {"bucket_name": "b", "region": "eu-central-1", "prefix": "p/"}
TABLE = {"database": "d", "warehouse": "w", "schema": "s", "table_name": "t"}
LOGIN = {"account": "a", "user": "u", "password": "secret-of-snowflake"}
PAGE = (ROOT / "docs/other-tools.md").read_text(encoding="utf-8")


def marked(key: str) -> str:
    return f"{key} <!-- iac:batch-exports:{key} iac:hash:abc123 -->"


@pytest.mark.parametrize(
    ("type_", "dialect", "config"),
    [("AwsS3", "2026", PLACE), ("Snowflake", "2025", {**TABLE, **LOGIN})],
)
def test_ecosystem_10_an_export_is_taken_over_by_name(
    type_: str,
    dialect: str,
    config: dict[str, str],
    tmp_path: Path,
    service_of: StartService,
) -> None:
    export = {
        "name": marked("events_to_lake"),
        "interval": "hour",
        "model": "events",
        "destination": {"type": type_, "config": config},
    }
    project = {"id": 1, "name": "Web", "batch_exports": [export]}
    organization = {"name": "Acme", "projects": [project]}
    service = service_of({"organizations": [organization]}, "--dialect", dialect)
    folder = write(tmp_path, {"reconciler.yaml": "version: 1\n"})
    environ = service.environ()
    words = next(
        line.split()[1:] for line in PAGE.splitlines() if line.startswith("reconciler import '")
    )
    words = [word.strip("'") for word in words]
    ran = reconciler(*words, "-C", folder, environ=environ)
    assert ran.code in (0, 3), ran.err
    files = "".join(path.read_text() for path in folder.rglob("*.yaml"))
    assert "iac:batch-exports:events_to_lake" in files
    assert "secret-of" not in files
    (before,) = service.state()["projects"][0]["batch_exports"]
    names = re.findall(r"\$\{secret:env:(\w+)\}", files)
    environ |= dict.fromkeys(names, "x")
    plan = reconciler("plan", "-C", folder, "--detailed-exitcode", environ=environ)
    assert plan.code == 0, plan.out + plan.err

    # Without the marker: renamed live and in the file at the same time.
    path = f"/api/projects/1/batch_exports/{before['id']}/"
    service.call("PATCH", path, {"name": "events_to_lake"}).raise_for_status()
    for file in folder.rglob("*.yaml"):
        file.write_text(re.sub(r" <!-- iac:.*? -->", "", file.read_text()))
    renamed = reconciler("plan", "-C", folder, "--format", "json", environ=environ)
    assert renamed.code == 0, renamed.err
    assert json.loads(renamed.out)["summary"]["update"] == 0
    (after,) = service.state()["projects"][0]["batch_exports"]
    assert after["id"] == before["id"]
