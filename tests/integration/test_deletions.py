"""Deletions end to end: what keeps a project, what its deletion deletes, and what is left to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartService
from tests.integration.test_inventory import Repo
from tests.support.cli import Ran, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git

NOOP = {"type": "NoOp", "config": {}}


def export(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "interval": "hour", "destination": NOOP, **fields}


def seed(*names: str) -> dict[str, Any]:
    projects = [
        {"id": 1, "name": "Web", "batch_exports": [export("Lake")]},
        {"id": 2, "name": "Old", "batch_exports": [export(name) for name in names]},
    ]
    return {
        "organizations": [{"id": "org", "name": "O", "projects": projects}],
        "keys": [{"value": "phx_k"}],
    }


WEB = {
    "projects": {"web": {"name": "Web"}},
    "batch_exports": {"lake": {"project": "web", **export("Lake")}},
}


def old(*names: str, **fields: Any) -> dict[str, Any]:
    """Return the files of the project with exports in it."""
    exports = {n.lower(): {"project": "old", **export(n), **fields} for n in names}
    return {"projects": {"old": {"name": "Old"}}, "batch_exports": exports}


def repository(folder: Path, service: RunningEmulator, policy: dict[str, Any], before: Any) -> Repo:
    """Return a clone in which the file of the old project, beside that of the web, is applied."""
    git = Git.init(folder / "repo")
    settings = {"version": 1, "policy": {"allow_project_deletion": True, **policy}}
    files = {"reconciler.yaml": settings, "web.yaml": WEB, "old.yaml": before}
    where = write(git.folder / "w", {name: json.dumps(text) for name, text in files.items()})
    git.commit("start")
    repo = Repo(git, git.bare(folder / "origin.git"), service, where, {})
    repo.apply()
    return repo


def removed(repo: Repo, after: Any = None) -> Repo:
    """Remove the file of the old project, or replace it, and commit."""
    if after is None:
        (repo.folder / "old.yaml").unlink()
    else:
        write(repo.folder, {"old.yaml": json.dumps(after)})
    repo.git.commit("without the old project")
    return repo


def names(service: RunningEmulator) -> dict[str, list[str]]:
    """Return the names of the exports of each project that is not pending deletion."""
    return {
        project["name"]: sorted(item["name"] for item in project["batch_exports"])
        for project in service.state()["projects"]
        if not project.get("is_pending_deletion")
    }


@pytest.mark.parametrize(
    ("policy", "after"),
    [
        ({"prune": True}, None),
        ({}, {"projects": {"old": {"name": "Old", "state": "absent"}}}),
    ],
    ids=["prune", "absent"],
)
def test_plan_d1_a_protected_export_keeps_its_project(
    policy: dict[str, Any], after: Any, service_of: StartService, tmp_path: Path
) -> None:
    service = service_of(seed("Dup"))
    protected = old("Dup", lifecycle={"protect": True})
    repo = removed(repository(tmp_path, service, policy, protected), after)
    ran = repo.apply(code=5)
    words = " ".join(ran.out.split())
    assert "error: batch_export.dup is protected and would be deleted [protect]" in words
    assert names(service) == {"Web": ["Lake"], "Old": ["Dup"]}


@pytest.mark.parametrize("dialect", ["2025", "2026"])
@pytest.mark.parametrize("absent", [False, True], ids=["prune", "absent"])
def test_fidelity_f2_a_project_is_deleted_with_its_exports(
    dialect: str, service_of: StartService, tmp_path: Path, *, absent: bool
) -> None:
    service = service_of(seed("A", "B"), "--dialect", dialect)
    repo = repository(tmp_path, service, {"prune": True}, old("A", "B"))
    gone = old("A", "B", state="absent")
    gone["projects"]["old"]["state"] = "absent"
    removed(repo, gone if absent else None)
    service.clear_requests()
    log = tmp_path / "log.jsonl"
    ran = repo.apply("--log-file", str(log))
    assert "Applied: 3 deleted" in ran.out
    assert service.writes() == [("DELETE", "2")]
    assert names(service) == {"Web": ["Lake"]}
    assert repo.entries().keys() == {"project.web", "batch_export.lake"}
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["address"] for line in lines if line["event"] == "done"] == [
        "project.old",
        "batch_export.a",
        "batch_export.b",
    ]
    again = repo.run("plan")
    assert "No changes." in again.out
    assert "note:" not in again.out


@pytest.mark.parametrize("dialect", ["interface", "2026"])
def test_a_saved_deletion_of_a_project_continues(
    dialect: str, service_of: StartService, tmp_path: Path
) -> None:
    """Newer servers list the project while its deletion is pending."""
    service = service_of(seed("A", "B"), "--dialect", dialect)
    repo = removed(repository(tmp_path, service, {"prune": True}, old("A", "B")))
    saved = tmp_path / "plan.json"
    assert repo.run("plan", "--out", saved).code == 0

    def continued() -> Ran:
        return repo.run("apply", saved, "--auto-approve")

    refusal = {"match": {"method": "DELETE"}, "fault": "error", "status": 403}
    service.admin("PUT", "faults", [refusal])
    ran = continued()
    assert ran.code == 3, ran.out + ran.err
    assert names(service)["Old"] == ["A", "B"]
    service.admin("DELETE", "faults")
    # Another client deletes one of them in the meantime.
    service.call("DELETE", f"/api/projects/2/batch_exports/{service.exports()['A']['id']}/")
    assert continued().code == 0
    assert names(service) == {"Web": ["Lake"]}
    assert continued().code == 0


def test_a_project_whose_exports_cannot_be_listed_is_not_planned(
    service_of: StartService, tmp_path: Path
) -> None:
    service = service_of(seed("A"))
    repo = removed(repository(tmp_path, service, {"prune": True}, old("A")))
    lists = [{"match": {"path": "*/batch_exports/"}, "fault": "error", "status": 403}]
    service.admin("PUT", "faults", lists)
    ran = repo.run("plan")
    assert ran.code == 1
    assert "403" in ran.err
    assert "project.old" not in ran.out
