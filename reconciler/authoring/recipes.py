"""The use case `init --ci`: write the recipe of a host into the repository of a workspace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct

from reconciler.commands.files import path_in_repository
from reconciler.errors import BadUsage
from reconciler.model.text import quoted
from reconciler.packaged import packaged
from reconciler.version import __version__
from reconciler.workspace.writing import write_files

_WORKFLOWS = ("plan", "comment", "apply", "drift")
RECIPES: Mapping[str, Mapping[str, str]] = {
    "github": {
        f".github/workflows/reconciler-{name}.yml": f"github/reconciler-{name}.yml"
        for name in _WORKFLOWS
    },
    "gitlab": {
        ".gitlab/reconciler.yml": "gitlab/reconciler.yml",
        ".gitlab-ci.yml": "gitlab/gitlab-ci.yml",
    },
    "azure": {".azure-pipelines/reconciler.yml": "azure/reconciler.yml"},
}
"""The files of each host in a repository, and in the folder of recipes."""

_PART = re.compile(r"[^A-Za-z0-9_-]+")
_PLAIN = re.compile(r"[\w./ -]+")
_SETTING = r"\b({}(?:: |, value: )){}(?=[\n}}])"


class WrittenRecipe(Struct, frozen=True):
    """The files that were written, and those that existed and were kept."""

    written: tuple[str, ...]
    kept: tuple[str, ...]


def write_recipe(host: str, folder: Path, environment: str) -> WrittenRecipe:
    """Write the recipe of a host for a workspace and an environment into its repository.

    Raises:
        BadUsage: the path or the environment could be read as syntax of a pipeline.
        ReconcilerError: a file cannot be written.

    """
    # Without variables, which would name the checkout of a job.
    path = path_in_repository(folder, {}) or "."
    for name in (path, environment):
        if not _PLAIN.fullmatch(name):
            raise BadUsage(
                f"a pipeline cannot refer to {quoted(name)}",
                hint="use letters, digits, spaces, _ - and . only",
            )
    root = folder.resolve()
    for _ in PurePosixPath(path).parts:
        root = root.parent
    suffix = _suffix(root, path, environment) if host == "github" else ""
    sources = {
        str(PurePosixPath(name).with_stem(f"{PurePosixPath(name).stem}{suffix}")): source
        for name, source in RECIPES[host].items()
    }
    kept = tuple(name for name in sources if (root / name).exists())
    texts = {
        name: _filled(packaged("recipes").joinpath(source), path, environment, suffix)
        for name, source in sources.items()
        if name not in kept
    }
    write_files(root, texts)
    return WrittenRecipe(tuple(texts), kept)


def _suffix(root: Path, path: str, environment: str) -> str:
    """Return the end of the names of the workflows, which is empty for those written first."""
    plan = root / next(iter(RECIPES["github"]))
    names = (f"-{environment}", f"-{path}-{environment}")
    suffixes = ("", *(_PART.sub("-", name) for name in names))
    free = []
    for suffix in suffixes:
        file = plan.with_stem(f"{plan.stem}{suffix}")
        if not file.exists():
            free.append(suffix)
        elif _is_for(file, path, environment):
            return suffix
    return free[0] if free else suffixes[-1]


def _is_for(workflow: Path, path: str, environment: str) -> bool:
    """Return whether a workflow names no other workspace or environment."""
    text = workflow.read_text(encoding="utf-8", errors="replace")
    settings = dict(re.findall(r'^  (WORKSPACE|ENVIRONMENT): "?(.*?)"?$', text, re.MULTILINE))
    return (settings.get("WORKSPACE", path), settings.get("ENVIRONMENT", environment)) == (
        path,
        environment,
    )


def _filled(recipe: Path, path: str, environment: str, suffix: str) -> str:
    """Return the text of a recipe for a workspace. Values are quoted: `no` is a name, too."""
    text = recipe.read_text(encoding="utf-8")
    # The name and the file of a workflow, also where another one refers to them.
    text = re.sub(
        r"^(name: |    workflows: \[)(reconciler \w+)",
        rf"\g<0>{suffix.replace('-', ' ', 1)}",
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(r"\breconciler-\w+(?=\.yml)", rf"\g<0>{suffix}", text)
    for name, default, value in (
        ("(?:WORKSPACE|workspace)", r"\.", path),
        ("(?:ENVIRONMENT|environment)", "production", environment),
        ("VERSION", r"[\d.]+", __version__),
    ):
        text = re.sub(_SETTING.format(name, default), rf'\g<1>"{value}"', text)
    return text.replace("`production`", f"`{environment}`")
