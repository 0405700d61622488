"""The use case `init --ci`: write the recipe of a host into the repository of a workspace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from reconciler.commands.files import path_in_repository
from reconciler.commands.import_.choice import key_of
from reconciler.commands.init.files import InitOptions
from reconciler.editing.writing import write_files
from reconciler.errors import BadUsage
from reconciler.model.text import printable, quoted
from reconciler.packaged import packaged
from reconciler.version import REPOSITORY

_WORKFLOWS = ("plan", "comment", "apply", "drift")
RECIPES: Mapping[str, Mapping[str, str]] = {
    "github": {
        f".github/workflows/reconciler-{name}.yml": f"github/reconciler-{name}.yml"
        for name in _WORKFLOWS
    },
    "gitlab": {
        ".gitlab/reconciler.yml": "gitlab/environment.yml",
        ".gitlab/reconciler-component.yml": "gitlab/reconciler.yml",
        ".gitlab-ci.yml": "gitlab/gitlab-ci.yml",
    },
    "azure": {".azure-pipelines/reconciler.yml": "azure/reconciler.yml"},
}
"""The files of each host in a repository, and in the folder of recipes.

The first one names the workspace and the environment.
"""

_SHARED = (".gitlab/reconciler-component.yml", ".gitlab-ci.yml")
"""The files that all environments use."""
_HEAD = "# reconciler init --ci"
"""Begins the first line of a file, which names the workspace and the environment."""
_PLAIN = re.compile(r"[\w./ -]+")
_ADDRESS = re.compile(r"https?://[\w.:/\[\]-]+")


class WrittenRecipe(Struct, frozen=True):
    """The files that were written, those that existed and were kept, and what is left to do."""

    written: tuple[str, ...]
    kept: tuple[str, ...]
    next_steps: str


def write_recipe(host: str, options: InitOptions) -> WrittenRecipe:
    """Write the recipe of a host for a workspace and an environment into its repository.

    The address is that of the workspace, or else that of the options; the branch is the default
    branch of origin, or else the current one.

    Raises:
        BadUsage: an unknown environment, or a name that could be read as syntax of a pipeline.
        ReconcilerError: a file cannot be written.

    """
    folder, environment = options.folder, options.environment
    # Without variables, which would name the checkout of a job.
    path = path_in_repository(folder, {}) or "."
    root = folder.resolve()
    for _ in PurePosixPath(path).parts:
        root = root.parent
    base_url, organization = _connection(options)
    source, commit = _installed_from()
    head = f'{_HEAD} {host} -C "{path}" -e "{environment}"\n'
    suffix = _suffix(root / next(iter(RECIPES[host])), head, path, environment)
    values = {
        "WORKSPACE": path,
        "ENVIRONMENT": environment,
        "BRANCH": _default_branch(folder),
        "BASE_URL": base_url.rstrip("/") if base_url else "https://eu.posthog.com",
        "SOURCE": source,
        "COMMIT": commit or "FULL-COMMIT-ID",
        # The ends of the names of files, secrets and workflows.
        "SUFFIX": suffix,
        "END": suffix.upper().replace("-", "_"),
        "TITLE": suffix.replace("-", " ", 1),
        # What starts a pipeline.
        "BELOW": "" if path == "." else f"{path}/",
        "FOLDER": "*" if path == "." else path,
    }
    _check(values)
    sources = {_name(name, suffix): source for name, source in RECIPES[host].items()}
    kept = tuple(name for name in sources if (root / name).exists())
    texts = {}
    for name, file in sources.items():
        if name not in kept:
            text = filled(packaged("recipes").joinpath(file).read_text(encoding="utf-8"), values)
            texts[name] = text if name in _SHARED else head + text
    write_files(root, texts)
    template = resources.files(__package__).joinpath("templates", f"{host}.txt")
    values["ORGANIZATION"] = printable(organization or "the id of the organization")
    steps = filled(template.read_text(encoding="utf-8"), values).splitlines()
    if host != "gitlab" and commit is None:
        steps.append("in the files, SOURCE and COMMIT: where to install reconciler from")
    if base_url is None:
        steps.append(f"in the files, the address of the service, if it is not {values['BASE_URL']}")
    numbered = (f"  {number}. {step}\n" for number, step in enumerate(steps, 1))
    after = f"next, set at the host:\n{''.join(numbered)}"
    return WrittenRecipe(tuple(texts), kept, after if texts else "")


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with values in place of `@NAME@`."""
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _connection(options: InitOptions) -> tuple[str | None, str | None]:
    """Return the address and the organization. Raises BadUsage for an unknown environment."""
    from reconciler.diagnostics import DiagnosticCollector
    from reconciler.files.sources import FolderSource
    from reconciler.files.workspace_file import chosen_environment, read_workspace

    workspace = read_workspace(FolderSource(options.folder), DiagnosticCollector())
    name = chosen_environment(workspace, options.environment, {})
    settings = workspace.section("environments", name)
    # Not references, which only the job resolves.
    base_url, organization = (
        text if isinstance(text := settings.get(key), str) and "${" not in text else None
        for key in ("base_url", "organization")
    )
    return base_url or options.base_url, organization or options.organization


def _check(values: Mapping[str, str]) -> None:
    names = [values[name] for name in ("WORKSPACE", "ENVIRONMENT", "BRANCH")]
    wrong = [name for name in names if not _PLAIN.fullmatch(name)]
    if not _ADDRESS.fullmatch(values["BASE_URL"]):
        wrong.append(values["BASE_URL"])
    if wrong:
        raise BadUsage(
            f"a pipeline cannot refer to {quoted(wrong[0])}",
            hint="use letters, digits, spaces, _ - . and / only",
        )


def _default_branch(folder: Path) -> str:
    """Return the default branch of origin, or else the current branch, or else main."""
    from reconciler.git.ci import REMOTE_BRANCHES
    from reconciler.git.repository import Repository, default_branch

    repository = Repository.containing(folder)
    if repository is None:
        return "main"
    remote = default_branch(repository) or repository.branch_to_be() or "main"
    return remote.removeprefix(REMOTE_BRANCHES)


def _installed_from() -> tuple[str, str | None]:
    """Return the repository and the commit that this program was installed from, if known."""
    from importlib import metadata

    import orjson

    text = metadata.distribution("posthog-reconciler").read_text("direct_url.json")
    origin: dict[str, Any] = orjson.loads(text or "{}")
    url, commit = origin.get("url", ""), origin.get("vcs_info", {}).get("commit_id", "")
    # Not with credentials, or from a folder of this machine.
    if url.startswith("https://") and _ADDRESS.fullmatch(url) and commit.isalnum():
        return url, commit
    return REPOSITORY, None


def _name(name: str, suffix: str) -> str:
    path = PurePosixPath(name)
    return name if name in _SHARED else str(path.with_stem(f"{path.stem}{suffix}"))


def _suffix(first: Path, head: str, path: str, environment: str) -> str:
    """Return the end of the names of the files: the first that no other environment has.

    `first` is the first file, `head` its first line for this workspace and environment.
    """
    suffix = ""
    for name in ("", environment, f"{path}-{environment}"):
        suffix = f"-{key_of(name)}" if name else ""
        file = first.with_stem(f"{first.stem}{suffix}")
        text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else head
        # A file without such a line is one of the user, for this workspace.
        if text.startswith(head) or not text.startswith(_HEAD):
            break
    return suffix
