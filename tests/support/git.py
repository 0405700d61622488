"""Real git repositories, independent of the settings of the machine."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.limits import TIMEOUT

ISOLATED = {
    # Without what pays only in a repository that is kept: upkeep, templates, flushing to disk.
    "GIT_CONFIG_GLOBAL": str(Path(__file__).with_name("gitconfig")),
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": f"t{'@t.example' * (what == 'EMAIL')}"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    },
}


@dataclass(frozen=True)
class Git:
    """A repository in a folder."""

    folder: Path

    @classmethod
    def init(cls, folder: Path) -> Git:
        """Create a repository with the branch `main`."""
        folder.mkdir(parents=True, exist_ok=True)
        git = cls(folder)
        git.run("init", "--quiet", "-b", "main")
        return git

    def run(self, *arguments: str, environ: dict[str, str] | None = None) -> str:
        """Run git and return what it prints."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        ended = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**kept, **ISOLATED, **(environ or {})},
            check=True,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        return ended.stdout.strip()

    def commit(self, message: str = "change", *, day: int = 1) -> str:
        """Commit everything, and return the commit."""
        time = f"2026-01-{day:02}T12:00:00Z"
        dates = {"GIT_AUTHOR_DATE": time, "GIT_COMMITTER_DATE": time}
        self.run("add", "--all")
        self.run("commit", "--quiet", "--allow-empty", "-m", message, environ=dates)
        return self.head()

    def head(self, ref: str = "HEAD") -> str:
        """Return the commit that a reference names."""
        return self.run("rev-parse", ref)

    def inventories(self) -> list[str]:
        """Return the references of the inventories."""
        return self.run("for-each-ref", "--format=%(refname)", "refs/reconciler").split()

    def recorded(self) -> dict[str, dict[str, str]]:
        """Return the entries of all inventories by address."""
        entries: dict[str, dict[str, str]] = {}
        for ref in self.inventories():
            entries |= json.loads(self.run("show", f"{ref}:inventory.json"))
        return entries

    def trust(self, ref: str = "HEAD") -> None:
        """Let a commit be the tip of the default branch of origin, as if it was fetched."""
        self.run("update-ref", "refs/remotes/origin/main", ref)
        self.run("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")

    def clone(self, folder: Path, *options: str) -> Git:
        """Return a clone. One with options is fetched, as a shallow one must be: twice the time."""
        origin = f"file://{self.folder}" if options else str(self.folder)
        self.run("clone", "--quiet", *options, origin, str(folder))
        return Git(folder)

    def bare(self, folder: Path, branch: str = "main") -> Git:
        """Return a bare clone that is the origin of this repository from now on."""
        self.run("clone", "--quiet", "--bare", ".", str(folder))
        self.run("remote", "add", "origin", f"file://{folder}")
        self.run("fetch", "--quiet", "origin")
        self.run("remote", "set-head", "origin", branch)
        return Git(folder)
