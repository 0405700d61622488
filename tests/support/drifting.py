"""A repository with a workspace that is applied, to change live state behind its back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reconciler.commands.drifted import Drift, Pulled, drift, pull
from reconciler.commands.plan import plan
from reconciler.commands.workspace import Reported, Runtime, Workspace
from reconciler.model.plan import Plan
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Applied:
    """A committed and applied workspace."""

    git: Git
    folder: Path
    running: RunningEmulator
    environ: dict[str, str]

    @classmethod
    def of(
        cls,
        folder: Path,
        running: RunningEmulator,
        files: dict[str, str],
        *environments: str,
        **environ: str,
    ) -> Applied:
        """Write the files, commit, and apply them to all environments."""
        git = Git.init(folder)
        write(folder, files)
        git.commit("start")
        applied = cls(git, folder, running, {**running.environ(), **environ})
        for name in environments or (None,):
            ran = applied.run("apply", "--auto-approve", environment=name)
            assert ran.code == 0, ran.err
        return applied

    def run(self, command: str, *words: str, environment: str | None = None) -> Ran:
        """Run a command on the workspace."""
        chosen = ("-e", environment) if environment is not None else ()
        return reconciler(command, "-C", self.folder, *chosen, *words, environ=self.environ)

    def change(self, name: str, **fields: Any) -> None:
        """Change an export as somebody else would."""
        path = self.running.path_of(name)
        for action in ("pause", "unpause"):
            if fields.get("paused") is (action == "pause"):
                self.running.call("POST", f"{path}{action}/").raise_for_status()
        rest = {key: value for key, value in fields.items() if key != "paused"}
        if rest:
            self.running.call("PATCH", path, rest).raise_for_status()

    def live(self, name: str) -> dict[str, Any]:
        """Return an export as the service returns it."""
        body: dict[str, Any] = self.running.call("GET", self.running.path_of(name)).json()
        return body

    def drift(
        self, *names: str, environment: str | None = None, attribute: bool = True
    ) -> Reported[Drift]:
        """Return the drift."""
        return asyncio.run(drift(self._workspace(environment), names, attribute=attribute))

    def pull(
        self, *names: str, environment: str | None = None, write: bool = True
    ) -> Reported[Pulled]:
        """Write drift into the files."""
        return asyncio.run(pull(self._workspace(environment), names, write=write))

    def plan(self, environment: str | None = None) -> Plan:
        """Return the plan."""
        return asyncio.run(plan(self._workspace(environment))).plan

    def _workspace(self, environment: str | None) -> Workspace:
        runtime = Runtime(environ=self.environ, now=lambda: NOW)
        return Workspace(self.folder, environment, trust_workspace=True, runtime=runtime)

    def text(self, file: str) -> str:
        """Return the text of a file."""
        return (self.folder / file).read_text(encoding="utf-8")
