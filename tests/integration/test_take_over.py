"""Exports of posthog-definitions are taken over as docs/other-tools.md says."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.conftest import ROOT, StartService
from tests.support.importing import new_workspace, run_import, run_plan

TABLE = {"database": "d", "warehouse": "w", "schema": "s", "table_name": "t"}
LOGIN = {"account": "a", "user": "u", "password": "secret-of-snowflake"}
PAGE = (ROOT / "docs/other-tools.md").read_text(encoding="utf-8")
(WORDS,) = re.findall("^reconciler import '(.*)'$", PAGE, re.MULTILINE)


def test_ecosystem_10_an_export_is_taken_over_by_name(
    service_of: StartService, tmp_path: Path
) -> None:
    export = {
        "name": "events_to_lake <!-- iac:batch-exports:events_to_lake iac:hash:abc123 -->",
        "interval": "hour",
        "model": "events",
        "destination": {"type": "Snowflake", "config": {**TABLE, **LOGIN}},
    }
    project = {"id": 1, "name": "Web", "batch_exports": [export]}
    service = service_of(
        {"organizations": [{"name": "Acme", "projects": [project]}]}, "--dialect", "2025"
    )
    folder = new_workspace(tmp_path)
    assert run_import(folder, service, WORDS).code == 0
    (file,) = folder.glob("projects/*.yaml")
    text = file.read_text()
    assert "iac:batch-exports:events_to_lake" in text
    assert "secret-of" not in text
    (before,) = service.state()["projects"][0]["batch_exports"]
    environ = dict.fromkeys(re.findall(r"\$\{secret:env:(\w+)\}", text), "x")
    assert run_plan(folder, service, **environ).code == 0

    # Without the marker: renamed live and in the file at the same time.
    path = service.path_of(before["name"])
    service.call("PATCH", path, {"name": "events_to_lake"}).raise_for_status()
    file.write_text(re.sub(r" <!-- iac:.*? -->", "", text))
    renamed = run_plan(folder, service, "--format", "json", **environ)
    assert json.loads(renamed.out)["summary"]["update"] == 0, renamed.err
    (after,) = service.state()["projects"][0]["batch_exports"]
    assert after["id"] == before["id"]
