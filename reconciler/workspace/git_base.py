"""Read the workspace at a git commit.

In a CI job, environment variables name the base: a target branch, or the commit before a push.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from reconciler.errors import GitUnavailable

_ZEROS = re.compile(r"0+$")
_SECONDS = 60.0
_IS_INSIDE = "--is-inside-work-tree"


class GitSource:
    """The files below a folder at a commit. Raises GitUnavailable."""

    def __init__(self, folder: Path, commit: str) -> None:
        self._folder = folder
        self._commit = commit
        listed = _git(folder, "ls-tree", "-r", "-z", "--name-only", commit, ".")
        self._names = sorted(name for name in listed.decode().split("\0") if name)

    def names(self) -> Sequence[str]:
        """Return every file below the folder, sorted."""
        return self._names

    def read(self, name: str) -> bytes | None:
        """Return the content of a file at the commit."""
        if name not in self._names:
            return None
        return _git(self._folder, "show", f"{self._commit}:./{name}")


def base_commit(folder: Path, *, ref: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the commit to compare with, None without git or a base.

    Raises GitUnavailable if the base of the caller or of the CI job cannot be read.
    """
    if ref is not None:
        if ref.startswith("-"):
            raise GitUnavailable(f"invalid git reference '{ref}'")
        return _merge_base(folder, ref)
    named = _named_by_ci(environ)
    if named is None or not _is_true(folder, _IS_INSIDE):
        return None
    return _merge_base(folder, named)


def _named_by_ci(environ: Mapping[str, str]) -> str | None:
    """Return the base that the environment of a CI job names."""
    if not environ.get("CI") and not environ.get("TF_BUILD"):
        return None
    candidates = (
        _branch(environ.get("GITHUB_BASE_REF")),
        _before_push(environ),
        environ.get("CI_MERGE_REQUEST_DIFF_BASE_SHA"),
        environ.get("CI_COMMIT_BEFORE_SHA"),
        _branch(environ.get("BITBUCKET_PR_DESTINATION_BRANCH")),
        _branch(environ.get("BUILDKITE_PULL_REQUEST_BASE_BRANCH")),
        _branch((environ.get("SYSTEM_PULLREQUEST_TARGETBRANCH") or "").removeprefix("refs/heads/")),
        _branch(environ.get("CHANGE_TARGET")),
    )
    return next((name for name in candidates if name and not _ZEROS.match(name)), None)


def _branch(name: str | None) -> str | None:
    return f"origin/{name}" if name else None


def _before_push(environ: Mapping[str, str]) -> str | None:
    """Return the commit before a push, from the event file of the job."""
    path = environ.get("GITHUB_EVENT_PATH")
    if environ.get("GITHUB_EVENT_NAME") != "push" or not path:
        return None
    try:
        event = orjson.loads(Path(path).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    before = event.get("before") if isinstance(event, dict) else None
    return before if isinstance(before, str) else None


def _is_true(folder: Path, question: str) -> bool:
    """Return the answer of `git rev-parse` to a question, False without one."""
    try:
        return _git(folder, "rev-parse", question).strip() == b"true"
    except GitUnavailable:
        return False


def _merge_base(folder: Path, ref: str) -> str:
    if not _is_true(folder, _IS_INSIDE):
        raise GitUnavailable(
            f"{folder} is not in a git repository", hint="omit --base, or run in a git clone"
        )
    problem = f"unknown git commit '{ref}'"
    try:
        commit = _git(folder, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        problem = f"no common ancestor of HEAD and '{ref}'"
        return _git(folder, "merge-base", "HEAD", commit.decode().strip()).decode().strip()
    except GitUnavailable:
        raise GitUnavailable(problem, hint=_how_to_fetch(folder, ref)) from None


def _how_to_fetch(folder: Path, ref: str) -> str:
    if not _is_true(folder, "--is-shallow-repository"):
        branch = ref.removeprefix("origin/")
        return f"fetch it: git fetch origin {branch}"
    return (
        "fetch the history of this shallow clone: `git fetch --unshallow`, or fetch-depth: 0 in "
        "the checkout step of the job"
    )


def _git(folder: Path, *arguments: str) -> bytes:
    """Return what git prints. Raises GitUnavailable."""
    try:
        return subprocess.run(  # noqa: S603 - no shell, and references are checked before
            ["git", "-C", str(folder), "--no-pager", *arguments],  # noqa: S607 - git of the PATH
            capture_output=True,
            check=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
        ).stdout
    except FileNotFoundError:
        raise GitUnavailable("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise GitUnavailable(f"git {arguments[0]} timed out after {_SECONDS:g} seconds") from None
    except subprocess.CalledProcessError as error:
        raise GitUnavailable(
            f"git {arguments[0]} failed with exit code {error.returncode}"
        ) from None
