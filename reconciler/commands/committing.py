"""Commit files to git, one commit after the other, with nothing else in them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from reconciler.errors import GitUnavailable, ReconcilerError
from reconciler.model.wording import listed, printable
from reconciler.workspace.git.repository import Repository

_SECONDS = 60.0
_MOST_LISTED = 5
_SETTINGS = (
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "commit.gpgSign=false", "-c", "core.autocrlf=false"),
)
"""Hooks and programs that the repository could name do not run."""
_KEPT = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")
"""Prefixes of the variables of git that stay: they say who commits."""


class Committer(Struct, frozen=True):
    """Commits files of a workspace to its repository."""

    repository: Repository

    @classmethod
    def of(cls, folder: Path) -> Committer:
        """Return the committer of a workspace. Raises GitUnavailable outside of a repository."""
        repository = Repository.containing(folder)
        if repository is None:
            raise GitUnavailable(
                f"{folder} is not in a git repository", hint="run in a git clone, or omit --commit"
            )
        return cls(repository)

    def check_clean(self, files: Iterable[str]) -> None:
        """Raise ReconcilerError for files with changes, staged or not."""
        names = [self._path(file) for file in files]
        changed = self._git("status", "--porcelain", "-z", "--", *names) if names else ""
        if changed:
            paths = [printable(entry[3:]) for entry in changed.split("\0") if entry]
            raise ReconcilerError(
                f"files with uncommitted changes: {listed(paths, _MOST_LISTED)}",
                hint="commit or stash them first, or omit --commit",
            )

    def commit(self, files: Iterable[str], message: str) -> str:
        """Commit the present content of files, and return the id. What else is staged stays."""
        names = [self._path(file) for file in files]
        self._git("commit", "--quiet", "--no-verify", "-m", message, "--only", "--", *names)
        return self._git("rev-parse", "HEAD").strip()

    def _path(self, file: str) -> str:
        return f"{self.repository.path}/{file}" if self.repository.path else file

    def _git(self, *arguments: str) -> str:
        """Run git in the root of the repository. Raises GitUnavailable."""
        root = self.repository.root
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("GIT_") or name.startswith(_KEPT)
        }
        place = {"GIT_DIR": str(root / ".git"), "GIT_WORK_TREE": str(root)}
        isolated = {"GIT_LITERAL_PATHSPECS": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        try:
            ended = subprocess.run(  # noqa: S603 - no shell; paths follow `--`
                ["git", "--no-pager", *_SETTINGS, *arguments],  # noqa: S607 - git of the PATH
                cwd=root,
                env={**kept, **isolated, **place},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_SECONDS,
            )
        except (FileNotFoundError, subprocess.TimeoutExpired) as error:
            raise GitUnavailable(f"git {arguments[0]} failed: {error}") from None
        if ended.returncode:
            lines = ended.stderr.decode(errors="replace").strip().splitlines()
            raise GitUnavailable(
                f"git {arguments[0]} failed: {printable(' '.join(lines[:3]))}",
                hint="set user.name and user.email of git, or omit --commit",
            )
        return ended.stdout.decode(errors="replace")
