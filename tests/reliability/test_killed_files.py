"""`mv`, `drift --write` and `promote` killed at each file operation: each file is old or new."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.reliability.processes import Command
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git
from tests.support.limits import LONG

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
    "drift": ("drift", "--write", "-e", "production"),
    "promote": ("promote", "--from", "staging", "--to", "production"),
}
MOST = 60
POINTS = [
    (command, point)
    for command, sampled in (("mv", 4), ("drift", 2), ("promote", 4))
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


@pytest.mark.parametrize(("command", "point"), POINTS)
def test_apply_a4_each_file_is_old_or_new(
    command: str, point: int, emulator: RunningEmulator, tmp_path: Path
) -> None:
    folder, words, environ = write(tmp_path / "w", FILES), COMMANDS[command], emulator.environ()
    if command == "drift":
        Git.init(folder).commit("start")
        apply = ("apply", "-e", "production", "--auto-approve", "-C", folder)
        assert reconciler(*apply, environ=environ).code == 0
        for project in emulator.state()["projects"]:
            for export in project["batch_exports"]:
                path = f"/api/projects/{project['id']}/batch_exports/{export['id']}/"
                emulator.call("PATCH", path, {"interval": "week"}).raise_for_status()
    complete = Path(shutil.copytree(folder, tmp_path / "complete"))
    assert reconciler(*words, "-C", complete, environ=environ).code == (
        2 if command == "drift" else 0
    )
    old, new = texts(folder), texts(complete)
    assert old != new
    command_line = Command(
        tmp_path, *words, "-C", folder, environ=environ, killed_at=(folder, point)
    )
    code = asyncio.run(command_line.run())
    if code in (0, 2):
        pytest.skip("the command has fewer file operations")
    assert code == 137
    left = texts(folder)
    drafts = {name for name in left if name.startswith(".reconciler.")}
    for name, text in left.items():
        assert name in drafts or text in (old.get(name), new.get(name))
