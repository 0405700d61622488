"""Decide whose settings count: those of the loaded files, or those of the trusted branch.

A pull request may propose any file, so without a terminal its files do not choose where the API key
goes, what may be read, and what the policy allows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from reconciler.diagnostics import DiagnosticCollector, Level
from reconciler.errors import GitMissing, GitUnavailable
from reconciler.files.workspace_file import Workspace, checked_workspace
from reconciler.files.yaml_construct import AMBIGUOUS
from reconciler.files.yaml_document import Document
from reconciler.git.ci import is_job
from reconciler.git.repository import GitSource, Objects, Repository, TrustedBranch, trusted_branch
from reconciler.model.settings import ADDRESS, API_KEY
from reconciler.model.text import quoted
from reconciler.paths import WORKSPACE_FILE, content_id

_FETCH = (
    "fetch the default branch (fetch-depth: 0 in the checkout step; elsewhere `git fetch` and "
    "`git remote set-head origin --auto`)"
)


# Without slots, since cached properties need a dict.
class TrustedTip(Struct, frozen=True, dict=True):
    """The tip of the trusted branch, or why there is none.

    branch, commit
        The full name of the branch, and its commit. None if there is none.
    in_job
        Whether this is a CI job.
    problem, fix
        Why there is no trusted branch, and what to do, empty if there is one.
    """

    repository: Repository | None = None
    branch: str | None = None
    commit: str | None = None
    in_job: bool = False
    problem: str = ""
    fix: str = ""

    @cached_property
    def _files(self) -> GitSource | None:
        """The files of the workspace at the tip. Git runs when they are needed, which is seldom."""
        if self.repository is None or self.commit is None:
            return None
        return GitSource(Objects(self.repository), self.commit)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file of the workspace at the tip, None without one."""
        return self._files.read(name) if self._files is not None else None

    @property
    def name(self) -> str:
        """The branch in words."""
        return self.branch or "the trusted branch"

    @property
    def reason(self) -> str:
        """Why a setting that only the loaded files have does not count."""
        return self.problem or f"{self.branch} at {(self.commit or '')[:7]} does not set this"

    def workspace(self, own: Workspace, raw: bytes | None) -> Workspace:
        """Return the workspace file of the tip: the own one if it is the same, empty without one.

        `raw` is the content of the own one. Raises GitUnavailable for one that cannot be used.
        """
        repository, blob = self.repository, None
        if repository is not None and self.commit is not None:
            blob = repository.blob(self.commit, WORKSPACE_FILE)
        if repository is None or blob is None:
            return Workspace(Document(WORKSPACE_FILE), {})
        if raw is not None and content_id(raw) == blob:
            return own
        content = Objects(repository).content(blob)
        if content == raw:  # In a repository with SHA-256.
            return own
        problems = DiagnosticCollector(lenient=AMBIGUOUS)
        workspace = checked_workspace(content, problems)
        self.check(problems)
        return workspace

    def check(self, problems: DiagnosticCollector) -> None:
        """Raise GitUnavailable with the first error in the files of the tip."""
        errors = (item for item in problems.in_order() if item.level is Level.ERROR)
        first = next(errors, None)
        if first is not None:
            place = f"{first.at}: " if first.at is not None else ""
            raise GitUnavailable(
                f"errors in the files of {self.name}: {place}{first.message} [{first.code}]",
                hint="correct them there, or trust the files of this folder with --trust-workspace",
            )


def trusted_tip(
    folder: Path, environ: Mapping[str, str], *, interactive: bool
) -> TrustedTip | None:
    """Return the tip of the trusted branch, None where the loaded files decide themselves.

    They do on a terminal, and in a folder without a repository, or in one that has nothing of
    others; never in a CI job.

    Raises GitUnavailable, and BadUsage for an invalid RECONCILER_TRUST_REF.
    """
    in_job = is_job(environ)
    repository = Repository.containing(folder)
    if not in_job and (interactive or repository is None):
        return None
    if repository is None:
        problem, fix = "this folder is not in a git repository", "check it out with git"
    elif repository.is_nested:
        problem = "this repository is inside another one, as a submodule is"
        fix = "move the workspace to the outer repository"
    else:
        try:
            branch = trusted_branch(repository, environ)
            if branch is not None or in_job or not repository.is_alone:
                return _of_branch(folder, repository, branch, in_job=in_job)
            if not environ.get(API_KEY) or all(map(environ.get, ADDRESS.values())):
                return None
            problem = f"{API_KEY} is set without {' and '.join(ADDRESS.values())}"
            fix = f"unset {API_KEY}"
        except GitMissing:
            problem, fix = "git is not installed", "install git"
    return TrustedTip(in_job=in_job, problem=problem, fix=fix)


def _of_branch(
    folder: Path, repository: Repository, branch: TrustedBranch | None, *, in_job: bool
) -> TrustedTip:
    if branch is None:
        problem = "the default branch is not in this clone"
        fix = f"{_FETCH}, or set RECONCILER_TRUST_REF"
    elif (link := _new_link(folder, repository, branch)) is not None:
        problem = f"{quoted(link)} is a link here, and another one or none on {branch.ref}"
        fix = "use -C with the folder that it refers to, or merge the link first"
    else:
        return TrustedTip(repository, branch.ref, branch.commit, in_job)
    return TrustedTip(in_job=in_job, problem=problem, fix=fix)


def _new_link(folder: Path, repository: Repository, branch: TrustedBranch) -> str | None:
    """Return a link in the path of a workspace that the trusted branch does not have.

    In place of a workspace it would bring the settings of another one, whose policy may allow more.
    """
    path = Path(os.path.normpath(folder.absolute()))
    for place in (path, *path.parents):
        above = place.parent.resolve()
        if place.is_symlink() and above.is_relative_to(repository.root):
            name = (above / place.name).relative_to(repository.root).as_posix()
            if repository.link(branch.commit, name) != os.fsencode(place.readlink()):
                return name
    return None
