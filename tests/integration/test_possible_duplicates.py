"""An export that was renamed in the service is refused everywhere (findings plan I1, I2, I6)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import write
from tests.support.emulator import RunningEmulator
from tests.support.repo import SETTINGS, Repo

RENAMED = "PG (do not touch)"
MARKED = "Marked <!-- iac:batch-exports:events_to_pg iac:hash:abc123 -->"
IMPORT = ("import", "--dry-run", "--format", "json")


def postgres(table: str = "t", **fields: Any) -> dict[str, Any]:
    secret = "${secret:env:RECONCILER_SECRET_ONE}"
    config = {"host": "h", "database": "d", "table_name": table, "user": secret, "password": secret}
    return {"name": "Pg", "destination": {"type": "Postgres", "config": config}, **fields}


@pytest.fixture
def repo(tmp_path: Path, emulator: RunningEmulator) -> Repo:
    """Return a repository whose export is applied."""
    repo = Repo.of(tmp_path, emulator)
    repo.applied(pg=postgres())
    return repo


def test_plan_i1_a_renamed_export_is_refused_in_every_format(repo: Repo) -> None:
    """Without an inventory nothing says that it is the object of the resource."""
    repo.forget()
    repo.call("PATCH", "Pg", {"name": RENAMED})
    repo.running.clear_requests()
    repo.apply(code=5)
    assert repo.running.writes() == []
    for text_format in ("text", "markdown", "html", "json", "github", "sarif"):
        ran = repo.run("plan", "--format", text_format)
        assert ran.code == 5, text_format
        assert "possible-duplicate" in ran.out, text_format
        assert "do not touch" in ran.out, text_format
    (refusal,) = repo.plan(code=5)["refusals"]
    assert [item["name"] for item in refusal["objects"]] == [RENAMED]
    assert "possible-duplicate" in repo.run("doctor", "pg", "--auto-approve").out
    (left,) = json.loads(repo.run(*IMPORT).out)["not_imported"]
    assert "probably batch_export.pg" in left["why"]


@pytest.mark.parametrize(
    ("fields", "actions"),
    [
        ({"lifecycle": {"renamed_from": [RENAMED]}}, (0, 1)),
        ({"name": RENAMED}, (0, 0)),
        ({"lifecycle": {"beside": [RENAMED]}}, (1, 0)),
    ],
)
def test_plan_i1_the_ways_on_lead_on(
    repo: Repo, fields: dict[str, Any], actions: tuple[int, int]
) -> None:
    repo.forget()
    repo.call("PATCH", "Pg", {"name": RENAMED})
    repo.write(pg=postgres(**fields))
    summary = repo.plan()["summary"]
    assert (summary["create"], summary["update"]) == actions
    repo.apply()
    assert repo.run("plan", "--detailed-exitcode").code == 0


def test_plan_i1_a_renamed_project_is_refused(repo: Repo) -> None:
    repo.forget()
    project = repo.running.exports()["Pg"]["team_id"]
    repo.running.call("PATCH", f"/api/projects/{project}/", {"name": "Web (prod)"})
    applied = repo.apply(code=5)
    assert "project.web would be created beside project 'Web (prod)'" in applied.out
    assert "which contains 1 object of its configuration" in " ".join(applied.out.split())
    whole = [left["why"] for left in json.loads(repo.run(*IMPORT).out)["not_imported"]]
    assert len(whole) == 2
    assert all("probably project.web" in why for why in whole)


def test_plan_i2_a_resource_renamed_out_of_ignore_is_refused(repo: Repo) -> None:
    write(repo.folder, {"reconciler.yaml": SETTINGS.replace("}", ", ignore: ['Pg*']}")})
    repo.write(pg=postgres(name="Two"))
    applied = repo.apply(code=5)
    assert "possible-duplicate" in applied.out
    assert "take it out of `policy.ignore`" in applied.out


def test_plan_i6_objects_of_another_tool_are_imported_by_name_only(repo: Repo) -> None:
    project = repo.running.exports()["Pg"]["team_id"]
    body = {**postgres("other"), "name": MARKED, "interval": "hour"}
    body["destination"]["config"] |= {"user": "u", "password": "p"}
    path = f"/api/projects/{project}/batch_exports/"
    repo.running.call("POST", path, body).raise_for_status()
    left = json.loads(repo.run(*IMPORT).out)
    assert "posthog-definitions" in left["not_imported"][0]["why"]
    named = json.loads(repo.run(*IMPORT, "Marked*", "--into", "new.yaml").out)
    assert [item["address"] for item in named["resources"]] == ["batch_export.marked"]
