"""`mv`, `pull` and `promote` killed at each file operation: the next command sees old or new."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from reconciler.workspace.sources import JOURNAL
from reconciler.workspace.writing import write_files
from tests.conftest import LONG
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git
from tests.support.limits import TIMEOUT

EXPORT = """\
  {key}:
    # {key} has a comment
    project: web # parent
    name: {key}
    interval: hour
    destination: {{type: NoOp, config: {{}}}}
    overrides: {{staging: {{interval: day}}}} # a trial
"""
FILES = {
    "reconciler.yaml": "version: 1\nenvironments: {staging: {}, production: {}}\n",
    "projects.yaml": "projects:\n  web: {name: Web} # live since 2020\n",
    **{f"{key}.yaml": "batch_exports:\n" + EXPORT.format(key=key) for key in ("a", "b", "c")},
}
COMMANDS = {
    "mv": ("mv", "project.web", "project.shop"),
    "pull": ("pull", "-e", "production"),
    "promote": ("promote", "--from", "staging", "--to", "production"),
}
MOST = 60
POINTS = [
    (command, point)
    for command, sampled in (("mv", 4), ("pull", 2), ("promote", 4))
    for point in range(1, MOST)
    if LONG or (point % sampled == 1 and point <= 20)
]


def texts(folder: Path) -> dict[str, str]:
    """Return all files, hidden ones included."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


def killed(folder: Path, words: Sequence[str], point: int, environ: dict[str, str]) -> int:
    """Run a command that is killed at a file operation; return its exit code."""
    process = [sys.executable, "-m", "tests.support.killed", str(folder), str(point)]
    return subprocess.run(
        [*process, *words, "-C", str(folder)],
        env={**os.environ, **environ},
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    ).returncode


@pytest.mark.parametrize(("command", "point"), POINTS)
def test_apply_a4_the_next_command_sees_the_old_or_the_new_files(
    command: str, point: int, emulator: RunningEmulator, tmp_path: Path
) -> None:
    folder, words, environ = write(tmp_path / "w", FILES), COMMANDS[command], emulator.environ()
    if command == "pull":
        Git.init(folder).commit("start")
        apply = ("apply", "-e", "production", "--auto-approve", "-C", folder)
        assert reconciler(*apply, environ=environ).code == 0
        for project in emulator.state()["projects"]:
            for export in project["batch_exports"]:
                path = f"/api/projects/{project['id']}/batch_exports/{export['id']}/"
                emulator.call("PATCH", path, {"interval": "week"}).raise_for_status()
    complete = Path(shutil.copytree(folder, tmp_path / "complete"))
    assert reconciler(*words, "-C", complete, environ=environ).code == 0
    old, new = texts(folder), texts(complete)
    assert old != new
    code = killed(folder, words, point, environ)
    if code == 0:
        pytest.skip("the command has fewer file operations")
    assert code == 137
    assert reconciler("validate", "-C", folder, environ=environ).code == 0
    assert texts(folder) in (old, new)


def test_apply_a4_a_journal_that_was_cut_short_is_removed(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    for text in ("", '[[".reconciler.0123', "[]\n", "null\n[1]\n", '[["a.yaml", "b.yaml"]]\n[1]\n'):
        (tmp_path / JOURNAL).write_text(text, encoding="utf-8")
        assert reconciler("validate", "-C", tmp_path).code == 0
        assert texts(tmp_path) == FILES, text


@pytest.mark.parametrize("inode", [1, None])
def test_apply_a4_a_journal_of_a_repository_moves_nothing(
    tmp_path: Path, inode: int | None
) -> None:
    """Another copy of a draft has another inode; a draft outside of the folder is none."""
    folder = write(tmp_path / "w", FILES)
    draft = ".reconciler.0123456789abcdef"
    place = folder if inode else tmp_path
    (place / draft).write_text("projects: {}\n", encoding="utf-8")
    known = inode or (place / draft).stat().st_ino
    prefix = "" if inode else "../"
    journal = f'[["{prefix}{draft}", "{prefix}projects.yaml"]]\n[{known}]\n'
    (folder / JOURNAL).write_text(journal, encoding="utf-8")
    assert reconciler("validate", "-C", folder).code == 0
    assert texts(folder) == FILES
    assert (tmp_path / draft).exists() is (inode is None)


def test_apply_a4_two_writers_do_not_mix(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    write(tmp_path, FILES)
    with (tmp_path / JOURNAL).open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        ran = reconciler("mv", "project.web", "project.shop", "-C", tmp_path)
        assert ran.err.startswith("error: another command is writing files in ")
        assert reconciler("validate", "-C", tmp_path).code == 0
    write_files(tmp_path, {"a.yaml": "batch_exports: {}\n"})
    assert not (tmp_path / JOURNAL).exists()
