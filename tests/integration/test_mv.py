"""`mv` end to end: live state stays, comments stay, and the next plan recognizes every object."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git

WORKSPACE = "version: 1\ndefaults:\n  batch_export: {project: web} # where most are\n"
PROJECTS = "projects:\n  # The shop.\n  web: {name: Web} # live since 2020\n"
EXPORTS = """\
# Exports
batch_exports:
  lake: # the lake
    project: web # parent
    name: Lake
    interval: hour
    destination: {type: NoOp, config: {}}
  orders:
    name: Orders
    interval: day
    destination: {type: NoOp, config: {}}
"""
FILES = {"reconciler.yaml": WORKSPACE, "projects.yaml": PROJECTS, "exports/web.yaml": EXPORTS}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "w", FILES)


def mv(folder: Path, *words: str) -> Ran:
    return reconciler("mv", "-C", folder, *words)


def texts(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in FILES}


@pytest.mark.parametrize("in_git", [False, True])
def test_a_renamed_key_changes_nothing_live(
    folder: Path, emulator: RunningEmulator, in_git: bool
) -> None:
    def run(*words: str) -> str:
        ran = reconciler(*words, "-C", folder, environ=emulator.environ())
        assert ran.code == 0, ran.err
        return ran.out

    run("apply", "--auto-approve")
    if in_git:
        Git.init(folder).commit()
    before = emulator.state()
    ran = mv(folder, "web", "shop")
    assert (ran.code, ran.out.count("+++ b/")) == (0, 3)
    assert ran.err == "Renamed project.web to project.shop in 3 files\n"
    before_mv = texts(folder)
    for option in ("--diff", "--dry-run"):
        ran = mv(folder, "Lake", "lake-2", option)
        assert "-  lake: # the lake\n+  lake-2: # the lake\n" in ran.out
        assert ran.err == "Would rename batch_export.lake to batch_export.lake-2 in 1 file\n"
    assert texts(folder) == before_mv
    run("mv", "batch_export.lake", "batch_export.lake-2")
    run("validate")
    assert json.loads(run("plan", "--format", "json"))["changes"] == []
    run("apply", "--auto-approve")
    assert emulator.state() == before
    assert texts(folder)["reconciler.yaml"] == WORKSPACE.replace("project: web", "project: shop")


RULES = """\
version: 1
policy:
  rules:
    keep:
      match: {address: batch_export.lake, action: delete}
      message: the lake stays
    others:
      match:
        address: [batch_export.lake, "batch_export.pond*"]  # water
        project: web
        name: web
      message: hands off
environments:
  staging:
    policy:
      rules:
        web: {match: {address: project.web}, message: stop}
"""


def test_places_in_policies_stay_and_are_printed(folder: Path) -> None:
    """A rule that no longer matches would allow what it refused before."""
    write(folder, {"reconciler.yaml": RULES})
    (folder / "exports/web.yaml").write_text(
        EXPORTS.replace("    name: Orders", "    project: web\n    name: Orders")
    )
    ran = mv(folder, "lake", "sea")
    assert (ran.code, texts(folder)["reconciler.yaml"]) == (0, RULES)
    assert [line for line in ran.err.splitlines() if line.startswith("note: ")] == [
        f"note: check reconciler.yaml:{line}:{column}, which may mean batch_export.lake"
        for line, column in ((5, 15), (9, 19))
    ]
    assert mv(folder, "project.web", "shop").err.count("may mean project.web") == 4


UNKNOWN = {
    "reconciler.yaml": "version: 1\nvars: {home: web}\n",
    "exports/web.yaml": EXPORTS.replace("project: web", "project: ${var:home}"),
}


@pytest.mark.parametrize(
    ("words", "code", "message", "files"),
    [
        (("wbe", "shop"), 64, "did you mean project.web?", {}),
        (("*", "shop"), 64, "matches 3 resources", {}),
        (("lake", "orders"), 64, "batch_export.orders exists already, at exports/web.yaml:8:3", {}),
        (("lake", "a b"), 64, "invalid key 'a b'", {}),
        (("lake", "lake"), 64, "exists already", {}),
        (("web", "shop"), 1, "exports/web.yaml:4:14: error: unknown project 'web'", UNKNOWN),
        (("lake", "l"), 1, "nmae", {"projects.yaml": "projects:\n  web: {nmae: Web}\n"}),
    ],
)
def test_what_cannot_be_renamed_safely_changes_nothing(
    folder: Path, words: tuple[str, ...], code: int, message: str, files: dict[str, str]
) -> None:
    write(folder, files)
    before = texts(folder)
    ran = mv(folder, *words)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
    assert texts(folder) == before


def test_a_byte_order_mark_and_the_mode_of_a_file_are_kept(folder: Path) -> None:
    path = folder / "projects.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + PROJECTS.encode())
    path.chmod(0o640)
    assert mv(folder, "web", "shop").code == 0
    assert path.read_bytes() == b"\xef\xbb\xbf" + PROJECTS.replace("  web:", "  shop:").encode()
    assert path.stat().st_mode & 0o777 == 0o640
