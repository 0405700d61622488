"""A third kind is one schema file: its objects live as long as those of the other two.

Every command runs twice; the second run has nothing to do. The copy of the program has the schema
of the kind, and no other file that knows it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.contract.hog_functions import SCHEMA, Service, serving
from tests.support.cli import environment, write
from tests.support.git import Git
from tests.support.limits import TIMEOUT

WORKSPACE = """\
version: 1
environments:
  staging: {base_url: "%s", organization: o, api_key: "${env:KEY}"}
policy: {prune: true}
"""
PROJECTS = "projects: {web: {name: Web}, app: {name: App}}\n"
RESOURCES = f"""\
{PROJECTS}hog_functions:
  slack:
    project: web
    name: To Slack
    enabled: true
    hog: "return event"
"""
NOTHING = "No changes. Live state matches the configuration"


@dataclass(frozen=True)
class Program:
    """A copy of the program with the kind, a workspace in a repository, and a service."""

    folder: Path
    service: Service
    git: Git

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command in the workspace; return what it prints."""
        ended = subprocess.run(
            [sys.executable, "-m", "reconciler", *words, "-C", self.git.folder],
            check=False,
            cwd=self.folder,
            env=environment({"PYTHONPATH": str(self.folder), "KEY": "phx_1", "NO_COLOR": "1"}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
        )
        assert ended.returncode == code, ended.stdout
        return ended.stdout

    def apply(self, *words: str) -> str:
        """Commit the files, and apply them twice: the second time there is nothing to do."""
        self.git.commit()
        applied = self.run("apply", "--auto-approve", *words)
        written = list(self.service.writes)
        assert NOTHING in self.run("apply", "--auto-approve")
        assert self.service.writes == written
        return applied

    def state(self) -> list[tuple[object, ...]]:
        """Return what matters of the functions, without their ids."""
        return [
            (name, project, body["enabled"], body["hog"])
            for (name, project, _), body in zip(
                self.service.places(), self.service.alive(), strict=True
            )
        ]

    def edit(self, old: str, new: str) -> None:
        """Change the text of the resources."""
        file = self.git.folder / "resources.yaml"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    for folder in ("reconciler", "schemas"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "schemas/hog_function.schema.json").write_text(json.dumps(SCHEMA))
    with serving() as service:
        git = Git.init(tmp_path / "workspace")
        files = {"reconciler.yaml": WORKSPACE % service.base_url, "resources.yaml": RESOURCES}
        write(git.folder, files)
        yield Program(tmp_path, service, git)


def test_it_is_created_updated_renamed_moved_and_deleted(program: Program) -> None:
    assert "+ create" in program.apply()
    (made,) = program.service.alive()
    assert (made["name"], made["enabled"], made["hog"]) == ("To Slack", True, "return event")
    program.edit("enabled: true", "enabled: false")
    program.apply()
    assert not made["enabled"]

    made["hog"] = "return null"
    for _ in range(2):
        assert "return null" in program.run("drift", "--no-attribute", code=2)
    program.apply()
    assert made["hog"] == "return event"
    program.run("drift", "--no-attribute")
    assert program.service.places() == [("To Slack", "Web", made["id"])]

    written = list(program.service.writes)
    program.run("mv", "hog_function.slack", "chat")
    program.apply()
    assert program.service.writes == written

    program.edit("project: web", "project: app")
    program.apply("--allow-replace")
    ((name, project, live_id),) = program.service.places()
    assert (name, project) == ("To Slack", "App")
    assert live_id != made["id"]

    program.edit("project: app\n", "project: app\n    state: absent\n")
    assert "- delete" in program.apply()
    assert program.service.alive() == []


def test_it_is_imported_and_pruned(program: Program) -> None:
    program.apply()
    written = list(program.service.writes)
    for _ in range(2):
        (program.git.folder / "resources.yaml").write_text(PROJECTS)
        program.run("import", "--into", "resources.yaml")
        assert "hog: return event" in program.run("show", "hog_function.to-slack")
        assert "Imported: nothing" in program.run("import", "--into", "resources.yaml")
    program.apply()
    assert program.service.writes == written

    (program.git.folder / "resources.yaml").write_text(PROJECTS)
    assert "- delete" in program.apply()
    assert program.service.alive() == []
