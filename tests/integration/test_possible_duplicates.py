"""An export that was renamed in the service is refused everywhere (findings plan I1, I2, I6)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git

RENAMED = "PG (do not touch)"
MARKED = "Marked <!-- iac:batch-exports:events_to_pg iac:hash:abc123 -->"
SECRETS = {"RECONCILER_SECRET_PG": "a-secret-value"}
WORKSPACE = "version: 1\nsecrets: [PG]\n"


def postgres(table: str) -> dict[str, Any]:
    secret = "${secret:env:RECONCILER_SECRET_PG}"
    config = {"host": "h", "database": "d", "table_name": table, "user": secret, "password": secret}
    return {"interval": "hour", "destination": {"type": "Postgres", "config": config}}


class World:
    """A workspace in git with a project and an export, applied, and the service."""

    def __init__(self, folder: Path, running: RunningEmulator) -> None:
        self.git, self.running = Git.init(folder), running
        write(folder, {"reconciler.yaml": WORKSPACE})
        self.write({"web": {"name": "Web"}}, pg={"project": "web", "name": "Pg"})
        self.git.commit()
        self.git.bare(folder.parent / "origin.git")
        assert self.run("apply", "--auto-approve").code == 0

    def write(self, projects: dict[str, Any], **exports: dict[str, Any]) -> None:
        own = {key: {**postgres("t"), **fields} for key, fields in exports.items()}
        body = {"projects": projects, "batch_exports": own}
        write(self.git.folder, {"resources.yaml": yaml.safe_dump(body, sort_keys=False)})

    def run(self, command: str, *more: str) -> Ran:
        environ = {**self.running.environ(), **SECRETS}
        return reconciler(command, "-C", self.git.folder, *more, environ=environ)

    def forget(self) -> None:
        """Delete the inventory."""
        for ref in self.git.inventories():
            self.git.run("update-ref", "-d", ref)

    def rename(self, kind: str, name: str) -> None:
        """Rename the project, or its export, as a person does in the service."""
        project = self.project()
        path = f"/api/organizations/{self.running.organization}/projects/{project['id']}/"
        if kind == "batch_exports":
            export = project["batch_exports"][0]["id"]
            path = f"/api/projects/{project['id']}/batch_exports/{export}/"
        self.running.call("PATCH", path, {"name": name})

    def project(self) -> dict[str, Any]:
        return next(item for item in self.running.state()["projects"] if item["batch_exports"])


@pytest.fixture
def world(tmp_path: Path, emulator: RunningEmulator) -> Iterator[World]:
    yield World(tmp_path / "w", emulator)
    emulator.reset()


def test_plan_i1_a_renamed_export_is_refused_in_every_format(world: World, tmp_path: Path) -> None:
    """Without an inventory nothing says that it is the object of the resource."""
    world.forget()
    world.rename("batch_exports", RENAMED)
    world.running.clear_requests()
    applied = world.run("apply", "--auto-approve")
    assert applied.code == 5
    assert world.running.writes() == []
    for text_format in ("text", "markdown", "html", "json", "github", "sarif"):
        ran = world.run("plan", "--format", text_format)
        assert ran.code == 5, text_format
        assert "possible-duplicate" in ran.out, text_format
        assert "do not touch" in ran.out, text_format
    (refusal,) = json.loads(world.run("plan", "--format", "json").out)["refusals"]
    assert [item["name"] for item in refusal["objects"]] == [RENAMED]
    doctor = world.run("doctor", "pg", "--auto-approve")
    assert "possible-duplicate" in doctor.out
    imported = world.run("import", "--dry-run", "--format", "json")
    (left,) = json.loads(imported.out)["not_imported"]
    assert "probably batch_export.pg" in left["why"]


@pytest.mark.parametrize(
    ("fields", "actions"),
    [
        ({"lifecycle": {"renamed_from": [RENAMED]}}, {"update": 1}),
        ({"name": RENAMED}, {}),
        ({"lifecycle": {"beside": [RENAMED]}}, {"create": 1}),
    ],
)
def test_plan_i1_the_ways_on_lead_on(
    world: World, fields: dict[str, Any], actions: dict[str, int]
) -> None:
    world.forget()
    world.rename("batch_exports", RENAMED)
    world.write({"web": {"name": "Web"}}, pg={"project": "web", "name": "Pg", **fields})
    plan = world.run("plan", "--format", "json")
    assert plan.code == 0, plan.err
    summary = json.loads(plan.out)["summary"]
    assert {action: summary[action] for action in ("create", "update") if summary[action]} == (
        actions
    )
    assert world.run("apply", "--auto-approve").code == 0
    assert world.run("plan", "--detailed-exitcode").code == 0


def test_plan_i1_a_renamed_project_is_refused(world: World) -> None:
    world.forget()
    world.rename("projects", "Web (prod)")
    applied = world.run("apply", "--auto-approve")
    assert applied.code == 5
    assert "project.web would be created beside project 'Web (prod)'" in applied.out
    assert "which contains 1 object of its configuration" in " ".join(applied.out.split())
    imported = json.loads(world.run("import", "--dry-run", "--format", "json").out)
    whole = [left["why"] for left in imported["not_imported"]]
    assert len(whole) == 2
    assert all("probably project.web" in why for why in whole)


def test_plan_i2_a_resource_renamed_out_of_ignore_is_refused(world: World) -> None:
    write(world.git.folder, {"reconciler.yaml": f"{WORKSPACE}policy: {{ignore: ['Pg*']}}\n"})
    world.write({"web": {"name": "Web"}}, pg={"project": "web", "name": "Two"})
    applied = world.run("apply", "--auto-approve")
    assert applied.code == 5, applied.out
    assert "possible-duplicate" in applied.out
    assert "take it out of `policy.ignore`" in applied.out


def test_plan_i6_objects_of_another_tool_are_imported_by_name_only(world: World) -> None:
    world.write({"web": {"name": "Web"}}, pg={"project": "web", "name": "Pg"})
    project = world.project()["id"]
    path = f"/api/projects/{project}/batch_exports/"
    config = {**postgres("other"), "name": MARKED}
    config["destination"]["config"] |= {"user": "u", "password": "p"}
    world.running.call("POST", path, config)
    left = json.loads(world.run("import", "--dry-run", "--format", "json").out)
    assert "posthog-definitions" in left["not_imported"][0]["why"]
    named = json.loads(world.run("import", "--dry-run", "--format", "json", "Marked*").out)
    assert [item["address"] for item in named["resources"]] == ["batch_export.marked"]


TWO = (
    WORKSPACE
    + """\
environments:
  production: {}
  staging: {policy: {prune: true}}
"""
)


def test_plan_o5_what_another_environment_declares_is_not_deleted(world: World) -> None:
    """Each environment deletes only what it applied."""
    write(world.git.folder, {"reconciler.yaml": TWO})
    whole = {"project": "web", "name": "Pg"}
    world.write({"web": {"name": "Web"}}, pg={**whole, "environments": ["production"]})
    alone, all_at_once = world.run("plan", "-e", "staging"), world.run("plan", "-e", "*")
    assert (alone.code, all_at_once.code) == (0, 0)
    assert "to delete" not in alone.out
