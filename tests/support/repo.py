"""A clone of a repository with a workspace, its origin, and the service to which it is applied."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.cli import Ran, reconciler, write
from tests.support.declared import declared, s3
from tests.support.emulator import RunningEmulator
from tests.support.git import Git

SETTINGS = "version: 1\nsecrets: [ONE, TWO, ID]\npolicy: {prune: true, max_deletes: 9}\n"
SECRETS = {
    "RECONCILER_SECRET_ONE": "first-value-1",
    "RECONCILER_SECRET_TWO": "second-value-2",
    "RECONCILER_SECRET_ID": "an-access-key",
}
JOB = {"CI": "true", "CI_DEFAULT_BRANCH": "main"}


@dataclass(frozen=True)
class Repo:
    """A clone with the workspace `w`, its bare origin, and the service."""

    git: Git
    origin: Git
    running: RunningEmulator
    folder: Path
    env: dict[str, str]

    @classmethod
    def of(
        cls,
        folder: Path,
        running: RunningEmulator,
        env: dict[str, str] | None = None,
        **files: str,
    ) -> Repo:
        """Return one below a folder, with other files than `SETTINGS` in its first commit."""
        # One is copied for all tests: git takes much longer.
        template = folder.parent / f"template{hash(tuple(files.items()))}"
        if not template.exists():
            git = Git.init(template / "repo")
            write(git.folder / "w", files or {"reconciler.yaml": SETTINGS})
            git.commit("start")
            git.bare(template / "origin.git")
        shutil.copytree(template, folder, dirs_exist_ok=True)
        for config in (folder / "repo/.git/config", folder / "origin.git/config"):
            config.write_text(config.read_text().replace(str(template), str(folder)))
        repo = folder / "repo"
        return cls(Git(repo), Git(folder / "origin.git"), running, repo / "w", env or {})

    def publish(self, message: str = "change") -> str:
        """Commit and push."""
        commit = self.git.commit(message)
        self.git.run("push", "--quiet", "--force", "origin", "HEAD:main")
        return commit

    def commit(self, message: str = "change", **exports: dict[str, Any]) -> str:
        """Write the exports to the workspace, commit and push."""
        self.write(**exports)
        return self.publish(message)

    def applied(self, **exports: dict[str, Any]) -> str:
        """Commit the exports and apply them."""
        commit = self.commit(**exports)
        self.apply()
        return commit

    def call(self, method: str, name: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Change an export in the service, and return it as it was."""
        export: dict[str, Any] = self.running.exports()[name]
        path = f"/api/projects/{export['team_id']}/batch_exports/{export['id']}/"
        self.running.call(method, path, body)
        return export

    def write(self, **exports: dict[str, Any]) -> None:
        """Write the exports to the workspace."""
        write(self.folder, {"resources.yaml": declared(**exports)})

    def run(self, *words: str | Path, environ: dict[str, str] | None = None) -> Ran:
        """Run a command on the workspace."""
        command, *more = words
        given = {**self.running.environ(), **SECRETS, **self.env, **(environ or {})}
        return reconciler(command, "-C", self.folder, *more, environ=given)

    def apply(self, *more: str, code: int = 0) -> Ran:
        """Run apply, and push the inventory in a job."""
        push = ("--push",) if self.env else ()
        ran = self.run("apply", "--auto-approve", *push, *more)
        assert ran.code == code, ran.out + ran.err
        return ran

    def plan(self, *more: str, code: int = 0) -> dict[str, Any]:
        """Return a plan."""
        ran = self.run("plan", "--format", "json", *more)
        assert ran.code == code, ran.out + ran.err
        plan: dict[str, Any] = json.loads(ran.out)
        return plan

    def changes(self, *more: str, code: int = 0) -> list[str]:
        """Return what a plan changes, as `action address`."""
        plan = self.plan(*more, code=code)
        return [f"{c['action']} {c['address']}" for c in plan["changes"]]

    def notes(self, *more: str) -> dict[str, str]:
        """Return the notes of a plan by code."""
        return {note["code"]: note["message"] for note in self.plan(*more)["notes"]}

    def left(self) -> dict[str, str]:
        """Return what leaves management, with the reason."""
        return {item["address"]: item["reason"] for item in self.plan()["leaving"]}

    def exports(self) -> set[str]:
        """Return the names of the live exports."""
        return set(self.running.exports())

    @property
    def kept(self) -> Git:
        """The repository that has the inventory."""
        return self.origin if self.env else self.git

    @property
    def ref(self) -> str:
        """The reference of the only inventory."""
        (name,) = self.kept.inventories()
        return name

    def entries(self) -> dict[str, dict[str, str]]:
        """Return the entries of the inventory."""
        return self.kept.recorded()

    def forget(self) -> None:
        """Delete the inventory."""
        for where in (self.git, self.origin):
            for name in where.inventories():
                where.run("update-ref", "-d", name)


def secret_in(variable: str) -> dict[str, Any]:
    """Return an export that takes its secret from a variable."""
    names = ("ID", variable)
    return s3(*(f"${{secret:env:RECONCILER_SECRET_{name}}}" for name in names))
