"""The use case `init --ci`: write the recipe of a host into the repository of a workspace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from reconciler.commands.files import path_in_repository
from reconciler.errors import BadUsage
from reconciler.model.text import printable, quoted
from reconciler.packaged import packaged
from reconciler.version import REPOSITORY
from reconciler.workspace.writing import write_files

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

_COMPONENT = ".gitlab/reconciler-component.yml"
_SHARED = (_COMPONENT, ".gitlab-ci.yml")
"""The files that all environments use."""
_PATHS = {
    '["**"]': '["{0}/**", ".github/workflows/reconciler-*.yml"]',
    '["**/*"]': '["{0}/**/*"]',
    '["*"]': '["{0}"]',
}
"""The files that start a pipeline: of a repository, and of a workspace in it."""
_PART = re.compile(r"[^A-Za-z0-9_-]+")
_PLAIN = re.compile(r"[\w./ -]+")
_ADDRESS = re.compile(r"https?://[\w.:/\[\]-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_SETTING = r"\b({}(?:: |, value: )){}(?=[\n}}])"
_NAMED = re.compile(
    r'^ +(?:- {name: )?(workspace|environment)(?:: |, value: )"?(.*?)"?}?$',
    re.MULTILINE | re.IGNORECASE,
)
_BRANCH = re.compile(
    r"((?:branches: |include: )\[|refs/heads/|refs/remotes/origin/|\b(?:branch|for) )main\b"
)
_WORKFLOW = re.compile(r"^(name: |    workflows: \[)(reconciler \w+)", re.MULTILINE)
_FILE = re.compile(r"\breconciler(?:-(?!component)\w+)?(?=\.yml)")
_KEY = re.compile(r"\bPOSTHOG_(?:ORGANIZATION|READ_KEY|WRITE_KEY)\b")


class Known(Struct, frozen=True):
    """What options and variables say about the service of an environment, None if nothing."""

    base_url: str | None = None
    organization: str | None = None


class WrittenRecipe(Struct, frozen=True):
    """The files that were written, those that existed and were kept, and what is left to do."""

    written: tuple[str, ...]
    kept: tuple[str, ...]
    next_steps: str


class _Filling(Struct, frozen=True):
    """What a recipe is filled with. `suffix` ends the names of files, `end` those of secrets."""

    path: str
    environment: str
    base_url: str
    branch: str
    suffix: str
    source: str
    commit: str | None

    @property
    def end(self) -> str:
        return self.suffix.upper().replace("-", "_")


def write_recipe(host: str, folder: Path, environment: str, known: Known) -> WrittenRecipe:
    """Write the recipe of a host for a workspace and an environment into its repository.

    The address is that of the workspace, or else the known one; the branch is the default branch of
    origin, or else the current one.

    Raises:
        BadUsage: an unknown environment, or a name that could be read as syntax of a pipeline.
        ReconcilerError: a file cannot be written.

    """
    # Without variables, which would name the checkout of a job.
    path = path_in_repository(folder, {}) or "."
    root = folder.resolve()
    for _ in PurePosixPath(path).parts:
        root = root.parent
    own = _connection(folder, environment)
    base_url = own.base_url or known.base_url
    source, commit = _installed_from()
    filling = _Filling(
        path,
        environment,
        base_url.rstrip("/") if base_url else "https://eu.posthog.com",
        _default_branch(folder),
        _suffix(root, host, path, environment),
        source,
        commit,
    )
    _check(filling)
    sources = {_name(name, filling): source for name, source in RECIPES[host].items()}
    kept = tuple(name for name in sources if (root / name).exists())
    texts = {
        name: _filled(packaged("recipes").joinpath(source), filling)
        for name, source in sources.items()
        if name not in kept
    }
    write_files(root, texts)
    organization = own.organization or known.organization
    steps = _next_steps(host, filling, organization, is_known=base_url is not None)
    return WrittenRecipe(tuple(texts), kept, steps if texts else "")


def _connection(folder: Path, environment: str) -> Known:
    """Return what the workspace says. Raises BadUsage for an unknown environment."""
    from reconciler.diagnostics import DiagnosticCollector
    from reconciler.workspace.sources import FolderSource
    from reconciler.workspace.workspace_file import chosen_environment, read_workspace

    workspace = read_workspace(FolderSource(folder), DiagnosticCollector())
    settings = workspace.section("environments", chosen_environment(workspace, environment, {}))
    texts = (settings.get("base_url"), settings.get("organization"))
    # Not references, which only the job resolves.
    return Known(*(text if isinstance(text, str) and "${" not in text else None for text in texts))


def _check(filling: _Filling) -> None:
    names = (filling.path, filling.environment, filling.branch)
    wrong = [name for name in names if not _PLAIN.fullmatch(name)]
    if not _ADDRESS.fullmatch(filling.base_url):
        wrong.append(filling.base_url)
    if wrong:
        raise BadUsage(
            f"a pipeline cannot refer to {quoted(wrong[0])}",
            hint="use letters, digits, spaces, _ - . and / only",
        )


def _default_branch(folder: Path) -> str:
    """Return the default branch of origin, or else the current branch, or else main."""
    from reconciler.workspace.git.base import default_branch
    from reconciler.workspace.git.ci import REMOTE_BRANCHES
    from reconciler.workspace.git.repository import Repository

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
    if url.startswith("https://") and _ADDRESS.fullmatch(url) and _COMMIT.fullmatch(commit):
        return url, commit
    return REPOSITORY, None


def _name(name: str, filling: _Filling) -> str:
    path = PurePosixPath(name)
    return name if name in _SHARED else str(path.with_stem(f"{path.stem}{filling.suffix}"))


def _suffix(root: Path, host: str, path: str, environment: str) -> str:
    """Return the end of the names of the files, which is empty for those written first."""
    first = root / next(iter(RECIPES[host]))
    names = (f"-{environment}", f"-{path}-{environment}")
    suffixes = ("", *(_PART.sub("-", name) for name in names))
    free = []
    for suffix in suffixes:
        file = first.with_stem(f"{first.stem}{suffix}")
        if not file.exists():
            free.append(suffix)
        elif _is_for(file, path, environment):
            return suffix
    return free[0] if free else suffixes[-1]


def _is_for(pipeline: Path, path: str, environment: str) -> bool:
    """Return whether a pipeline names no other workspace or environment."""
    text = pipeline.read_text(encoding="utf-8", errors="replace")
    settings = {name.lower(): value for name, value in _NAMED.findall(text)}
    return (settings.get("workspace", path), settings.get("environment", environment)) == (
        path,
        environment,
    )


def _filled(recipe: Path, filling: _Filling) -> str:
    """Return the text of a recipe for a workspace. Values are quoted: `no` is a name, too."""
    text = recipe.read_text(encoding="utf-8")
    if "\nspec:\n" in text:
        # A component of GitLab has inputs instead.
        return text
    # The name and the file of a workflow, also where another one refers to them.
    text = _WORKFLOW.sub(rf"\g<0>{filling.suffix.replace('-', ' ', 1)}", text)
    text = _FILE.sub(rf"\g<0>{filling.suffix}", text)
    text = _KEY.sub(rf"\g<0>{filling.end}", text)
    text = re.sub(r"\bposthog-(read|write)\b", rf"\g<0>{filling.suffix}", text)
    text = text.replace('suffix: ""', f'suffix: "{filling.end}"')
    text = _BRANCH.sub(rf"\g<1>{filling.branch}", text)
    for name, default, value in (
        ("(?:WORKSPACE|workspace)", r"\.", filling.path),
        ("(?:ENVIRONMENT|environment)", "production", filling.environment),
        ("SOURCE", "ADDRESS-OF-RECONCILER", filling.source),
        ("COMMIT", "FULL-COMMIT-ID", filling.commit or "FULL-COMMIT-ID"),
        ("(?:RECONCILER_BASE_URL|base_url)", '"?https://eu.posthog.com"?', filling.base_url),
    ):
        text = re.sub(_SETTING.format(name, default), rf'\g<1>"{value}"', text)
    for everything, below in _PATHS.items() if filling.path != "." else ():
        text = text.replace(everything, below.format(filling.path))
    return text.replace("`production`", f"`{filling.environment}`")


def _next_steps(host: str, filling: _Filling, organization: str | None, *, is_known: bool) -> str:
    """Return what is left to do at the host, with the names of its secrets and variables."""
    template = resources.files(__package__).joinpath("templates", f"{host}.txt")
    text = template.read_text(encoding="utf-8").format(
        environment=filling.environment,
        branch=filling.branch,
        suffix=filling.suffix,
        end=filling.end,
        organization=printable(organization or "the id of the organization"),
    )
    steps = text.splitlines()
    if host != "gitlab" and filling.commit is None:
        steps.append("in the files, SOURCE and COMMIT: where to install reconciler from")
    if not is_known:
        steps.append(f"in the files, the address of the service, if it is not {filling.base_url}")
    numbered = (f"  {number}. {step}\n" for number, step in enumerate(steps, 1))
    return f"next, set at the host:\n{''.join(numbered)}"
