"""The recipes for GitHub end to end: their own steps, a git remote, and the embedded service."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import StartService
from tests.recipes.gh import BOT
from tests.recipes.github import REPOSITORY, Forge, after_plan, context, proposal
from tests.recipes.hosts import JobResult, write_program
from tests.support.cli import write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git
from tests.support.simulated import no_op_export

pytestmark = pytest.mark.skipif(
    not (shutil.which("jq") and shutil.which("bash")), reason="jq or bash is not installed"
)
SETTINGS = "version: 1\nenvironments: {production: {}}\npolicy: {prune: true}\n"


@dataclass
class Team:
    """A clone of a repository at a host that runs the recipes."""

    git: Git
    forge: Forge
    service: RunningEmulator

    def commit(self, **intervals: Any) -> str:
        """Commit exports with their intervals."""
        exports = {
            key: {"project": "web", **no_op_export(key, interval)}
            for key, interval in intervals.items()
        }
        resources = {"projects": {"web": {"name": "Web"}}, "batch_exports": exports}
        write(self.git.folder, {"pipelines/resources.yaml": yaml.safe_dump(resources)})
        return self.git.commit()

    def push(self, **intervals: Any) -> dict[str, Any]:
        """Commit and push to main; return the context of the run."""
        before = self.git.head()
        commit = self.commit(**intervals)
        self.git.run("push", "--quiet", "origin", "HEAD:refs/heads/main")
        return context("main", commit, "push", before=before)

    def propose(self, *, repository: str = REPOSITORY, **intervals: Any) -> dict[str, Any]:
        """Commit and push to a branch; return the context of the run for its pull request."""
        commit = self.commit(**intervals)
        self.git.run("push", "--quiet", "--force", "origin", "HEAD:refs/heads/feature")
        self.git.run("reset", "--quiet", "--hard", "origin/main")
        return proposal("main", commit, repository)

    def run(self, recipe: str, job: str, github: dict[str, Any], **needs: JobResult) -> JobResult:
        address = {"RECONCILER_BASE_URL": self.service.base_url, "WORKSPACE": "pipelines"}
        return self.forge.run(
            f"reconciler-{recipe}.yml", job, github=github, needs=needs, environ=address
        )

    def deploy(self, github: dict[str, Any]) -> JobResult:
        plan = self.run("apply", "plan", github)
        assert plan.code == 0, plan.log
        return self.run("apply", "apply", github, plan=plan)

    def comment(self) -> JobResult:
        """Run the job that posts the plan of a pull request."""
        return self.run("comment", "comment", after_plan("main", self.git.head("origin/main")))

    def applied(self) -> dict[str, str]:
        """Return the commits of the recorded exports in the origin, by key."""
        entries = self.forge.origin.recorded().items()
        return {
            address.partition(".")[2]: entry["commit"]
            for address, entry in entries
            if address.startswith("batch_export.")
        }


@pytest.fixture
def team(tmp_path: Path, emulator: RunningEmulator) -> Team:
    return team_of(tmp_path, emulator)


def team_of(tmp_path: Path, emulator: RunningEmulator) -> Team:
    """Return a team whose repository has a workspace without resources."""
    git = Git.init(tmp_path / "repo")
    write(git.folder, {"pipelines/reconciler.yaml": SETTINGS})
    git.commit()
    secrets = dict.fromkeys(("POSTHOG_READ_KEY", "POSTHOG_WRITE_KEY"), emulator.api_key)
    organization = {"POSTHOG_ORGANIZATION": emulator.organization}
    origin = git.bare(tmp_path / "origin.git")
    return Team(git, Forge(tmp_path / "forge", origin, secrets, organization), emulator)


def test_a_merged_plan_is_applied_and_its_commit_is_recorded(team: Team) -> None:
    first = team.push(orders="hour")
    applied = team.deploy(first)
    assert applied.code == 0, applied.log
    assert (set(team.service.exports()), team.applied()) == ({"orders"}, {"orders": first["sha"]})

    # An apply that fails in part records what it did, and the next push repairs the rest.
    team.service.fail(method="PATCH")
    second = team.push(orders="day", lake="hour")
    assert team.deploy(second).code == 3
    assert set(team.service.exports()) == {"orders", "lake"}
    lake = team.service.exports()["lake"]["id"]
    saved = team.forge.folder / "artifacts/reconciler-plan/plan.json"
    old = saved.read_bytes()
    assert team.applied() == {"orders": first["sha"], "lake": second["sha"]}
    team.service.admin("DELETE", "faults")
    third = team.push(orders="day", lake="hour", river="week")
    assert team.deploy(third).code == 0
    exports = team.service.exports()
    intervals = {name: export["interval"] for name, export in exports.items()}
    assert intervals == {"orders": "day", "lake": "hour", "river": "week"}
    assert exports["lake"]["id"] == lake
    assert team.applied() == dict.fromkeys(("orders", "lake", "river"), third["sha"])

    # Without changes there is nothing to approve.
    assert team.deploy(third).skipped

    # The job of an old commit, run again, changes nothing.
    saved.write_bytes(old)
    approved = JobResult(outputs={"changes": "true"})
    assert team.run("apply", "apply", second, plan=approved).code == 4
    assert (team.service.exports(), set(team.applied().values())) == (exports, {third["sha"]})


def test_keys_come_from_a_secret_store(team: Team) -> None:
    secrets = {"RECONCILER_API_KEY": team.service.api_key, "PATH": "/nowhere"}
    password = {"RECONCILER_SECRET_S3": "100%\ntrue"}
    store = {"read": secrets, "write": {**secrets, **password}}
    folder = team.forge.folder
    write(folder, {f"store/{role}": json.dumps(values) for role, values in store.items()})
    # A role reads its own secret only.
    words = '"secretsmanager get-secret-value --secret-id reconciler/production/$AWS_SESSION_TOKEN'
    words += ' --query SecretString --output text"'
    aws = f'#!/bin/sh\ntest "$*" = {words} && cat "{folder}/store/$AWS_SESSION_TOKEN"\n'
    write_program(folder / "bin/aws", aws)
    team.forge.secrets = {}
    roles = {"AWS_READ_ROLE": "read", "AWS_WRITE_ROLE": "write", "AWS_REGION": "eu-central-1"}
    team.forge.variables = {**team.forge.variables, **roles}
    github = team.push(orders="hour")
    plan = team.run("apply-oidc", "plan", github)
    assert plan.code == 0, plan.log
    applied = team.run("apply-oidc", "apply", github, plan=plan)
    assert applied.code == 0, applied.log
    assert team.applied() == {"orders": github["sha"]}
    masks = {line for line in applied.log.splitlines() if line.startswith("::add-mask::")}
    assert masks == {f"::add-mask::{team.service.api_key}", "::add-mask::100%25%0Atrue"}
    assert applied.log.count(team.service.api_key) == 1
    # The role that reads is not the one that writes.
    team.forge.variables = {**team.forge.variables, "AWS_WRITE_ROLE": "read"}
    assert team.run("apply-oidc", "apply", github, plan=plan).code == 1


def test_the_comment_of_a_pull_request_is_updated(team: Team) -> None:
    team.deploy(team.push(orders="hour"))
    pull_request = team.propose(orders="day")
    planned = team.run("plan", "plan", pull_request)
    assert planned.code == 0, planned.log
    assert "1 to update" in planned.summary
    marker = planned.summary.partition("\n")[0]
    # Another user wrote the marker first.
    state = team.forge.state()
    state["comments"] = [{"id": 0, "user": {"login": "mallory"}, "body": f"{marker}\nx"}]
    team.forge.save(state)
    assert team.comment().code == 0
    team.run("plan", "plan", team.propose(orders="week"))
    assert team.comment().code == 0
    comments = [(item["user"]["login"], item["body"]) for item in team.forge.state()["comments"]]
    assert [author for author, _ in comments] == ["mallory", BOT]
    assert comments[0][1] == f"{marker}\nx"
    posted = comments[1][1]
    assert posted == (team.forge.folder / "artifacts/reconciler-plan/plan.md").read_text()
    assert "1 to update" in posted
    assert re.search(r"\| +`?batch_export.orders`? .*hour.*week", posted), posted
    assert posted.startswith("<!-- reconciler: production pipelines -->\n")
    assert team.service.exports()["orders"]["interval"] == "hour"


def test_only_a_plan_is_posted(team: Team) -> None:
    assert team.comment().code == 0
    write(team.forge.folder / "artifacts/reconciler-plan", {"plan.md": "buy $(id)\n"})
    assert team.comment().code == 1
    assert team.forge.state()["comments"] == []


def test_a_pull_request_from_a_fork_is_only_validated(team: Team) -> None:
    fork = team.propose(repository="mallory/pipelines", orders="day")
    assert team.run("plan", "plan", fork).skipped
    validated = team.run("plan", "validate", fork)
    assert validated.code == 0, validated.log
    broken = team.run("plan", "validate", team.propose(orders=5))
    assert broken.code == 1
    assert "::error " in broken.log


def test_drift_keeps_one_issue_open(team: Team) -> None:
    team.deploy(team.push(orders="hour"))
    edit_live(team.service, interval="day")
    main, drift = night(team)
    again = team.run("drift", "issue", main, drift=drift)
    assert again.code == 0, again.log
    (issue,) = team.forge.state()["issue"]
    assert (issue["title"], issue["state"]) == ("Drift in production", "open")
    assert "interval" in issue["body"]

    edit_live(team.service, interval="hour")
    night(team)
    (issue,) = team.forge.state()["issue"]
    assert issue["state"] == "closed"


def propose_drift(team: Team) -> dict[str, Any]:
    """Run the nightly workflow that proposes drift; return the last pull request."""
    main = context("main", team.git.head("origin/main"), "schedule")
    patch = team.run("drift-pull-request", "patch", main)
    assert patch.code == 0, patch.log
    proposed = team.run("drift-pull-request", "propose", main, patch=patch)
    assert proposed.code == 0, proposed.log
    pull_request: dict[str, Any] = (team.forge.state()["pr"] or [{}])[-1]
    return pull_request


def test_ecosystem_3_drift_is_proposed_until_it_is_gone(
    tmp_path: Path, service_of: StartService
) -> None:
    team = team_of(tmp_path, service_of(None, "--dialect", "2026"))
    team.deploy(team.push(orders="hour"))
    assert propose_drift(team) == {}
    edit_live(team.service, interval="day")
    first = propose_drift(team)
    file = f"{first['head']}:pipelines/resources.yaml"
    assert "interval: day" in team.forge.origin.run("show", file)
    # Who changed it, as the activity log says.
    assert '| `"day"` | by Demo ' in first["body"]

    # More drift replaces the own commit.
    edit_live(team.service, interval="week")
    second = propose_drift(team)
    assert (second["number"], len(team.forge.state()["pr"])) == (first["number"], 1)
    assert "interval: week" in team.forge.origin.run("show", file)

    # A commit of a reviewer stays, and the text says what is new.
    team.git.run("fetch", "--quiet", "origin")
    team.git.run("switch", "--quiet", "--create", "review", f"origin/{first['head']}")
    write(team.git.folder, {"pipelines/note.md": "why\n"})
    reviewed = team.git.commit()
    team.git.run("push", "--quiet", "origin", f"HEAD:{first['head']}")
    team.git.run("switch", "--quiet", "main")
    edit_live(team.service, interval="day")
    third = propose_drift(team)
    assert team.forge.origin.head(first["head"]) == reviewed
    assert third["body"] != second["body"]

    # It closes itself, and later drift is a new one.
    edit_live(team.service, interval="hour")
    assert propose_drift(team)["state"] == "closed"
    edit_live(team.service, interval="week")
    assert propose_drift(team)["number"] == 2
    assert "interval: week" in team.forge.origin.run("show", file)


def night(team: Team) -> tuple[dict[str, Any], JobResult]:
    """Run both jobs of the nightly drift; return its context and the first one."""
    main = context("main", team.git.head(), "schedule")
    drift = team.run("drift", "drift", main)
    assert drift.code == 0, drift.log
    issue = team.run("drift", "issue", main, drift=drift)
    assert issue.code == 0, issue.log
    return main, drift


def edit_live(service: RunningEmulator, **values: Any) -> None:
    service.call("PATCH", service.path_of("orders"), values).raise_for_status()
