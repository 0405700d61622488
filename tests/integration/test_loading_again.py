"""Files and HEAD that change while a workspace is loaded: it is loaded again, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.commands.session import Session, open_session
from reconciler.commands.workspace import Runtime, Workspace
from reconciler.diagnostics import InvalidConfiguration
from reconciler.errors import FilesChanged
from tests.support.cli import write
from tests.support.git import Git

VARIABLE = "RECONCILER_VAR_NAME"
SETTINGS = "version: 1\nresources: ['*.yaml']\n"
ONE = f"projects: {{one: {{name: '${{env:{VARIABLE}}}'}}}}\n"
TWO = {"two.yaml": "projects: {two: {name: Two}}\n"}
BROKEN = {"one.yaml": f"{ONE}batch_exports: {{x: {{interval: nonsense}}}}\n"}


class Changing(dict[str, str]):
    """Variables of a machine on which something changes when one of them is read."""

    def __init__(self, change: Callable[[], object], times: int) -> None:
        super().__init__({VARIABLE: "One", "CI": "true"})
        self.change, self.times, self.read = change, times, 0

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
        if name == VARIABLE:
            self.read += 1
            if self.read <= self.times:
                self.change()
        return super().get(name, default)


@pytest.fixture
def git(tmp_path: Path) -> Git:
    git = Git.init(tmp_path)
    write(tmp_path, {"reconciler.yaml": SETTINGS, "one.yaml": ONE, "notes.txt": "x"})
    git.commit("main")
    git.run("switch", "--quiet", "-c", "other")
    write(tmp_path, TWO)
    git.commit("other")
    git.run("switch", "--quiet", "main")
    return git


def opened(git: Git, environ: Changing) -> Session:
    runtime = Runtime(environ=environ, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    return open_session(Workspace(git.folder, trust_workspace=True, runtime=runtime))


def edit(git: Git) -> None:
    """Write a file of the same size."""
    write(git.folder, {"one.yaml": ONE.replace("one:", "two:")})


def replace(git: Git) -> None:
    """Replace a file by another one, as editors do, with the same time."""
    edit(git)
    (git.folder / "one.yaml").rename(git.folder / "two.yaml")


@pytest.mark.parametrize(
    ("change", "keys", "loads"),
    [
        (lambda git: git.run("switch", "--quiet", "other"), {"one", "two"}, 2),
        (lambda git: git.commit("nothing but a commit"), {"one"}, 2),
        (edit, {"two"}, 2),
        (lambda git: write(git.folder, TWO), {"one", "two"}, 2),
        (replace, {"two"}, 2),
        (lambda git: write(git.folder, {"notes.txt": "longer", "notes.json": "{}"}), {"one"}, 1),
        (lambda git: write(git.folder, {".hidden/x.yaml": "projects: {}\n"}), {"one"}, 1),
    ],
)
def test_plan_d4_what_changes_meanwhile_is_loaded_again(
    git: Git, change: Callable[[Git], object], keys: set[str], loads: int
) -> None:
    environ = Changing(lambda: change(git), 1)
    session = opened(git, environ)
    assert {address.key for address in session.loaded.desired.resources} == keys
    assert environ.read == loads
    assert session.history is not None
    assert session.history.head == git.head()


def test_plan_d4_errors_in_a_mixture_of_two_branches_are_not_reported(git: Git) -> None:
    write(git.folder, BROKEN)
    environ = Changing(lambda: write(git.folder, {"one.yaml": ONE}), 1)
    assert len(opened(git, environ).loaded.desired.resources) == 1
    write(git.folder, BROKEN)
    with pytest.raises(InvalidConfiguration):
        opened(git, Changing(lambda: None, 0))


def test_plan_d4_files_that_never_rest_are_an_error(git: Git) -> None:
    branches = ["main", "other"] * 2
    environ = Changing(lambda: git.run("switch", "--quiet", branches.pop()), 9)
    with pytest.raises(FilesChanged, match="the files or HEAD changed"):
        opened(git, environ)
    assert environ.read == 3
