"""Where differences come from, what the files loosen, take over and would create twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import reconciler, write
from tests.support.declared import declared
from tests.support.emulator import RunningEmulator
from tests.support.repo import SETTINGS, Repo, secret_in

_FORMATS = ("text", "markdown", "html", "github", "json")


@pytest.fixture
def repo(tmp_path: Path, emulator: RunningEmulator) -> Repo:
    return Repo.of(tmp_path, emulator)


def postgres(table: str = "t", host: str = "h", **fields: Any) -> dict[str, Any]:
    secret = "${secret:env:RECONCILER_SECRET_ONE}"
    config = {"host": host, "database": "d", "table_name": table}
    config |= {"user": secret, "password": secret}
    return {"name": "Pg", "destination": {"type": "Postgres", "config": config}, **fields}


def shown(repo: Repo, *more: str) -> dict[str, str]:
    """Return the plan in every format."""
    ran = {name: repo.run("plan", "--format", name, *more) for name in _FORMATS}
    assert not {name: item.err for name, item in ran.items() if item.code}
    return {name: item.out for name, item in ran.items()}


def test_plan_o3_what_is_loosened_is_in_every_format_of_an_empty_plan(repo: Repo) -> None:
    was = {"lifecycle": {"protect": True}}
    repo.applied(lake=was, pond={}, gone={})
    now = {"name": "lake", "lifecycle": {"ignore_changes": ["destination"]}}
    repo.commit(sea=now, pond={}, gone={"environments": []})
    looser = SETTINGS.replace("max_deletes: 9", "max_deletes: 99, deny: []")
    write(repo.folder, {"reconciler.yaml": looser})
    plans = shown(repo)
    assert "No changes." in plans["text"]
    plans["summary"] = repo.run("plan", "--summary").out
    for name, text in plans.items():
        flat = " ".join(text.replace("\\n", " ").split())
        assert "protection is removed: batch_export.sea" in flat, name
        assert "`lifecycle.ignore_changes: 'destination'` is new" in flat or name == "html", name
        assert "is looser: max_deletes" in flat, name
        assert ("leaving" if name == "json" else "not managed any more") in flat, name


_LEFT = [f"left-{number:02}" for number in range(26)]
_PROTECTED = {"lifecycle": {"protect": True}}
_KEPT = SETTINGS.replace("prune: true", "prune: false")
_LEAVING: dict[str, tuple[str, dict[str, Any], str]] = {
    "environments": (SETTINGS, {"environments": []}, "`environments` leaves out"),
    "resources": (f"{SETTINGS}resources: [projects.yaml]\n", {}, "declared in w/resources.yaml"),
    "no prune": (_KEPT, {}, "deleted only with `policy: {prune: true}`"),
}


@pytest.mark.parametrize("how", _LEAVING)
def test_r6_all_that_leaves_management_is_named_the_protected_first(how: str, repo: Repo) -> None:
    settings, fields, why = _LEAVING[how]
    exports = {name: {} for name in _LEFT} | {"zone": _PROTECTED}
    repo.applied(kept={}, **exports)
    write(repo.folder, {"reconciler.yaml": settings})
    gone = {name: {**body, **fields} for name, body in exports.items()} if fields else {}
    if how == "resources":
        write(repo.folder, {"projects.yaml": "projects: {web: {name: Web}}\n"})
    else:
        repo.write(kept={}, **gone)
    for output in ("text", "markdown"):
        ran = repo.run("plan", "--format", output)
        assert ran.code == 0, ran.err
        flat = " ".join(ran.out.split())
        first = "not managed any more: batch_export.zone (protected), "
        assert first in flat, flat
        assert all(f"batch_export.{name}" in flat for name in _LEFT)
        assert why in flat
        assert f"{27 + (how == 'resources')} not managed any more" in flat


def test_r6_a_field_and_a_protection_that_are_left_are_named(repo: Repo) -> None:
    repo.applied(lake={**_PROTECTED, "end_at": "2090-01-01T00:00:00Z"})
    repo.write(lake={"lifecycle": "${unset}", "end_at": "${unset}"})
    for output in ("text", "markdown"):
        words = repo.run("plan", "--format", output).out
        assert "protection is removed: batch_export.lake" in words
        assert "batch_export.lake: end_at is no longer managed" in " ".join(words.split()), words


@pytest.mark.parametrize(
    ("second", "override", "warned"),
    [
        ("org-1", {}, False),
        ("org-1", {"interval": "day"}, True),
        ("org-1", {"interval": "day", "name": "b"}, False),
        ("org-2", {"interval": "day"}, False),
        ("${env:RECONCILER_VAR_ORG}", {"interval": "day"}, False),
    ],
)
def test_plan_o5_two_environments_that_declare_one_object_differently(
    tmp_path: Path, second: str, override: dict[str, Any], *, warned: bool
) -> None:
    environments = {
        name: {"base_url": "https://eu.posthog.com", "organization": organization}
        for name, organization in (("staging", "org-1"), ("production", second))
    }
    settings = {"version": 1, "environments": environments}
    write(tmp_path, {"reconciler.yaml": json.dumps(settings)})
    write(tmp_path, {"resources.yaml": declared(a={"overrides": {"production": override}})})
    ran = reconciler("validate", "-C", tmp_path)
    assert ran.code == 0
    text = "batch_export.a differs between staging and production, which share an organization"
    assert (text in ran.out + ran.err) is warned


@pytest.mark.parametrize(
    "evil", [postgres(host="evil.example"), secret_in("ONE")], ids=["another host", "another type"]
)
def test_plan_v1_the_changes_of_a_refused_merge_stay_new(repo: Repo, evil: dict[str, Any]) -> None:
    denied = SETTINGS.replace("}", ", deny: [credentials-to-new-address]}")
    write(repo.folder, {"reconciler.yaml": denied})
    repo.applied(lake=postgres())
    repo.commit(lake=evil)
    repo.apply(code=5)
    repo.commit(lake=evil, other={})
    assert repo.run("plan", "--target", "batch_export.lake").code == 5
    assert repo.run("plan", "--target", "batch_export.other").code == 0


# An export that was renamed in the service is refused everywhere (plan I1, I2, I6).

RENAMED = "PG (do not touch)"
MARKED = "Marked <!-- iac:batch-exports:events_to_pg iac:hash:abc123 -->"
IMPORT = ("import", "--dry-run", "--format", "json")


@pytest.fixture
def pg(tmp_path: Path, emulator: RunningEmulator) -> Repo:
    """Return a repository whose export is applied."""
    pg = Repo.of(tmp_path, emulator)
    pg.applied(pg=postgres())
    return pg


def test_plan_i1_a_renamed_export_is_refused_in_every_format(pg: Repo) -> None:
    """Without an inventory nothing says that it is the object of the resource."""
    pg.forget()
    pg.call("PATCH", "Pg", {"name": RENAMED})
    pg.running.clear_requests()
    pg.apply(code=5)
    assert pg.running.writes() == []
    for text_format in ("text", "markdown", "html", "json", "github", "sarif"):
        ran = pg.run("plan", "--format", text_format)
        assert ran.code == 5, text_format
        assert "possible-duplicate" in ran.out, text_format
        assert "do not touch" in ran.out, text_format
    (refusal,) = pg.plan(code=5)["refusals"]
    assert [item["name"] for item in refusal["objects"]] == [RENAMED]
    assert "possible-duplicate" in pg.run("doctor", "pg", "--auto-approve").out
    (left,) = json.loads(pg.run(*IMPORT).out)["not_imported"]
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
    pg: Repo, fields: dict[str, Any], actions: tuple[int, int]
) -> None:
    pg.forget()
    pg.call("PATCH", "Pg", {"name": RENAMED})
    pg.write(pg=postgres(**fields))
    summary = pg.plan()["summary"]
    assert (summary["create"], summary["update"]) == actions
    pg.apply()
    assert pg.run("plan", "--detailed-exitcode").code == 0


def test_plan_i1_a_renamed_project_is_refused(pg: Repo) -> None:
    pg.forget()
    project = pg.running.exports()["Pg"]["team_id"]
    pg.running.call("PATCH", f"/api/projects/{project}/", {"name": "Web (prod)"})
    applied = pg.apply(code=5)
    assert "project.web would be created beside project 'Web (prod)'" in applied.out
    assert "which contains 1 object of its configuration" in " ".join(applied.out.split())
    drift = pg.run("drift")
    assert drift.code == 2
    assert '1 live object probably renamed: project.web to "Web (prod)"' in drift.out
    whole = [left["why"] for left in json.loads(pg.run(*IMPORT).out)["not_imported"]]
    assert len(whole) == 2
    assert all("probably project.web" in why for why in whole)


def test_plan_i2_a_resource_renamed_out_of_ignore_is_refused(pg: Repo) -> None:
    write(pg.folder, {"reconciler.yaml": SETTINGS.replace("}", ", ignore: ['Pg*']}")})
    pg.write(pg=postgres(name="Two"))
    applied = pg.apply(code=5)
    assert "possible-duplicate" in applied.out
    assert "take it out of `policy.ignore`" in applied.out


def test_plan_i6_objects_of_another_tool_are_imported_by_name_only(pg: Repo) -> None:
    project = pg.running.exports()["Pg"]["team_id"]
    body = {**postgres("other"), "name": MARKED, "interval": "hour"}
    body["destination"]["config"] |= {"user": "u", "password": "p"}
    path = f"/api/projects/{project}/batch_exports/"
    pg.running.call("POST", path, body).raise_for_status()
    left = json.loads(pg.run(*IMPORT).out)
    assert "posthog-definitions" in left["not_imported"][0]["why"]
    named = json.loads(pg.run(*IMPORT, "Marked*", "--into", "new.yaml").out)
    assert [item["address"] for item in named["resources"]] == ["batch_export.marked"]
