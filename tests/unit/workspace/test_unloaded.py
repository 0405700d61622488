"""`prune: git` keeps what is still in the tree but was not loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from reconciler.commands.history import WorkspaceHistory
from reconciler.model.address import Address
from reconciler.workspace.loading import load
from reconciler.workspace.sources import keys_in_unloaded
from tests.support.cli import write
from tests.support.git import Git

EXPORT = """batch_exports:
  lake:
    project: {id: 1}
    name: Lake
    interval: hour
    destination: {type: NoOp, config: {}}
"""
FILES = {
    "reconciler.yaml": "version: 1\npolicy: {prune: git}\n",
    "exports/lake.yaml": EXPORT,
    "projects.yaml": "projects: {web: {name: Web}}\n",
}


def kept_after(tmp_path: Path, change: Callable[[Git], object]) -> Mapping[Address, str]:
    """Return what is kept after a change of the files."""
    git = Git.init(tmp_path / "repo")
    write(git.folder, FILES)
    git.commit()
    change(git)
    loaded = load(git.folder, environment=None, environ={})
    assert Address("batch_export", "lake") not in loaded.desired.resources
    history = WorkspaceHistory.of(git.folder, loaded, {})
    assert history is not None
    base = history.base(None)
    assert base is not None
    return base.kept


def patterns(*globs: str) -> Callable[[Git], object]:
    """Return a change of the patterns of resource files."""
    text = f"version: 1\nresources: [{', '.join(globs)}]\npolicy: {{prune: git}}\n"
    return lambda git: write(git.folder, {"reconciler.yaml": text})


def moved(target: str) -> Callable[[Git], object]:
    """Return a change of the place of the file."""

    def move(git: Git) -> None:
        (git.folder / target).parent.mkdir(parents=True, exist_ok=True)
        git.run("mv", "exports/lake.yaml", target)

    return move


def nested(git: Git) -> None:
    write(git.folder, {"exports/reconciler.yaml": "version: 1\n"})


def moved_and_pattern(git: Git) -> None:
    moved("exports/lake.YAML")(git)
    patterns("projects.yaml")(git)


def moved_into_workspace(git: Git) -> None:
    write(git.folder, {"team/reconciler.yaml": "version: 1\n"})
    moved("team/all.yaml")(git)


@pytest.mark.parametrize(
    ("change", "file"),
    [
        (patterns("projects.yaml"), "exports/lake.yaml"),
        (moved_and_pattern, "exports/lake.YAML"),
        (moved(".exports/lake.yaml"), ".exports/lake.yaml"),
        (moved(".exports/other.yml"), ".exports/other.yml"),
        (nested, "exports/lake.yaml"),
        (moved_into_workspace, "team/all.yaml"),
    ],
)
def test_configuration_1_a_resource_that_is_only_not_loaded_is_kept(
    tmp_path: Path, change: Callable[[Git], object], file: str
) -> None:
    (reason,) = kept_after(tmp_path, change).values()
    assert file in reason
    assert "is not loaded" in reason


@pytest.mark.parametrize(
    "change",
    [
        lambda git: git.run("rm", "--quiet", "exports/lake.yaml"),
        lambda git: write(git.folder, {"exports/lake.yaml": "batch_exports: {}\n"}),
        moved("exports/lake.yaml.disabled"),
        moved("node_modules/lake.yaml"),
    ],
)
def test_configuration_1_a_resource_that_was_removed_is_not_kept(
    tmp_path: Path, change: Callable[[Git], object]
) -> None:
    write(tmp_path / "repo", {".hidden/other.yaml": "batch_exports: {other: {}}\n"})
    assert kept_after(tmp_path, change) == {}


def test_keys_are_read_from_files_with_errors_and_from_json(tmp_path: Path) -> None:
    texts = {
        ".a/x.yaml": '{"batch_exports": {"lake": {}}}',
        "b.yml": "<<<<<<< HEAD\nbatch_exports:\n  'lake':\n\tbad: [\n",
        "c.txt": "batch_exports: {lake: {}}",
        "d.yaml": "loaded: 1",
    }
    write(tmp_path, texts)
    (tmp_path / "link.yaml").symlink_to(tmp_path / "b.yml")
    keys = keys_in_unloaded(tmp_path, {"d.yaml"})
    assert sorted(keys) == [".a/x.yaml", "b.yml"]
    assert all({"batch_exports", "lake"} <= names for names in keys.values())
