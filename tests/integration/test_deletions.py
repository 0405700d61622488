"""Deletions end to end: what keeps a project, what its deletion deletes, and what is left to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartService
from tests.support.cli import Ran, write
from tests.support.declared import declared, seed
from tests.support.emulator import RunningEmulator
from tests.support.repo import Repo
from tests.support.simulated import no_op_export


def old(*names: str, **fields: Any) -> str:
    """Return the file of the project with exports in it."""
    exports = {name.lower(): {"project": "old", "name": name, **fields} for name in names}
    return declared({"old": {"name": "Old"}}, **exports)


def repository(
    folder: Path,
    service_of: StartService,
    *names: str,
    dialect: str = "interface",
    policy: str = "prune: true",
    **fields: Any,
) -> Repo:
    """Return a clone in which the files of an old project, and of the web, are applied."""
    web = {"id": 1, "name": "Web", "batch_exports": [no_op_export("Lake")]}
    exports = [no_op_export(name) for name in names]
    former = {"id": 2, "name": "Old", "batch_exports": exports}
    settings = f"version: 1\npolicy: {{allow_project_deletion: true, {policy}}}\n"
    files = {"web.yaml": declared(lake={"name": "Lake"}), "old.yaml": old(*names, **fields)}
    running = service_of(seed(web, former), "--dialect", dialect)
    repo = Repo.of(folder, running, **{"reconciler.yaml": settings}, **files)
    repo.apply()
    return repo


def removed(repo: Repo, after: str | None = None) -> Repo:
    """Remove the file of the old project, or replace it, and commit."""
    (repo.folder / "old.yaml").unlink()
    if after is not None:
        write(repo.folder, {"old.yaml": after})
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
        pytest.param("prune: true", None, id="prune"),
        pytest.param("", '{"projects": {"old": {"name": "Old", "state": "absent"}}}', id="absent"),
    ],
)
def test_plan_d1_a_protected_export_keeps_its_project(
    policy: str, after: str | None, service_of: StartService, tmp_path: Path
) -> None:
    protect = {"lifecycle": {"protect": True}}
    repo = removed(repository(tmp_path, service_of, "Dup", policy=policy, **protect), after)
    words = " ".join(repo.apply(code=5).out.split())
    assert "error: batch_export.dup is protected and would be deleted [protect]" in words
    assert names(repo.running) == {"Web": ["Lake"], "Old": ["Dup"]}


@pytest.mark.parametrize("dialect", ["2025", "2026"])
@pytest.mark.parametrize("absent", [False, True], ids=["prune", "absent"])
def test_fidelity_f2_a_project_is_deleted_with_its_exports(
    dialect: str, service_of: StartService, tmp_path: Path, *, absent: bool
) -> None:
    repo = repository(tmp_path, service_of, "A", "B", dialect=dialect)
    gone = old("A", "B", state="absent").replace('"Old"', '"Old", "state": "absent"')
    removed(repo, gone if absent else None)
    repo.running.clear_requests()
    log = tmp_path / "log.jsonl"
    ran = repo.apply("--log-file", str(log))
    assert "Applied: 3 deleted" in ran.out
    assert repo.running.writes() == [("DELETE", "2")]
    assert names(repo.running) == {"Web": ["Lake"]}
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
    repo = removed(repository(tmp_path, service_of, "A", "B", dialect=dialect))
    service, saved = repo.running, tmp_path / "plan.json"
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
    repo = removed(repository(tmp_path, service_of, "A"))
    lists = [{"match": {"path": "*/batch_exports/"}, "fault": "error", "status": 403}]
    repo.running.admin("PUT", "faults", lists)
    ran = repo.run("plan")
    assert (ran.code, "403" in ran.err, "project.old" in ran.out) == (1, True, False)
