"""Which side a difference comes from, what the files loosen and take over, end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_git_base import SETTINGS, Repo, before, declared
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git

_FORMATS = ("text", "markdown", "html", "github", "json")


@pytest.fixture
def repo(tmp_path: Path, emulator: RunningEmulator) -> Repo:
    git = Git.init(tmp_path / "repo")
    folder = write(git.folder / "w", {"reconciler.yaml": SETTINGS})
    git.commit("start")
    return Repo(git, git.bare(tmp_path / "origin.git"), emulator, folder)


def s3(name: str = "lake", **config: Any) -> dict[str, Any]:
    secrets = {
        "aws_access_key_id": "${secret:env:RECONCILER_SECRET_ID}",
        "aws_secret_access_key": "${secret:env:RECONCILER_SECRET_ONE}",
    }
    whole = {"bucket_name": "acme", "region": "eu", "prefix": "p", **config, **secrets}
    return {"name": name, "destination": {"type": "S3", "config": whole}}


def shown(repo: Repo, *more: str) -> dict[str, str]:
    """Return the plan in every format."""
    ran = {name: repo.run("plan", "--format", name, *more) for name in _FORMATS}
    assert not {name: item.err for name, item in ran.items() if item.code}
    return {name: item.out for name, item in ran.items()}


def test_plan_o1_a_change_under_another_key_is_no_drift(repo: Repo) -> None:
    base = repo.commit(lake=s3())
    assert repo.apply().code == 0
    repo.git.run("switch", "--quiet", "-c", "feature")
    repo.git.commit("start")
    repo.write(**{"lake-eu": s3(bucket_name="evil")})
    repo.git.commit("key and bucket")
    plans = shown(repo, "--base", base)
    assert "Drift" not in plans["text"] + plans["html"]
    assert "drift" not in plans["markdown"]
    (change,) = [item for item in json.loads(plans["json"])["changes"] if item["fields"]]
    assert change["reasons"] == ["changed_in_files"]
    assert "No drift." in repo.run("drift", "--base", base).out
    assert repo.run("pull", "--base", base).code == 0
    assert "evil" in (repo.folder / "resources.yaml").read_text()
    # A commit of the branch can't hide it either.
    assert "Drift" not in repo.run("plan", "--base", "HEAD").out
    drift = repo.run("drift", "--base", "HEAD")
    assert drift.code == 1
    assert "the default branch does not contain the base" in drift.err


def test_plan_o3_what_is_loosened_is_in_every_format_of_an_empty_plan(repo: Repo) -> None:
    was = {"lifecycle": {"protect": True}}
    base = repo.commit(lake=was, pond={}, gone={})
    assert repo.apply().code == 0
    now = {"name": "lake", "lifecycle": {"ignore_changes": ["destination"]}}
    repo.commit(sea=now, pond={}, gone={"environments": []})
    write(
        repo.folder,
        {"reconciler.yaml": SETTINGS.replace("max_deletes: 9", "max_deletes: 99, deny: []")},
    )
    plans = shown(repo, "--base", base)
    assert "No changes." in plans["text"]
    plans["summary"] = repo.run("plan", "--base", base, "--summary").out
    for name, text in plans.items():
        flat = " ".join(text.replace("\\n", " ").split())
        assert "protection is removed: batch_export.sea" in flat, name
        assert "`lifecycle.ignore_changes: 'destination'` is new" in flat or name == "html", name
        assert "is looser: max_deletes" in flat, name
        assert "no longer managed" in flat, name


def test_an_adoption_is_counted_in_every_format(repo: Repo) -> None:
    repo.commit()
    assert repo.apply().code == 0
    repo.write(lake={}, pond={})
    assert repo.apply().code == 0
    repo.write(lake={"interval": "day"}, pond={})
    count = "managed now and not at the git base"
    for name, text in shown(repo).items():
        flat = " ".join(text.split())
        assert f"2 live objects {count}" in flat, name
        assert "not managed at the git base" in flat, name
        assert name == "json" or "batch_export.pond: not managed" not in flat, name
    assert "batch_export.pond: not managed" in repo.run("plan", "--verbose").out
    assert count not in repo.run("plan", "--no-base").out


def test_plan_d5_unset_leaves_the_value_that_an_earlier_commit_set(repo: Repo) -> None:
    ends = {"end_at": "2090-01-01T00:00:00Z"}
    defaults = 'defaults: {batch_export: {start_at: "2020-01-01T00:00:00Z"}}\n'
    write(repo.folder, {"reconciler.yaml": SETTINGS + defaults})
    base = repo.commit(lake=ends)
    assert repo.apply().code == 0
    repo.commit(lake={"end_at": "${unset}", "start_at": "${unset}"})
    plan = repo.run("plan", "--base", base)
    assert "No changes." in plan.out
    assert "warning" not in plan.err
    assert repo.run("validate", "--strict").code == 0
    write(repo.folder, {"reconciler.yaml": SETTINGS})
    repo.commit("removed after it", lake={})
    assert "No changes." in repo.run("plan", "--base", base).out
    removed = repo.run("plan", "--base", repo.commit("again", lake=ends), "--format", "json")
    assert removed.code == 0
    repo.write(lake={})
    assert 'end_at  "2090' in repo.run("plan", "--base", "HEAD").out


def test_plan_d6_a_removed_pause_stays_and_is_noted(repo: Repo) -> None:
    base = repo.commit(lake={"paused": True})
    assert repo.apply().code == 0
    repo.commit(lake={})
    text = " ".join(repo.run("plan", "--base", base).out.split())
    assert "batch_export.lake: paused was removed from the configuration" in text
    assert "keeps its live value" in text
    assert "No changes." in text


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


def test_plan_v1_a_type_change_hides_no_address_from_the_trusted_policy(repo: Repo) -> None:
    denying = SETTINGS.replace(
        "max_deletes: 9", "max_deletes: 9, deny: [credentials-to-new-address]"
    )
    write(repo.folder, {"reconciler.yaml": denying})
    base = repo.commit(lake=s3())
    assert repo.apply().code == 0
    repo.git.trust()
    secrets = {
        "user": "${secret:env:RECONCILER_SECRET_ID}",
        "password": "${secret:env:RECONCILER_SECRET_ONE}",
    }
    config = {"host": "evil.example", "database": "d", "schema": "s", "table_name": "t", **secrets}
    write(repo.folder, {"reconciler.yaml": SETTINGS})
    repo.write(lake={"destination": {"type": "Postgres", "config": config}})
    saved = repo.folder.parent / "plan.json"
    ran = repo.run("plan", "--base", base, "--out", saved, environ={"CI": "true", "COLUMNS": "80"})
    assert ran.code == 0, ran.err
    section = " ".join(ran.out.split("\n\n")[1].split())
    assert section == (
        "New places and queries !! secrets env:RECONCILER_SECRET_ONE, env:RECONCILER_SECRET_ID -> "
        "evil.example:5432 (before: S3) batch_export.lake"
    )
    assert "takes effect after the merge" in ran.out
    assert section in " ".join(repo.run("show", saved, environ={"COLUMNS": "80"}).out.split())
    assert repo.apply("--base", base, environ={"CI": "true"}).code == 5


def test_plan_v1_the_changes_of_a_refused_merge_stay_new(repo: Repo) -> None:
    denied = SETTINGS.replace("}", ", deny: [credentials-to-new-address]}")
    write(repo.folder, {"reconciler.yaml": denied})
    base = repo.commit(lake=s3())
    assert repo.apply().code == 0
    repo.git.run("switch", "--quiet", "-c", "feature")
    evil = s3(endpoint_url="https://s3.evil.example")
    repo.write(lake=evil)
    repo.git.commit("evil")
    assert repo.run("plan").code == 5
    repo.git.run("switch", "--quiet", "main")
    pond = s3("pond", endpoint_url="https://s3.evil2.example")
    merged = repo.commit(lake=evil, pond=pond)
    assert repo.apply(environ=before(base)).code == 5

    # Without --mark, the next push compares with the merge.
    repo.commit(lake=evil, pond=pond, other={})
    for text in repo.notes(environ=before(merged)), repo.notes("--target", "batch_export.lake"):
        assert "env:RECONCILER_SECRET_ONE -> https://s3.evil.example" in text["base-not-live"]
    assert "base-not-live" not in repo.notes("--target", "batch_export.other")


def test_plan_v1_a_change_does_not_choose_the_branch_that_makes_it_known(repo: Repo) -> None:
    settings = SETTINGS.replace("}", ", deny: [credentials-to-new-address]}")
    production = f"{settings}environments:\n  production: {{%s}}\n"
    write(repo.folder, {"reconciler.yaml": production % ""})
    repo.commit(lake=s3())
    assert repo.apply("-e", "production").code == 0
    repo.git.run("switch", "--quiet", "-c", "attacker")
    repo.commit(lake=s3(endpoint_url="https://s3.evil.example"))
    repo.git.run("switch", "--quiet", "-c", "feature")
    write(repo.folder, {"reconciler.yaml": production % "branch: attacker"})
    repo.git.commit("branch")
    ran = repo.run("plan", "-e", "production")
    assert (ran.code, "origin/main@" in ran.out) == (5, True)
    trusting = repo.run("plan", "-e", "production", "--trust-workspace")
    assert (trusting.code, "origin/attacker@" in trusting.out) == (0, True)
