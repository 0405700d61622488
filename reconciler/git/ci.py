"""What the variables of a CI job say about the job and its commits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import orjson

from reconciler.model.values import value_at

TRUST_VARIABLE = "RECONCILER_TRUST_REF"
REMOTE_BRANCHES = "refs/remotes/origin/"
HEADS = "refs/heads/"
_HEAD_VARIABLES = (
    "GITHUB_HEAD_REF",
    "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME",
    "SYSTEM_PULLREQUEST_SOURCEBRANCH",
    "CHANGE_BRANCH",
    "GITHUB_REF_NAME",
    "CI_COMMIT_REF_NAME",
    "BUILD_SOURCEBRANCH",
    "BITBUCKET_BRANCH",
    "BUILDKITE_BRANCH",
    "BRANCH_NAME",
)
"""Variables with the branch of a job. Those of pull requests come first."""
JOB_VARIABLES = ("CI", "TF_BUILD", "JENKINS_URL", "TEAMCITY_VERSION", "CODEBUILD_BUILD_ID")
"""Variables that hosts set in jobs. Most set CI; Azure, TeamCity and CodeBuild do not."""
_GITHUB = ("SERVER_URL", "REPOSITORY", "RUN_ID")
_AZURE = ("SYSTEM_COLLECTIONURI", "SYSTEM_TEAMPROJECT", "BUILD_BUILDID")
_URL_VARIABLES = ("CI_JOB_URL", "BUILDKITE_BUILD_URL", "CIRCLE_BUILD_URL", "BUILD_URL")
_URL = re.compile(r"https?://[\w.:/?=%~+-]+")
"""An address without credentials that is one word of Markdown."""


def is_job(environ: Mapping[str, str]) -> bool:
    """Return whether the variables are those of a CI job."""
    return any(environ.get(name) for name in JOB_VARIABLES)


def head_branch_of(environ: Mapping[str, str]) -> str | None:
    """Return the branch that a job builds, in a pull request its source, None without one.

    Whoever opens a pull request chooses the name.
    """
    if not is_job(environ):
        return None
    names = (environ.get(variable, "").removeprefix(HEADS) for variable in _HEAD_VARIABLES)
    return next((name for name in names if name), None)


def default_branch_of(environ: Mapping[str, str]) -> str | None:
    """Return the default branch of the repository at its host, as far as the job knows it."""
    name = _of_github_event(environ, "repository", "default_branch")
    return _branch(name or environ.get("CI_DEFAULT_BRANCH"))


def job_url_of(environ: Mapping[str, str]) -> str | None:
    """Return the address of the page of a job, None if it is unknown."""
    server, repository, run = (environ.get(f"GITHUB_{name}") for name in _GITHUB)
    collection, project, build = map(environ.get, _AZURE)
    if server and repository and run:
        url = f"{server}/{repository}/actions/runs/{run}"
    elif collection and project and build:
        url = f"{collection}{quote(project)}/_build/results?buildId={build}"
    else:
        url = next((environ[name] for name in _URL_VARIABLES if environ.get(name)), "")
    return url if _URL.fullmatch(url) else None


def _branch(name: str | None) -> str | None:
    # In full: a tag named origin/main would otherwise be used instead of the branch.
    return f"{REMOTE_BRANCHES}{name}" if name else None


def _of_github_event(environ: Mapping[str, str], *path: str) -> str | None:
    """Return a text in the event of a job, None without it or if it cannot be read."""
    file = environ.get("GITHUB_EVENT_PATH")
    try:
        event = orjson.loads(Path(file).read_bytes()) if file else None
    except (OSError, orjson.JSONDecodeError):
        return None
    value = value_at(event, path)
    return value if isinstance(value, str) else None
